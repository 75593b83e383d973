"""``python -m airflow_pipelines.host --host-id <id>``: a host with a Spark application of its own, without spark-submit."""

import sys

from airflow_pipelines.host.main import main

sys.exit(main(sys.argv[1:]))
