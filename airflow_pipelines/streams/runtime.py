"""The runtime context of a function, with access to its state."""

from __future__ import annotations

from pathlib import Path

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.python_environment.needs import CACHED_FILES
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.state.access import KeyedStates
from airflow_pipelines.streams.state.store import KeyedStore


class DistributedCache:
    """The files that a program has registered with ``env.register_cached_file``.

    :param folder: the folder that has them

    >>> import pathlib, tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.functions import MapFunction
    >>> class InEuros(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.rate = float(pathlib.Path(runtime_context.get_distributed_cache().get_file("rate")).read_text())
    ...     def map(self, value):
    ...         return value * self.rate
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = pathlib.Path(folder, "dollars.txt").write_text("0.5")
    ...     env.register_cached_file(f"{folder}/dollars.txt", "rate")
    ...     list(env.from_collection([3, 4]).map(InEuros()).execute_and_collect())
    [1.5, 2.0]
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get_file(self, name: str) -> str:
        """Return the path of a file.

        :param name: the name with which it was registered
        :returns: the path of the file or folder, which functions must not change
        :raises StreamProgramError: if no file was registered with this name
        """
        path = self._folder / name
        if not name or not path.exists():
            known = sorted(each.name for each in self._folder.iterdir()) if self._folder.is_dir() else []
            raise StreamProgramError(
                f"No file was registered with the name {name!r}; there are {known}. Register it with"
                f" env.register_cached_file(path, {name!r}), and ask for it in open(), before the working folder is changed."
            )
        return str(path)


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

    def get_distributed_cache(self) -> DistributedCache:
        """Return the files that the program has registered.

        :returns: the files by their names
        """
        return DistributedCache(Path.cwd() / CACHED_FILES)
