"""The class :class:`~airflow_pipelines.sdk.pipelines.pipeline.Pipeline` and its parts, one concern each."""
