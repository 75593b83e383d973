"""Spark tasks that run the chains of a stream program with a lot of work in a step."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark import SparkContext

from airflow_pipelines.streams.worker.chain_task import run_chain_job

_TASKS_PER_CORE = 2
_CORES = 4
"""The minimum number of cores. With fewer, sending the elements to the tasks and back costs more than the other cores gain."""


class SparkJobs:
    """A runner of jobs of a stream program's process. They are opaque bytes to this process: no function of the program runs in it.

    The effects of a task count once, even if Spark starts it twice: the answer of one attempt is taken, with all its output and
    state.

    :param context: the context that starts the tasks
    :param jobs_from: the number of elements of a step below which a chain runs in the process of the program
    """

    def __init__(self, context: SparkContext, jobs_from: int) -> None:
        self._context = context
        self._jobs_from = jobs_from

    @property
    def jobs_from(self) -> int:
        """The minimum number of elements, see :class:`~airflow_pipelines.streams.worker.client.OtherProcesses`."""
        return self._jobs_from

    def run(self, jobs: Sequence[bytes]) -> Sequence[bytes]:
        """Run jobs, see :class:`~airflow_pipelines.streams.worker.client.OtherProcesses`."""
        slices = min(len(jobs), _TASKS_PER_CORE * self._context.defaultParallelism)
        return self._context.parallelize(list(jobs), slices).map(run_chain_job).collect()


def spark_jobs(context: SparkContext, jobs_from: int) -> SparkJobs | None:
    """Return the runner for chains with a lot of work.

    :param context: the context that starts the tasks
    :param jobs_from: see :class:`SparkJobs`
    :returns: the runner; None if Spark tasks cannot find this package and the program's files, as on the machines of a cluster, or
        if there are too few cores
    """
    is_local = str(context.master).split("[")[0] == "local"
    return SparkJobs(context, jobs_from) if is_local and context.defaultParallelism >= _CORES else None
