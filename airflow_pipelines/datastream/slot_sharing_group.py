"""Slot sharing groups and their resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

from airflow_pipelines.datastream.common import checks

_KIBI = 1024


class JavaObjectError(NotImplementedError):
    """A request for an object of the JVM, which does not exist."""


@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes.

    :param bytes_size: the bytes

    >>> from airflow_pipelines.datastream import MemorySize
    >>> MemorySize.of_mebi_bytes(64).get_bytes()
    67108864
    >>> MemorySize(5_000) < MemorySize.of_mebi_bytes(1)
    True
    """

    bytes_size: int

    is_immutable_value: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.integer("bytes_size", self.bytes_size, 0)

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Return a size in mebibytes.

        :param mebi_bytes: number of mebibytes (1024 * 1024 bytes)
        :returns: the size
        """
        return MemorySize(checks.integer("mebi_bytes", mebi_bytes, 0) * _KIBI**2)

    def get_bytes(self) -> int:
        """Return the size in bytes.

        :returns: the number
        """
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """Return the size in whole kibibytes.

        :returns: the number, rounded down
        """
        return self.bytes_size // _KIBI

    def get_mebi_bytes(self) -> int:
        """Return the size in whole mebibytes.

        :returns: the number, rounded down
        """
        return self.bytes_size // _KIBI**2

    def get_gibi_bytes(self) -> int:
        """Return the size in whole gibibytes.

        :returns: the number, rounded down
        """
        return self.bytes_size // _KIBI**3

    def get_java_memory_size(self) -> NoReturn:
        """Refuse, because there is no object of the JVM.

        :raises JavaObjectError: always
        """
        raise JavaObjectError("MemorySize.get_java_memory_size: there is no object of the JVM; use get_bytes()")


@dataclass(frozen=True)
class SlotSharingGroup:
    """The name of a slot sharing group and its resources. They are kept without effect. Use :meth:`builder` to make one.

    :param name: its name
    :param cpu_cores: number of processors, None if it was not set
    :param task_heap_memory: heap memory
    :param task_off_heap_memory: off-heap memory
    :param managed_memory: managed memory
    :param external_resources: other resources by name

    >>> from airflow_pipelines.datastream import SlotSharingGroup, StreamExecutionEnvironment
    >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(2).set_task_heap_memory_mb(512).build()
    >>> group.get_name(), group.get_task_heap_memory().get_mebi_bytes()
    ('heavy', 512)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> list(env.from_collection([1, 2]).map(lambda number: number * 10).slot_sharing_group(group).execute_and_collect())
    [10, 20]
    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: dict[str, float] = field(default_factory=dict, hash=False)

    class Builder:
        """A builder of slot sharing groups.

        :param name: the name of the group
        """

        def __init__(self, name: str) -> None:
            self._name = checks.text("name", name)
            self._cpu_cores: float | None = None
            self._heap: MemorySize | None = None
            self._off_heap: MemorySize | None = None
            self._managed: MemorySize | None = None
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Set the number of processors.

            :param cpu_cores: more than 0
            :returns: this object
            """
            self._cpu_cores = _check_positive("cpu_cores", cpu_cores)
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the heap memory.

            :param task_heap_memory: the size
            :returns: this object
            """
            self._heap = _memory("task_heap_memory", task_heap_memory)
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the heap memory in mebibytes.

            :param task_heap_memory_mb: the size in mebibytes
            :returns: this object
            """
            return self.set_task_heap_memory(_mebi_bytes("task_heap_memory_mb", task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the off-heap memory.

            :param task_off_heap_memory: the size
            :returns: this object
            """
            self._off_heap = _memory("task_off_heap_memory", task_off_heap_memory)
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the off-heap memory in mebibytes.

            :param task_off_heap_memory_mb: the size in mebibytes
            :returns: this object
            """
            return self.set_task_off_heap_memory(_mebi_bytes("task_off_heap_memory_mb", task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the managed memory.

            :param managed_memory: the size
            :returns: this object
            """
            self._managed = _memory("managed_memory", managed_memory)
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the managed memory in mebibytes.

            :param managed_memory_mb: the size in mebibytes
            :returns: this object
            """
            return self.set_managed_memory(_mebi_bytes("managed_memory_mb", managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Set another resource. It replaces an earlier value of the same name.

            :param name: the name of the resource
            :param value: more than 0
            :returns: this object
            """
            self._external[checks.text("name", name)] = _check_positive("value", value)
            return self

        def build(self) -> SlotSharingGroup:
            """Make the slot sharing group.

            :returns: the group
            :raises ValueError: if there are resources, and processors or heap memory are missing
            """
            named = [self._off_heap, self._managed, self._cpu_cores, self._heap]
            if (any(each is not None for each in named) or self._external) and (self._cpu_cores is None or self._heap is None):
                raise ValueError(
                    f"The slot sharing group {self._name!r} has resources, so it needs both set_cpu_cores(...) and "
                    "set_task_heap_memory(...)"
                )
            return SlotSharingGroup(self._name, self._cpu_cores, self._heap, self._off_heap, self._managed, dict(self._external))

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Return a builder for a slot sharing group.

        :param name: the name of the group
        :returns: the builder
        """
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        """Return the name of the group.

        :returns: the name
        """
        return self.name

    def get_cpu_cores(self) -> float | None:
        """Return the number of processors.

        :returns: the number that was set, or None
        """
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the heap memory.

        :returns: the size that was set, or None
        """
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the off-heap memory.

        :returns: the size that was set, or None
        """
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """Return the managed memory.

        :returns: the size that was set, or None
        """
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Return the other resources.

        :returns: values by name
        """
        return dict(self.external_resources)

    def get_java_slot_sharing_group(self) -> NoReturn:
        """Refuse, because there is no object of the JVM.

        :raises JavaObjectError: always
        """
        raise JavaObjectError("SlotSharingGroup.get_java_slot_sharing_group: there is no object of the JVM; use get_name()")


def _check_positive(parameter: str, value: float) -> float:
    if checks.number(parameter, value) <= 0:
        raise ValueError(f"{parameter} must be more than 0, not {value}")
    return float(value)


def _memory(parameter: str, value: MemorySize) -> MemorySize:
    return checks.instance(parameter, value, MemorySize, "use MemorySize.of_mebi_bytes(...), or the setter ending in _mb")


def _mebi_bytes(parameter: str, value: int) -> MemorySize:
    return MemorySize.of_mebi_bytes(checks.integer(parameter, value, 0))
