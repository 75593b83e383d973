"""What may be changed about a pipeline, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from uuid6 import uuid7

from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.service import edits
from airflow_pipelines.service.lifecycle import compilation
from airflow_pipelines.service.records import PipelineRecord, Selector, descriptor
from tests.service import records as given
from tests.service.records import LATER, VERSION


def edit(record: PipelineRecord, **body: Any) -> PipelineRecord:
    return edits.apply_edit(record, edits.parse_edit(body, VERSION), VERSION, LATER)


def code(body: Any) -> str:
    with pytest.raises(Problem) as refused:
        edits.parse_full(body, VERSION)
    assert http_status(refused.value.code) == 400
    return refused.value.code


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, "EmptyName"),
        ({"name": "a" * 64}, "TooLongName"),
        ({"name": "-a"}, "NameDoesNotMatchPattern"),
        ({"name": "a-"}, "NameDoesNotMatchPattern"),
        ({"name": "a b"}, "NameDoesNotMatchPattern"),
        ({"name": "a\n"}, "NameDoesNotMatchPattern"),
        ({"name": "../a"}, "NameDoesNotMatchPattern"),
        ({"name": 3}, "InvalidParam"),
        ({"description": "d" * 301}, "TooLongDescription"),
        ({"tags": ["t"] * 51}, "TooManyTags"),
        ({"tags": ["no;semicolon"]}, "InvalidTag"),
        ({"tags": ["t" * 51]}, "InvalidTag"),
        ({"program_code": None}, "InvalidParam"),
        ({"program": "x"}, "InvalidParam"),
        ({"program_code": None, "stream_files": {}}, "InvalidParam"),
        ({"stream_files": "print()"}, "InvalidParam"),
        ({"stream_files": [["a.py", ""]]}, "InvalidParam"),
        ({"stream_files": {"a.py": 1}}, "InvalidParam"),
        ({"stream_files": {"../a.py": ""}}, "InvalidParam"),
        ({"stream_files": {"a.txt": ""}}, "InvalidParam"),
        ({"stream_arguments": "--day 1"}, "InvalidParam"),
        ({"stream_arguments": [1]}, "InvalidParam"),
        ({"runtime_config": {"wokers": 2}}, "InvalidRuntimeConfig"),
        ({"program_config": {"profile": "fast"}}, "InvalidProgramConfig"),
        ({"program_config": {"runtime_version": "9.9"}}, "InvalidProgramConfig"),
    ],
)
def test_bodies_that_are_refused(fields: dict[str, Any], expected: str) -> None:
    assert code({"name": "p", "program_code": "", **fields}) == expected


def test_a_new_pipeline_has_all_defaults() -> None:
    record = given.pending()
    assert (record.version, record.program_version, record.refresh_version) == (1, 1, 1)
    assert record.runtime_config["workers"] == 8
    assert record.program_config == {"profile": None, "cache": True, "runtime_version": None, "use_platform_compiler": False}


def test_a_changed_program_is_compiled_again_and_moves_all_counters() -> None:
    record = given.stopped()
    after = edit(record, program_code="select 1")
    assert (after.version, after.program_version, after.refresh_version) == (2, 2, record.refresh_version + 1)
    assert (after.program_status, after.program_info, after.program_error) == (CompilationStatus.PENDING, None, None)


def test_a_changed_runtime_config_does_not_touch_the_program() -> None:
    after = edit(given.stopped(), runtime_config={"workers": 2})
    assert (after.version, after.program_version, after.program_status) == (2, 1, CompilationStatus.SUCCESS)


def test_what_changes_nothing_moves_nothing() -> None:
    record = given.stopped()
    assert edit(record, program_code=record.program_code, runtime_config={}, program_config={}, description=None) == record


def test_description_and_tags_change_in_any_state_without_a_counter() -> None:
    record = given.running()
    after = edit(record, description="new", tags=["a b"])
    assert (after.description, after.tags, after.version, after.refresh_version) == ("new", ("a b",), 1, record.refresh_version)


@pytest.mark.parametrize("state", [given.running, given.early_start, given.stopping, given.provisioning])
def test_the_rest_changes_only_while_fully_stopped(state: Any) -> None:
    with pytest.raises(Problem) as refused:
        edit(state(), program_code="select 2")
    assert refused.value.code == "UpdateRestrictedToStopped"
    assert "`program_code`" in refused.value.message


def test_what_the_storage_depends_on_changes_only_when_it_is_cleared() -> None:
    config = {"workers": 3, "fault_tolerance": "exactly_once", "resources": {"storage_mb_max": 5, "memory_mb_max": 6}}
    with pytest.raises(Problem) as refused:
        edit(given.stopped_with_storage(), name="q", runtime_config=config)
    assert refused.value.code == "EditRestrictedToClearedStorage"
    assert refused.value.details["not_allowed"] == [
        "`name`",
        "`runtime_config.workers`",
        "`runtime_config.fault_tolerance`",
        "`runtime_config.resources.storage_mb_max`",
    ]
    assert edit(given.stopped_with_storage(), runtime_config={"max_rss_mb": 9}).runtime_config["max_rss_mb"] == 9
    assert edit(given.stopped(), name="q", runtime_config=config).name == "q"


def test_giving_the_program_again_retries_a_compiler_that_failed() -> None:
    record = compilation.compiler_failed(given.compiling(), "no Java", LATER)
    after = edit(record, program_code=record.program_code)
    assert (after.program_status, after.version) == (CompilationStatus.PENDING, record.version)


@pytest.mark.parametrize("text", ["", "-- nothing\n"])
def test_an_empty_program_is_one_like_any_other(text: str) -> None:
    for record in (given.stopped(), given.broken(), given.stopped_with_storage(), given.pending(program_code="")):
        assert edit(record, program_code=text).program_code == text


def test_update_runtime_compiles_again_only_for_another_release() -> None:
    record = given.stopped()
    assert edits.update_runtime(record, VERSION, LATER) == record
    after = edits.update_runtime(record, "2.0.0", LATER)
    assert (after.platform_version, after.program_status, after.program_version) == ("2.0.0", CompilationStatus.PENDING, 2)


STREAM = {"fraud.py": "import rules\n", "rules.py": "LIMIT = 100\n"}


def test_a_stream_program_needs_no_sql() -> None:
    record = edits.new_record(edits.parse_full({"name": "p", "stream_files": STREAM}, VERSION), uuid7(), VERSION, LATER)
    assert record.program_code == ""
    assert record.source.stream_texts == STREAM
    assert descriptor(record)["stream_files"] == STREAM
    assert "stream_files" not in descriptor(record, Selector.STATUS)
    assert "stream_files" not in descriptor(given.stopped()), "the keys of a pipeline without one are the contract's"


def test_another_stream_program_is_another_version_of_the_program() -> None:
    record = edit(given.stopped(), stream_files=STREAM)
    assert (record.program_version, record.program_status) == (2, CompilationStatus.PENDING)
    assert edit(record, stream_files=dict(STREAM)) is record
    assert edit(record, program_code=record.program_code).source.stream_texts == STREAM, "what is not given stays"
    turned = dict(reversed(STREAM.items()))
    assert edit(record, stream_files=turned).program_version == 3, "another file is executed"
    assert edit(record, stream_arguments=["--day", "1"]).program_version == 3
    assert edit(record, stream_arguments=[]) is record
    assert edit(record, stream_files={}).source == given.stopped().source
    assert (
        edit(replace(record, program_status=CompilationStatus.SYSTEM_ERROR), stream_files=STREAM).program_status
        is CompilationStatus.PENDING
    )


def test_a_running_pipelines_stream_program_stays() -> None:
    with pytest.raises(Problem, match="`stream_files` cannot be changed") as refused:
        edit(given.running(), stream_files=STREAM)
    assert refused.value.code == "UpdateRestrictedToStopped"


def test_sql_and_stream_files_change_by_themselves() -> None:
    both = edit(given.stopped(), stream_files=STREAM)
    assert edit(both, program_code="").source.stream_texts == STREAM
    assert edit(both, stream_files={}).program_code


def test_stream_files_that_are_too_large_are_told_apart() -> None:
    with pytest.raises(Problem) as refused:
        edits.parse_full({"name": "p", "stream_files": {"a.py": "x" * (4 * 2**20 + 1)}}, VERSION)
    assert (http_status(refused.value.code), refused.value.details) == (413, {"limit": 4 * 2**20})
