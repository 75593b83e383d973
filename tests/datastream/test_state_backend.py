from __future__ import annotations

import pytest

from airflow_pipelines.datastream.checkpoint_storage import (
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from airflow_pipelines.datastream.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    FsStateBackend,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
)


@pytest.mark.parametrize(
    "backend", [EmbeddedRocksDBStateBackend(True), RocksDBStateBackend("/c", True)], ids=lambda each: type(each).__name__
)
def test_settings_of_rocksdb_are_kept(backend: EmbeddedRocksDBStateBackend | RocksDBStateBackend) -> None:
    assert backend.is_incremental_checkpoints_enabled()
    assert (backend.get_db_storage_paths(), backend.get_predefined_options(), backend.get_options()) == (
        None,
        PredefinedOptions.DEFAULT,
        None,
    )
    backend.set_db_storage_paths("/a", "file:///b")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_options("a.Factory")
    assert backend.get_db_storage_paths() == ["/a", "/b"]
    assert (backend.get_predefined_options(), backend.get_options()) == (PredefinedOptions.FLASH_SSD_OPTIMIZED, "a.Factory")
    backend.set_db_storage_paths(None)
    assert backend.get_db_storage_paths() is None
    with pytest.raises(ValueError, match="absolute path of a local folder"):
        backend.set_db_storage_paths("relative")
    with pytest.raises(ValueError, match="absolute path of a local folder"):
        backend.set_db_storage_paths("hdfs://a/b")
    with pytest.raises(TypeError, match=r"PredefinedOptions.DEFAULT, .*, not 'DEFAULT'"):
        backend.set_predefined_options("DEFAULT")  # type: ignore[arg-type]


def test_each_rocksdb_backend_has_its_spelling_of_threads() -> None:
    embedded, old = EmbeddedRocksDBStateBackend(), RocksDBStateBackend("/c")
    assert embedded.get_number_of_transfer_threads() == old.get_number_of_transfering_threads() == 4
    embedded.set_number_of_transfer_threads(2)
    old.set_number_of_transfering_threads(3)
    assert (embedded.get_number_of_transfer_threads(), old.get_number_of_transfering_threads()) == (2, 3)
    with pytest.raises(ValueError, match="at least 1"):
        embedded.set_number_of_transfer_threads(0)


def test_an_old_rocksdb_backend_needs_one_place_for_checkpoints() -> None:
    backend = RocksDBStateBackend("/c").get_checkpoint_backend()
    assert isinstance(backend, FsStateBackend)
    assert backend.get_checkpoint_path() == "/c"
    memory = MemoryStateBackend()
    assert RocksDBStateBackend(checkpoint_stream_backend=memory).get_checkpoint_backend() is memory
    for arguments in ({}, {"checkpoint_data_uri": "/c", "checkpoint_stream_backend": memory}):
        with pytest.raises(ValueError, match="needs one of checkpoint_data_uri"):
            RocksDBStateBackend(**arguments)  # type: ignore[arg-type]


def test_storages_and_old_backends_keep_their_values() -> None:
    manager = JobManagerCheckpointStorage(max_state_size=100)
    assert (manager.get_checkpoint_path(), manager.get_max_state_size()) == (None, 100)
    assert JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE == MemoryStateBackend().get_max_state_size() == 5242880
    assert MemoryStateBackend(using_asynchronous_snapshots=False).is_using_asynchronous_snapshots() is False
    files = FileSystemCheckpointStorage("/c", 100)
    assert (files.get_checkpoint_path(), files.get_min_file_size_threshold(), files.get_write_buffer_size()) == ("/c", 100, 4096)
    old = FsStateBackend("/c", "/s", 100, 200, True)
    assert (old.get_min_file_size_threshold(), old.get_write_buffer_size(), old.is_using_asynchronous_snapshots()) == (
        100,
        200,
        True,
    )
    assert CustomStateBackend("a.B").state_backend == "a.B"
    assert CustomCheckpointStorage("a.B").checkpoint_storage == "a.B"
    with pytest.raises(ValueError, match="at most 1048576"):
        FileSystemCheckpointStorage("/c", FileSystemCheckpointStorage.MAX_FILE_STATE_THRESHOLD + 1)
    for missing in (FileSystemCheckpointStorage, FsStateBackend):
        with pytest.raises(ValueError, match="needs checkpoint_"):
            missing()
