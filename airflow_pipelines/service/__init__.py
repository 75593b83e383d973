"""The control plane: pipeline records, the lifecycle state machine, deployment, the REST API. Knows no Spark."""
