"""The journal on files only: order, torn records, and a kill between any two instructions."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.engine.storage.connector_state import InputState
from airflow_pipelines.engine.storage.journal import FILE, DamagedJournalError, Journal, JournalHeader, JournalRecord, read_journal
from airflow_pipelines.engine.storage.journal_end import FILE as END
from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.sources import ProgramSource
from tests.engine.crash import at_every_boundary

PROGRAM = ProgramIdentity(ProgramSource("CREATE TABLE t (x int)"), Fingerprints(tables={"t": "f"}), 2**64 - 1)
HEADER = JournalHeader(None, PROGRAM, 1700000000.5, layouts={"t": "l"})


def written(folder: Path, *steps: int, program: ProgramIdentity = PROGRAM) -> list[bytes]:
    """The lines of a journal."""
    journal = Journal.create(folder, replace(HEADER, program=program))
    for step in steps:
        journal.append(record(step))
    journal.close()
    return (folder / FILE).read_bytes().splitlines(keepends=True)


def record(step: int) -> JournalRecord:
    return JournalRecord(
        step,
        {"t": {"rows": 1, "files": [f"file{step}"], "insert_only": True}},
        {"u": "QUJD"},
        {"t.c": InputState("t", position={"offset": step})},
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


def test_the_first_line_has_the_fields_of_earlier_releases(tmp_path: Path) -> None:
    document = json.loads(written(tmp_path)[0].partition(b" ")[2])
    assert document.keys() == {
        "base", "program", "udf_python", "program_version", "fingerprints", "program_hash", "initial_start_time", "layouts",
        "canonical_form", "epoch",
    }  # fmt: skip
    assert document["program"] == "CREATE TABLE t (x int)"


def test_no_journal(tmp_path: Path) -> None:
    assert read_journal(tmp_path) is None
    Journal.discard(tmp_path)


def test_the_base_survives(tmp_path: Path) -> None:
    base = UUID("01a1fb81-a243-7bfc-a30f-6bf2b90d3657")
    Journal.create(tmp_path, JournalHeader(base, PROGRAM, 0.0)).close()
    contents = read_journal(tmp_path)
    assert contents is not None
    assert contents.header.base == base


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_torn_last_record_is_ignored(tmp_path: Path, cut: int) -> None:
    journal = Journal.create(tmp_path, HEADER)
    journal.append(record(1))
    acknowledged = (tmp_path / END).read_bytes()
    journal.append(record(2))
    journal.close()
    path = tmp_path / FILE
    os.truncate(path, path.stat().st_size - cut)
    with pytest.raises(DamagedJournalError, match="2 of its records were acknowledged, and it ends after 1"):
        read_journal(tmp_path)
    for end in (acknowledged, b"damaged", None):
        (tmp_path / END).unlink()
        if end is not None:
            (tmp_path / END).write_bytes(end)
        contents = read_journal(tmp_path)
        assert contents is not None
        assert contents.records == (record(1),)


@pytest.mark.parametrize(
    ("number", "damage"),
    [
        (1, lambda lines: lines[1].replace(b"file1", b"file9")),
        (2, lambda lines: lines[2].replace(b"file2", b"file9")),
        (0, lambda lines: lines[0].replace(b"CREATE", b"create")),
    ],
    ids=["middle", "last", "header"],
)
def test_a_damaged_record_is_an_error_and_not_a_loss(tmp_path: Path, number: int, damage: Callable[[list[bytes]], bytes]) -> None:
    lines = written(tmp_path, 1, 2)
    lines[number] = damage(lines)
    (tmp_path / FILE).write_bytes(b"".join(lines))
    what = f"record {number} of 2" if number else "its header"
    with pytest.raises(DamagedJournalError, match=rf"journal\.log is damaged: {what} does not agree") as raised:
        read_journal(tmp_path)
    assert raised.value.path == tmp_path / FILE
    assert "go back to an older checkpoint" in raised.value.advice


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 3), (0, 2, 3), (0, 1, 1, 2, 3)], ids=str)
def test_records_cannot_be_swapped_taken_out_or_repeated(tmp_path: Path, order: tuple[int, ...]) -> None:
    lines = written(tmp_path, 1, 2, 3)
    (tmp_path / FILE).write_bytes(b"".join(lines[number] for number in order))
    with pytest.raises(DamagedJournalError, match="does not agree with its checksum"):
        read_journal(tmp_path)


def test_a_record_of_another_journal_is_not_taken(tmp_path: Path) -> None:
    lines = written(tmp_path, 1, 2)
    (tmp_path / "other").mkdir()
    other = written(tmp_path / "other", 1, 2, program=replace(PROGRAM, source=ProgramSource("CREATE TABLE u (x int)")))
    (tmp_path / FILE).write_bytes(b"".join([*lines[:2], other[2]]))
    with pytest.raises(DamagedJournalError, match="record 2"):
        read_journal(tmp_path)


def test_a_journal_of_an_earlier_release_opens(tmp_path: Path) -> None:
    documents = [json.loads(line.partition(b" ")[2]) for line in written(tmp_path, 1, 2)]
    for document in documents[1:]:
        del document["clock"], document["waterlines"]
    payloads = [json.dumps(document, separators=(",", ":")).encode() for document in documents]
    lines = [b"%08x %s\n" % (zlib.crc32(payload), payload) for payload in payloads]
    (tmp_path / FILE).write_bytes(b"".join(lines) + lines[2][:30])
    contents = read_journal(tmp_path)
    assert contents is not None
    assert (contents.header, contents.records) == (HEADER, (record(1), record(2)))
    (tmp_path / FILE).write_bytes(b"".join([*lines[:2], lines[2].replace(b"file2", b"file9")]))
    with pytest.raises(DamagedJournalError, match="record 2 of 2"):
        read_journal(tmp_path)


def write_three_records(folder: Path) -> None:
    journal = Journal.create(folder, HEADER)
    for step in (1, 2, 3):
        journal.append(record(step))
        (folder / "acknowledged").write_text(str(step))


@pytest.mark.core
@pytest.mark.processes
def test_a_kill_anywhere_loses_no_acknowledged_record(tmp_path: Path) -> None:
    numbers = itertools.count()

    def prepare() -> Path:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return folder

    def check(folder: Path, finished: bool) -> None:
        acknowledged = folder / "acknowledged"
        count = int(acknowledged.read_text() or 0) if acknowledged.exists() else 0
        contents = read_journal(folder)
        records = () if contents is None else contents.records
        assert [item.step for item in records] in ([*range(1, count + 1)], [*range(1, count + 2)])
        assert not finished or count == 3
        shutil.rmtree(folder)

    assert at_every_boundary(prepare, write_three_records, check) > 30
