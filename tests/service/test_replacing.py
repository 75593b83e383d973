"""Programs that do not compile do not take the place of programs that do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import ProgramSource, SourceFile
from airflow_pipelines.service.compiling import Compiled
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.replacing import Replacement
from tests.service import records as given

WRONG = {"message": "Object 'x' not found", "start_line_number": 3, "start_column": 7, "warning": False}
WARNING = {"message": "No effect", "warning": True}


class Compiler:
    """Compiles what does not hold the word wrong, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ProgramSource] = []

    def __call__(self, source: ProgramSource) -> Compiled:
        self.asked.append(source)
        return Compiled(None, [WARNING, WRONG]) if "wrong" in source.sql + source.python_functions else Compiled({}, [])


def changed(record: PipelineRecord, **fields: Any) -> PipelineRecord:
    return replace(record, **fields)


@pytest.mark.parametrize("fields", [{"program_code": "wrong"}, {"udf_python": "wrong"}])
def test_a_program_that_does_not_compile_is_refused_with_its_place(fields: dict[str, str]) -> None:
    record = given.stopped()
    with pytest.raises(Problem, match=r"so the one it has was kept: line 3, column 7: Object 'x' not found\. ") as refused:
        Replacement(Compiler()).check(record, changed(record, **fields))
    assert (http_status(refused.value.code), refused.value.code) == (400, "InvalidNewProgramSql")
    assert refused.value.details == {"sql_compilation": {"exit_code": 1, "messages": [WARNING, WRONG]}}


def test_a_stream_program_that_does_not_compile_is_refused_with_its_file() -> None:
    record = replace(given.stopped(), stream_files=(SourceFile("fraud.py", "x"),))
    changed_files = (SourceFile("fraud.py", "y"),)
    wrong = {**WRONG, "file": "fraud.py"}
    compiled = {record.source: Compiled({}, []), replace(record, stream_files=changed_files).source: Compiled(None, [wrong])}
    with pytest.raises(Problem, match=r"so the one it has was kept: fraud\.py: line 3, column 7: Object 'x' not found\. "):
        Replacement(compiled.__getitem__).check(record, replace(record, stream_files=changed_files))


@pytest.mark.parametrize("text", ["", " \n", ";", "-- nothing\n", "/* create table t(id int); */ ;"])
def test_an_empty_program_is_refused_in_place_of_another(text: str) -> None:
    replacement = Replacement(Compiler())
    for record in (given.stopped(), given.broken(), given.stopped_with_storage()):
        with pytest.raises(Problem, match="is empty, so the one it has was kept") as refused:
            replacement.check(record, changed(record, program_code=text))
        assert (http_status(refused.value.code), refused.value.code) == (400, "EmptyProgram")
    # One with stream files is empty only without them.
    streaming = changed(given.stopped(), program_code=text, stream_files=(SourceFile("fraud.py", "x"),))
    replacement.check(given.stopped(), streaming)
    with pytest.raises(Problem, match="is empty, so the one it has was kept"):
        replacement.check(streaming, changed(streaming, stream_files=()))
    empty = given.pending(program_code="")
    replacement.check(empty, changed(empty, program_code=text))


def test_functions_in_rust_do_not_compile() -> None:
    record = given.stopped()
    with pytest.raises(Problem, match="Rust are not supported"):
        Replacement(Compiler()).check(record, changed(record, udf_rust="fn f() {}"))


def test_what_replaces_nothing_that_compiles_is_let_through() -> None:
    compiler = Compiler()
    assert Replacement(compiler).check(given.broken(), changed(given.broken(), program_code="wrong")) is None
    same = given.stopped()
    assert Replacement(compiler).check(same, changed(same, program_config={"profile": "dev"})) is None
    assert compiler.asked == []
    assert Replacement(compiler).check(same, changed(same, program_code="right")) == Compiled({}, [])


def test_a_program_that_nobody_has_compiled_yet_is_compiled_to_know() -> None:
    compiler = Compiler()
    replacement = Replacement(compiler)
    pending = given.pending()
    for _ in range(2):
        with pytest.raises(Problem):
            replacement.check(pending, changed(pending, program_code="wrong"))
    assert compiler.asked == [ProgramSource("wrong"), pending.source]
    wrong = given.pending(program_code="wrong as well")
    assert replacement.check(wrong, changed(wrong, program_code="wrong")) is None
