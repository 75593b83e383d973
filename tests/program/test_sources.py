from __future__ import annotations

import hashlib

from airflow_pipelines.program.fingerprints import Fingerprints, program_hash
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.sources import ProgramKind, ProgramSource, SourceFile

FILES = (SourceFile("streams/sessions.py", "x = 1\n"), SourceFile("streams/alerts.py", ""))


def test_the_digest_of_sql_and_python_is_the_one_that_approvals_of_earlier_releases_name() -> None:
    source = ProgramSource("select 'ä'", "def f(): pass")
    assert source.digest == hashlib.sha256(b"11\nselect '\xc3\xa4'def f(): pass").hexdigest()


def test_texts_do_not_run_into_each_other() -> None:
    sources = [
        ProgramSource("ab", "c"),
        ProgramSource("a", "bc"),
        ProgramSource("abc"),
        ProgramSource("abc", stream_files=(SourceFile("d", "e"),)),
        ProgramSource("abc", stream_files=(SourceFile("de", ""),)),
        ProgramSource("abc", stream_files=(SourceFile("d", ""), SourceFile("e", ""))),
        ProgramSource("abc", stream_files=(SourceFile("d", ""),), stream_arguments=("e",)),
        ProgramSource("abc", stream_files=(SourceFile("d", ""),), stream_arguments=("e", "")),
        ProgramSource("abc", stream_files=(SourceFile("d", ""),), stream_arguments=("", "e")),
        ProgramSource("abc", stream_files=(SourceFile("d", ""),), stream_arguments=("1 0\nd",)),
    ]
    assert len({source.digest for source in sources}) == len(sources)


def test_a_program_of_one_kind_writes_no_field_for_the_other() -> None:
    source = ProgramSource("select 1", "import os")
    assert source.to_wire() == {"program_code": "select 1", "udf_python": "import os"}
    assert ProgramIdentity(source, Fingerprints(tables={"t": "f"}), 7, 3).to_json() == {
        "program": "select 1",
        "udf_python": "import os",
        "fingerprints": {"tables": {"t": "f"}, "views": {}, "input_connectors": {}, "output_connectors": {}, "owners": {}},
        "program_hash": 7,
        "program_version": 3,
    }


def test_a_source_of_both_kinds_is_read_back_as_it_was_written() -> None:
    source = ProgramSource("select 1", "import os", FILES, ("--limit", "ä"))
    assert source.kinds == {ProgramKind.SQL, ProgramKind.STREAMS}
    assert ProgramSource("", stream_files=FILES).kinds == {ProgramKind.STREAMS}
    assert ProgramSource("").kinds == {ProgramKind.SQL}
    assert ProgramSource.from_wire({"other": 1, **source.to_wire()}) == source
    saved = ProgramIdentity(source, Fingerprints(operators={"sessions": "f"}), 7, 3)
    assert ProgramIdentity.from_json({"other": 1, **saved.to_json()}) == saved


def test_an_identity_of_the_first_releases_has_neither_module_nor_version() -> None:
    fields = {"program": "select 1", "fingerprints": {"tables": {"t": "f"}}, "program_hash": 7}
    assert ProgramIdentity.from_json(fields) == ProgramIdentity(ProgramSource("select 1"), Fingerprints(tables={"t": "f"}), 7)


def test_the_hash_of_a_program_without_operators_is_that_of_earlier_releases() -> None:
    assert program_hash(Fingerprints(tables={"t": "f"})) == 9432555625348441938
    assert program_hash(Fingerprints(tables={"t": "f"}, operators={"o": "f"})) != program_hash(Fingerprints(tables={"t": "f"}))
