"""The journal on files only: order, torn records, and a kill between any two instructions."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.engine.checkpoint import Counters
from airflow_pipelines.engine.journal import FILE, DamagedJournalError, Journal, JournalHeader, JournalRecord, read_journal
from tests.engine.crash import at_every_boundary

HEADER = JournalHeader(None, "CREATE TABLE t (x int)", {"tables": {"t": "f"}}, 2**64 - 1, 1700000000.5, layouts={"t": "l"})


def record(step: int) -> JournalRecord:
    return JournalRecord(
        step,
        {"t": {"rows": 1, "files": [f"file{step}"], "insert_only": True}},
        {"u": "QUJD"},
        {"t.c": {"position": {"offset": step}}},
        Counters(processed_records=step),
    )


def test_records_come_back_in_order(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEADER)
    for step in (1, 2, 3):
        journal.append(record(step))
    journal.close()
    contents = read_journal(tmp_path)
    assert contents is not None
    assert contents.header == HEADER
    assert contents.records == (record(1), record(2), record(3))
    assert contents.files() == journal.files() == {"file1", "file2", "file3"}


def test_no_journal(tmp_path: Path) -> None:
    assert read_journal(tmp_path) is None
    Journal.discard(tmp_path)


def test_the_base_survives(tmp_path: Path) -> None:
    base = UUID("01a1fb81-a243-7bfc-a30f-6bf2b90d3657")
    Journal.create(tmp_path, JournalHeader(base, "p", {}, 1, 0.0)).close()
    contents = read_journal(tmp_path)
    assert contents is not None
    assert contents.header.base == base


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_torn_last_record_is_ignored_and_written_over(tmp_path: Path, cut: int) -> None:
    journal = Journal.create(tmp_path, HEADER)
    journal.append(record(1))
    journal.append(record(2))
    journal.close()
    path = tmp_path / FILE
    os.truncate(path, path.stat().st_size - cut)
    contents = read_journal(tmp_path)
    assert contents is not None
    assert contents.records == (record(1),)
    again = Journal.reopen(tmp_path, contents)
    again.append(record(3))
    again.close()
    contents = read_journal(tmp_path)
    assert contents is not None
    assert contents.records == (record(1), record(3))


def test_a_garbled_last_record_is_ignored(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEADER)
    journal.append(record(1))
    journal.close()
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"00000000 {half a rec\n")
    contents = read_journal(tmp_path)
    assert contents is not None
    assert contents.records == (record(1),)


def test_damage_in_the_middle_is_an_error_and_not_a_loss(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEADER)
    journal.append(record(1))
    journal.append(record(2))
    journal.close()
    path = tmp_path / FILE
    content = bytearray(path.read_bytes())
    content[content.index(b"file1")] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedJournalError, match="Record 1"):
        read_journal(tmp_path)


def test_a_kill_anywhere_loses_no_acknowledged_record(tmp_path: Path) -> None:
    numbers = itertools.count()
    current: list[Path] = []

    def prepare():  # type: ignore[no-untyped-def]
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        current[:] = [folder]
        acknowledged = folder / "acknowledged"

        def action() -> None:
            journal = Journal.create(folder, HEADER)
            for step in (1, 2, 3):
                journal.append(record(step))
                acknowledged.write_text(str(step))

        return action

    def check(finished: bool) -> None:
        folder = current[0]
        acknowledged = folder / "acknowledged"
        count = int(acknowledged.read_text() or 0) if acknowledged.exists() else 0
        contents = read_journal(folder)
        records = () if contents is None else contents.records
        assert [item.step for item in records] in ([*range(1, count + 1)], [*range(1, count + 2)])
        assert not finished or count == 3
        shutil.rmtree(folder)

    assert at_every_boundary(prepare, check) > 30
