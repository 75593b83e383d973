"""The parts of :class:`airflow_pipelines.pipeline.Pipeline`, one concern each."""
