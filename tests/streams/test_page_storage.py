"""Pages in memory and in a scratch file."""

import os
import random

import pytest

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.page_storage import MemoryPages, SpilledPages
from airflow_pipelines.streams.state.pages import StoredPage
from airflow_pipelines.streams.state.scratch_file import ScratchFile


@pytest.fixture(params=["memory", "all spilled", "some spilled"])
def storage(request, tmp_path):
    made = {
        "memory": MemoryPages,
        "all spilled": lambda: SpilledPages(0, str(tmp_path)),
        "some spilled": lambda: SpilledPages(5_000),
    }
    storage = made[request.param]()
    yield storage
    storage.close()


def test_a_storage_is_what_a_dict_would_be(storage):
    chosen = random.Random(4)
    expected = {}
    for _ in range(2_000):
        page_id = (chosen.randrange(4), 3, chosen.randrange(8))
        if chosen.random() < 0.3:
            storage.remove(page_id)
            expected.pop(page_id, None)
        else:
            expected[page_id] = StoredPage(os.urandom(chosen.choice([1, 100, 600, 3_000])), (chosen.randrange(100), None))
            storage.write(page_id, expected[page_id])
        if chosen.random() < 0.5:
            storage.spill()
    assert sorted(storage.ids()) == sorted(expected)
    for page_id, page in expected.items():
        assert page_id in storage
        assert storage.read(page_id) == page.data
        assert storage.read_stored(page_id) == page
    assert (9, 0, 0) not in storage
    assert storage.read((9, 0, 0)) is None


def test_only_so_many_bytes_stay_in_memory_and_room_in_the_file_is_used_again(tmp_path):
    storage = SpilledPages(10_000, str(tmp_path))
    for turn in range(50):
        for number in range(100):
            storage.write((number, 0, 0), StoredPage(bytes([turn]) * 1_000))
            storage.spill()
    assert storage.memory_bytes <= 10_000
    assert storage.file_bytes < 110 * 1024
    assert all(storage.read((number, 0, 0)) == bytes([49]) * 1_000 for number in range(100))
    storage.close()


def test_a_page_that_grows_again_and_again_does_not_fill_the_disk():
    file = ScratchFile()
    slot = file.write(b"")
    for size in range(0, 200_000, 100):
        file.free(slot)
        slot = file.write(bytes(size))
    assert file.size < 12 * 200_000
    file.close()


def test_nothing_is_left_in_the_folder(tmp_path):
    storage = SpilledPages(0, str(tmp_path))
    storage.write((0, 0, 0), StoredPage(b"data"))
    storage.spill()
    assert storage.read((0, 0, 0)) == b"data"
    assert list(tmp_path.iterdir()) == []
    storage.close()


def test_a_folder_that_cannot_be_written_is_named_and_no_page_is_lost(tmp_path):
    folder = tmp_path / "missing"
    storage = SpilledPages(3, str(folder))
    storage.write((0, 0, 0), StoredPage(b"data"))
    with pytest.raises(StreamProgramError, match=r"cannot be written to a file in .*missing: .*No such file"):
        storage.spill()
    assert storage.read((0, 0, 0)) == b"data"
    folder.mkdir()
    storage.spill()
    assert storage.memory_bytes == 0
    assert storage.read((0, 0, 0)) == b"data"


def test_a_full_disk_is_named_and_no_page_is_lost(tmp_path, monkeypatch):
    storage = SpilledPages(0, str(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    storage.write((0, 0, 0), StoredPage(b"data"))
    with pytest.raises(StreamProgramError, match=r"No space left on device.* Name a folder with more room .io.tmp.dirs."):
        storage.spill()
    monkeypatch.undo()
    storage.spill()
    assert storage.read((0, 0, 0)) == b"data"


def test_what_is_written_in_pieces_is_whole(monkeypatch):
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda number, data, at: write(number, bytes(data)[:7], at))
    file = ScratchFile()
    slot = file.write(b"more than seven bytes")
    assert file.read(slot) == b"more than seven bytes"
    file.close()
