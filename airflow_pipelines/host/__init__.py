"""The host: the Spark application that runs pipelines and serves their data plane."""
