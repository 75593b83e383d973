"""Tasks of a stream program as tasks of Spark: what chains that have very much to do in a step run in."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark import SparkContext

from airflow_pipelines.streams.worker.chain_task import run_chain_job

_TASKS_PER_CORE = 2
_CORES = 4
"""With fewer, the elements' way to the tasks and back costs more than the other cores bring."""


class SparkJobs:
    """Runs jobs of the process of a stream program. They are bytes to this process: no function of the program runs in it.

    Whatever a task does counts once, also when Spark starts it twice: the answer of one attempt is taken, with all that the task
    gave and keeps.

    :param context: starts the tasks
    :param jobs_from: a chain that gets fewer elements in a step runs in the process of the program
    """

    def __init__(self, context: SparkContext, jobs_from: int) -> None:
        self._context = context
        self._jobs_from = jobs_from

    @property
    def jobs_from(self) -> int:
        """See :class:`~airflow_pipelines.streams.worker.client.OtherProcesses`."""
        return self._jobs_from

    def run(self, jobs: Sequence[bytes]) -> Sequence[bytes]:
        """See :class:`~airflow_pipelines.streams.worker.client.OtherProcesses`."""
        slices = min(len(jobs), _TASKS_PER_CORE * self._context.defaultParallelism)
        return self._context.parallelize(list(jobs), slices).map(run_chain_job).collect()


def spark_jobs(context: SparkContext, jobs_from: int) -> SparkJobs | None:
    """Where chains with very much to do run.

    :param context: starts the tasks
    :param jobs_from: see :class:`SparkJobs`
    :returns: None where the tasks of Spark do not find this package and the program's files, as on the machines of a cluster; and
        where there are too few cores
    """
    is_local = str(context.master).split("[")[0] == "local"
    return SparkJobs(context, jobs_from) if is_local and context.defaultParallelism >= _CORES else None
