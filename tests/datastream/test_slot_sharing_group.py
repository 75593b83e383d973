from __future__ import annotations

import pytest

from airflow_pipelines.datastream.slot_sharing_group import JavaObjectError, MemorySize, SlotSharingGroup


def test_a_group_has_what_its_builder_was_told() -> None:
    group = (
        SlotSharingGroup.builder("g")
        .set_cpu_cores(1)
        .set_task_heap_memory_mb(100)
        .set_task_off_heap_memory(MemorySize(bytes_size=5))
        .set_managed_memory_mb(3)
        .set_external_resource("gpu", 1)
        .set_external_resource("gpu", 2.0)
        .build()
    )
    assert (group.get_name(), group.get_cpu_cores(), group.get_external_resources()) == ("g", 1.0, {"gpu": 2.0})
    assert group.get_managed_memory() == MemorySize.of_mebi_bytes(3)
    assert (group.get_task_heap_memory(), group.get_task_off_heap_memory()) == (MemorySize.of_mebi_bytes(100), MemorySize(5))
    assert SlotSharingGroup.builder("g").build().get_cpu_cores() is None


def test_resources_need_processors_and_heap_memory() -> None:
    with pytest.raises(ValueError, match=r"'g' has resources, so it needs both set_cpu_cores"):
        SlotSharingGroup.builder("g").set_managed_memory_mb(3).build()
    with pytest.raises(ValueError, match="cpu_cores must be more than 0, not 0"):
        SlotSharingGroup.builder("g").set_cpu_cores(0)
    with pytest.raises(TypeError, match=r"use MemorySize.of_mebi_bytes\(...\), or the setter ending in _mb"):
        SlotSharingGroup.builder("g").set_managed_memory(3)  # type: ignore[arg-type]


def test_memory_in_units() -> None:
    size = MemorySize(3 * 1024**3 + 5)
    assert (size.get_gibi_bytes(), size.get_mebi_bytes(), size.get_kibi_bytes(), size.get_bytes()) == (3, 3072, 3145728, 3221225477)
    assert size > MemorySize.of_mebi_bytes(3072)


def test_there_are_no_objects_of_the_jvm() -> None:
    with pytest.raises(JavaObjectError, match=r"use get_bytes\(\)"):
        MemorySize(1).get_java_memory_size()
    with pytest.raises(JavaObjectError, match=r"use get_name\(\)"):
        SlotSharingGroup.builder("g").build().get_java_slot_sharing_group()
