"""DataFrames over a plan that is executed: whoever reads one again runs only what comes after the last exchange.

Spark executes a DataFrame anew for each action. Here the exchanges of one run serve all of them, so that a result may be looked at
before it is decided where its rows go.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.internals import frame_of, java_frame, java_session, query_execution
from airflow_pipelines.engine.spark.physical_plans import active_session
from airflow_pipelines.engine.spark.session_tasks import conf_for_tasks


def executed(frame: DataFrame) -> DataFrame:
    """The rows of a frame, as a frame whose exchanges run now and once.

    :param frame: what to run
    """
    session = frame.sparkSession
    with active_session(session), conf_for_tasks(session):
        rows = query_execution(frame).toRdd()
        # Without them its exchanges, which are planned as they go, would run with the first action.
        rows.getNumPartitions()
    return frame_of(session, java_session(session).internalCreateDataFrame(rows, java_frame(frame).schema(), False))
