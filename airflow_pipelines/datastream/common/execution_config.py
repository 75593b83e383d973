"""Settings of the execution of a program."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.restart_strategy import FallbackRestartStrategyConfiguration, RestartStrategyConfiguration

_NO_JVM = "values are Python objects, which the JVM does not serialize"
_NO_TASK_THREADS = "there are no threads of tasks to interrupt"


class ExecutionMode(Enum):
    """The exchange of elements between operators in a program of final results.

    >>> from airflow_pipelines.datastream.common import ExecutionConfig, ExecutionMode
    >>> ExecutionConfig().set_execution_mode(ExecutionMode.BATCH).get_execution_mode()
    <ExecutionMode.BATCH: 2>
    """

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3


class KryoRegistrations:
    """The Java classes that a program registers with Kryo. They are kept without effect."""

    def __init__(self) -> None:
        self.serializers: dict[str, str | None] = {}
        self.default_serializers: dict[str, str] = {}

    def register(self, type_class_name: str, serializer_class_name: str | None = None) -> None:
        """Register a class.

        :param type_class_name: the class
        :param serializer_class_name: the class of its serializer; None to keep the earlier one
        """
        name = checks.text("type_class_name", type_class_name)
        if serializer_class_name is None:
            self.serializers.setdefault(name, None)
        else:
            self.serializers[name] = checks.text("serializer_class_name", serializer_class_name)

    def set_default(self, type_class_name: str, serializer_class_name: str) -> None:
        """Set the serializer of a class and its subclasses.

        :param type_class_name: the class
        :param serializer_class_name: the class of the serializer
        """
        serializer = checks.text("serializer_class_name", serializer_class_name)
        self.default_serializers[checks.text("type_class_name", type_class_name)] = serializer


class ExecutionConfig:
    """The settings of the execution of a program, from ``StreamExecutionEnvironment.get_config()``.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> config = StreamExecutionEnvironment.get_execution_environment().get_config()
    >>> config = config.set_global_job_parameters({"percent": 20}).set_auto_watermark_interval(50)
    >>> config.get_global_job_parameters(), config.get_auto_watermark_interval()
    ({'percent': '20'}, 50)
    """

    PARALLELISM_DEFAULT: ClassVar[int] = -1
    PARALLELISM_UNKNOWN: ClassVar[int] = -2
    MAX_PARALLELISM: ClassVar[int] = 32_767

    def __init__(self) -> None:
        self._parallelism = self.PARALLELISM_DEFAULT
        self._max_parallelism = -1
        self._auto_watermark_interval = 200
        self._latency_tracking_interval = 0
        self._restart_strategy: RestartStrategyConfiguration = FallbackRestartStrategyConfiguration()
        self._execution_mode = ExecutionMode.PIPELINED
        self._cancellation_interval = 30_000
        self._cancellation_timeout = 180_000
        self._parameters: dict[str, str] = {}
        self._flags = {"closure_cleaner": True, "generic_types": True, "auto_generated_uids": True, "auto_type_registration": True}
        self.kryo = KryoRegistrations()

    def get_parallelism(self) -> int:
        """Return the parallelism of operators that set none.

        :returns: the value that was set; -1 for the default of the environment
        """
        return self._parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that set none.

        :param parallelism: at least 1, or -1 for the default of the environment
        :returns: this object
        """
        if parallelism != self.PARALLELISM_DEFAULT:
            checks.integer("parallelism", parallelism, 1, self.MAX_PARALLELISM)
        self._parallelism = parallelism
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups, which limits the parallelism.

        :returns: the value that was set; -1 for the default
        """
        return self._max_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups.

        :param max_parallelism: 1 to 32767
        :returns: this object
        """
        self._max_parallelism = checks.integer("max_parallelism", max_parallelism, 1, self.MAX_PARALLELISM)
        return self

    def get_auto_watermark_interval(self) -> int:
        """Return the time between two periodic watermarks.

        :returns: milliseconds, 200 by default
        """
        return self._auto_watermark_interval

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set the time between two periodic watermarks.

        :param interval: milliseconds; 0 for no periodic watermarks
        :returns: this object
        """
        self._auto_watermark_interval = checks.integer("interval", interval, 0)
        return self

    def get_latency_tracking_interval(self) -> int:
        """Return the time between two measurements of latency.

        :returns: milliseconds, 0 by default
        """
        return self._latency_tracking_interval

    @no_effect("latency is not measured by marks among the elements")
    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Set the time between two measurements of latency.

        :param interval: milliseconds; 0 for none
        :returns: this object
        """
        self._latency_tracking_interval = checks.integer("interval", interval, 0)
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """Return the restart strategy for failures of the program.

        :returns: the strategy that was set; by default, the strategy of the runner
        """
        return self._restart_strategy

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> ExecutionConfig:
        """Set the restart strategy for failures of the program.

        :param restart_strategy_configuration: a strategy from ``RestartStrategies``
        :returns: this object
        """
        hint = "use RestartStrategies.no_restart() or another of RestartStrategies"
        given = checks.instance(
            "restart_strategy_configuration", restart_strategy_configuration, RestartStrategyConfiguration, hint
        )
        self._restart_strategy = given
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """Return the parameters that functions read with ``get_job_parameter``.

        :returns: texts by name
        """
        return dict(self._parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, object]) -> ExecutionConfig:
        """Set the parameters that functions read with ``get_job_parameter``.

        :param global_job_parameters_dict: values by name, which are converted to text
        :returns: this object
        """
        if not isinstance(global_job_parameters_dict, Mapping):
            raise TypeError(f"global_job_parameters_dict takes a dict, not {type(global_job_parameters_dict).__name__}")
        self._parameters = {checks.text("name", key): _text(value) for key, value in global_job_parameters_dict.items()}
        return self

    def get_execution_mode(self) -> ExecutionMode:
        """Return the exchange of elements between operators.

        :returns: the value that was set; ``PIPELINED`` by default
        """
        return self._execution_mode

    @no_effect("elements travel by the step")
    def set_execution_mode(self, execution_mode: ExecutionMode) -> ExecutionConfig:
        """Set the exchange of elements between operators.

        :param execution_mode: the mode
        :returns: this object
        """
        self._execution_mode = checks.member("execution_mode", execution_mode, ExecutionMode)
        return self

    def get_task_cancellation_interval(self) -> int:
        """Return the time between two attempts to interrupt a task.

        :returns: milliseconds
        """
        return self._cancellation_interval

    @no_effect(_NO_TASK_THREADS)
    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Set the time between two attempts to interrupt a task.

        :param interval: milliseconds
        :returns: this object
        """
        self._cancellation_interval = checks.integer("interval", interval, 0)
        return self

    def get_task_cancellation_timeout(self) -> int:
        """Return the time after which a task that does not end counts as an error.

        :returns: milliseconds
        """
        return self._cancellation_timeout

    @no_effect(_NO_TASK_THREADS)
    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Set the time after which a task that does not end counts as an error.

        :param timeout: milliseconds; 0 for none
        :returns: this object
        """
        self._cancellation_timeout = checks.integer("timeout", timeout, 0)
        return self

    @no_effect("Python functions are pickled as they are")
    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Enable the removal of unused variables from functions.

        :returns: this object
        """
        return self._switch("closure_cleaner", True)

    @no_effect("Python functions are pickled as they are")
    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Undo :meth:`enable_closure_cleaner`.

        :returns: this object
        """
        return self._switch("closure_cleaner", False)

    def is_closure_cleaner_enabled(self) -> bool:
        """Return True if unused variables are removed from functions.

        :returns: the value that was set
        """
        return self._flags.get("closure_cleaner", False)

    @no_effect(_NO_JVM)
    def enable_force_kryo(self) -> ExecutionConfig:
        """Enable serialisation of all values with Kryo.

        :returns: this object
        """
        return self._switch("force_kryo", True)

    @no_effect(_NO_JVM)
    def disable_force_kryo(self) -> ExecutionConfig:
        """Undo :meth:`enable_force_kryo`.

        :returns: this object
        """
        return self._switch("force_kryo", False)

    def is_force_kryo_enabled(self) -> bool:
        """Return True if Kryo serialises all values.

        :returns: the value that was set
        """
        return self._flags.get("force_kryo", False)

    @no_effect(_NO_JVM)
    def enable_generic_types(self) -> ExecutionConfig:
        """Allow types that only Kryo serialises.

        :returns: this object
        """
        return self._switch("generic_types", True)

    @no_effect(_NO_JVM)
    def disable_generic_types(self) -> ExecutionConfig:
        """Undo :meth:`enable_generic_types`.

        :returns: this object
        """
        return self._switch("generic_types", False)

    @no_effect("an operator without a uid is found by its name and position")
    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Allow operators without a uid.

        :returns: this object
        """
        return self._switch("auto_generated_uids", True)

    @no_effect("an operator without a uid is found by its name and position")
    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Undo :meth:`enable_auto_generated_uids`.

        :returns: this object
        """
        return self._switch("auto_generated_uids", False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Return True if operators without a uid are allowed.

        :returns: the value that was set
        """
        return self._flags.get("auto_generated_uids", False)

    @no_effect(_NO_JVM)
    def enable_force_avro(self) -> ExecutionConfig:
        """Enable serialisation of all values with Avro.

        :returns: this object
        """
        return self._switch("force_avro", True)

    @no_effect(_NO_JVM)
    def disable_force_avro(self) -> ExecutionConfig:
        """Undo :meth:`enable_force_avro`.

        :returns: this object
        """
        return self._switch("force_avro", False)

    def is_force_avro_enabled(self) -> bool:
        """Return True if Avro serialises all values.

        :returns: the value that was set
        """
        return self._flags.get("force_avro", False)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Let functions share values instead of copying them.

        :returns: this object
        """
        return self._switch("object_reuse", True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Undo :meth:`enable_object_reuse`.

        :returns: this object
        """
        return self._switch("object_reuse", False)

    def is_object_reuse_enabled(self) -> bool:
        """Return True if functions share values.

        :returns: the value that was set
        """
        return self._flags.get("object_reuse", False)

    def has_generic_types_disabled(self) -> bool:
        """Return True if types that only Kryo serialises are refused.

        :returns: the value that was set; False by default
        """
        return not self._flags["generic_types"]

    def is_use_snapshot_compression(self) -> bool:
        """Return True if checkpoints are compressed.

        :returns: the value that was set; False by default
        """
        return self._flags.get("snapshot_compression", False)

    @no_effect("how state is stored is the project's own affair")
    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Set whether checkpoints are compressed.

        :param use_snapshot_compression: True to compress them
        :returns: this object
        """
        return self._switch("snapshot_compression", checks.boolean("use_snapshot_compression", use_snapshot_compression))

    def is_auto_type_registration_disabled(self) -> bool:
        """Return True if automatic registration of types with Kryo is disabled.

        :returns: the value that was set; False by default
        """
        return not self._flags["auto_type_registration"]

    @no_effect(_NO_JVM)
    def disable_auto_type_registration(self) -> ExecutionConfig:
        """Disable automatic registration of types with Kryo.

        :returns: this object
        """
        return self._switch("auto_type_registration", False)

    @no_effect(_NO_JVM)
    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> ExecutionConfig:
        """Set the serializer of a Java class and its subclasses.

        :param type_class_name: the class
        :param serializer_class_name: the class of the serializer
        :returns: this object
        """
        self.kryo.set_default(type_class_name, serializer_class_name)
        return self

    @no_effect(_NO_JVM)
    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> ExecutionConfig:
        """Set the serializer of a Java class.

        :param type_class_name: the class
        :param serializer_class_name: the class of the serializer
        :returns: this object
        """
        self.kryo.register(type_class_name, serializer_class_name)
        return self

    @no_effect(_NO_JVM)
    def register_kryo_type(self, type_class_name: str) -> ExecutionConfig:
        """Register a Java class with Kryo.

        :param type_class_name: the class
        :returns: this object
        """
        self.kryo.register(type_class_name)
        return self

    @no_effect(_NO_JVM)
    def register_pojo_type(self, type_class_name: str) -> ExecutionConfig:
        """Register a Java class of plain fields.

        :param type_class_name: the class
        :returns: this object
        """
        self.kryo.register(type_class_name)
        return self

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Return the serializers of Java classes and their subclasses.

        :returns: class names by class name
        """
        return dict(self.kryo.default_serializers)

    def get_registered_types_with_kryo_serializer_classes(self) -> dict[str, str]:
        """Return the serializers of Java classes.

        :returns: class names by class name
        """
        return {name: serializer for name, serializer in self.kryo.serializers.items() if serializer is not None}

    def get_registered_kryo_types(self) -> list[str]:
        """Return the registered Java classes.

        :returns: class names
        """
        return list(self.kryo.serializers)

    def _switch(self, flag: str, on: bool) -> ExecutionConfig:
        self._flags[flag] = on
        return self


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
