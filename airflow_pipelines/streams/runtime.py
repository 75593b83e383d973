"""The runtime context of a function, with access to its state."""

from __future__ import annotations

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.state.access import KeyedStates
from airflow_pipelines.streams.state.store import KeyedStore


class RuntimeContext(KeyedStates):
    """The runtime context of a function: the place where it runs, and its state.

    :param subtask: the parallel instance
    :param clock: the clock of the step
    :param store: the keyed state, None on a stream without keys
    """

    def __init__(self, subtask: SubtaskInfo, clock: StepClock, store: KeyedStore | None) -> None:
        super().__init__(store, clock, subtask.name)
        self._subtask = subtask

    def get_task_name(self) -> str:
        """Return the name of the operator.

        :returns: the name
        """
        return self._subtask.name

    def get_task_name_with_subtasks(self) -> str:
        """Return the name with the number of the instance.

        :returns: the name, as in ``Map (2/4)``
        """
        return self._subtask.name_with_subtasks

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the number of parallel instances.

        :returns: their number
        """
        return self._subtask.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the maximum number of parallel instances.

        :returns: the number of key groups
        """
        return self._subtask.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the number of this parallel instance.

        :returns: its number, from 0
        """
        return self._subtask.index

    def get_attempt_number(self) -> int:
        """Return the number of restarts of the program.

        :returns: 0 in the first attempt
        """
        return self._subtask.attempt

    def get_job_parameter(self, key: str, default_value: str | None = None) -> str | None:
        """Return a parameter of the program.

        :param key: its name
        :param default_value: the result if there is no such parameter
        :returns: its value
        """
        return self._subtask.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Return the metric group of the operator.

        :returns: the group, which creates metrics
        """
        return self._subtask.metrics

    get_metric_group = get_metrics_group
