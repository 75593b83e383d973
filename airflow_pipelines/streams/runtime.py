"""What a function is told about where it runs, and how it gets at its state."""

from __future__ import annotations

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.state.access import KeyedStates
from airflow_pipelines.streams.state.store import KeyedStore


class RuntimeContext(KeyedStates):
    """Where a function runs, and its state.

    :param subtask: which of the parallel instances it is
    :param clock: the time of the step
    :param store: the state by key, None on a stream without keys
    """

    def __init__(self, subtask: SubtaskInfo, clock: StepClock, store: KeyedStore | None) -> None:
        super().__init__(store, clock, subtask.name)
        self._subtask = subtask

    def get_task_name(self) -> str:
        """The name of the operator.

        :returns: the name
        """
        return self._subtask.name

    def get_task_name_with_subtasks(self) -> str:
        """The name with the number of the instance.

        :returns: as in ``Map (2/4)``
        """
        return self._subtask.name_with_subtasks

    def get_number_of_parallel_subtasks(self) -> int:
        """How many parallel instances there are.

        :returns: their number
        """
        return self._subtask.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """How many parallel instances there can ever be.

        :returns: the number of key groups
        """
        return self._subtask.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Which parallel instance this is.

        :returns: its number, from 0
        """
        return self._subtask.index

    def get_attempt_number(self) -> int:
        """How often the program was restarted.

        :returns: 0 in the first attempt
        """
        return self._subtask.attempt

    def get_job_parameter(self, key: str, default_value: str | None = None) -> str | None:
        """A parameter of the program.

        :param key: its name
        :param default_value: when there is none
        :returns: its value
        """
        return self._subtask.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Metrics of the operator.

        :returns: where they are made
        """
        return self._subtask.metrics

    get_metric_group = get_metrics_group
