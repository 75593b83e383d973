"""Programs and names that are wrong, as a user meets it through the SDK: where, why, and nothing lost."""

from __future__ import annotations

import pytest

from airflow_pipelines import (
    Pipeline,
    PipelineAPIError,
    PipelineBuilder,
    PipelineClient,
    PipelineFailedError,
    ProgramCompilationError,
)
from airflow_pipelines.connectors.built_in import BUILT_IN_INPUTS
from tests.integration.bad_input import INTERNALS, T, named, table_with

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


# --- programs ---------------------------------------------------------------------------------------------------------------------

PLACE = '"transport": {"name": "file_input", "config": {"path": "/x"}}'

# The marks show what the error has to point at.
WRONG_PROGRAMS = {
    "no-statement": ("«import» os", "Expected CREATE TABLE, VIEW, INDEX, TYPE or FUNCTION; found 'import'"),
    "misspelt-word": (T + "create view v as\n  «selec» * from t;", "Expected a query after AS; found 'selec'"),
    "unfinished": (T + "create view v as select i + «from» t;", "Incomplete expression; found 'from'"),
    "open-bracket": ("create table t (i «int»;", "Expected ); found the end of the statement"),
    "unknown-table": (
        T + "create view v as\n select * from «blah»;",
        "From line 3, column 16 to line 3, column 19: Object 'blah' not found",
    ),
    "unknown-column": (T + "create view v as select «nope» from t;", "with name `nope` cannot be resolved"),
    "unknown-function": (T + "create view v as select «nofn(i)» as x from t;", "Function `nofn` does not exist"),
    "unknown-type": ("create table t (i int,\n  j «blob_type»);", "Unknown type 'blob_type'. Known types: ARRAY, BIGINT"),
    "cycle": ("create view «a» as select * from b;\ncreate view b as select * from a;", "in a cycle: a -> b -> a"),
    "transport": (
        table_with('[{"name": "c", "transport": {"name": «"file_inptu"»}}]'),
        f"Connector 't.c': unknown transport 'file_inptu'; known transports: {', '.join(sorted(BUILT_IN_INPUTS))}; "
        "did you mean 'file_input'",
    ),
    "transport-option": (
        table_with('[{"transport": {"name": "file_input", "config": {«"pth"»: "/x"}}, "format": {"name": "csv"}}]'),
        "unknown option 'pth' of transport 'file_input'; known options: buffer_size_bytes, compression, follow, path, "
        "storage_options; did you mean 'path'",
    ),
    "format": (
        table_with("[{" + PLACE + ', "format": {"name": «"cvs"»}}]'),
        "unknown format 'cvs'; known formats: avro, csv, json, orc, parquet, raw; did you mean 'csv'",
    ),
    "format-option": (
        table_with("[{" + PLACE + ', "format": {"name": "csv", "config": {«"header"»: true}}}]'),
        "unknown option 'header' of format 'csv'; known options: buffer_size_records, delimiter, headers, quote; did you mean "
        "'headers'",
    ),
    "connector-option": (
        table_with('[{«"pause"»: true, ' + PLACE + ', "format": {"name": "csv"}}]'),
        "unknown option 'pause'; known options: enable_output_buffer",
    ),
    "missing-option": (
        table_with('[«{"name": "c", "transport": {"name": "file_input"}, "format": {"name": "csv"}}»]'),
        "option 'path' of transport 'file_input' is missing",
    ),
    "connector-json": (table_with('[{"name": "c",«]»'), "The connectors are not valid JSON"),
    "property": (
        "create table t (i int) with (\n «'materialised'» = 'true');",
        "Unknown property 'materialised'. Known properties: ",
    ),
}


@pytest.mark.core("no-statement", "unknown-column", "unknown-function", "cycle", "transport", "format", "connector-option")
@pytest.mark.parametrize("which", WRONG_PROGRAMS)
def test_a_wrong_program_says_where_and_why(embedded_client: PipelineClient, pipeline_name: str, which: str) -> None:
    marked, reason = WRONG_PROGRAMS[which]
    program = marked.replace("«", "").replace("»", "")
    before, _, rest = marked.partition("«")
    width = rest.index("»")
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    with pytest.raises(RuntimeError) as caught:
        PipelineBuilder(embedded_client, pipeline_name, program).create(timeout_s=60)
    assert isinstance(caught.value, ProgramCompilationError)
    text = str(caught.value)
    assert f"\n{line}:{column}: " in text, text
    assert reason in text
    quoted = text.splitlines()
    shown = next(at for at, each in enumerate(quoted) if each.startswith(f"{line:5}|"))
    assert quoted[shown] == f"{line:5}|{program.splitlines()[line - 1]}"
    assert quoted[shown + 1] == " " * (5 + column) + "^" * width
    assert not INTERNALS.search(text)
    assert named(embedded_client, pipeline_name).program_status().get_error()


def test_a_wrong_program_can_be_corrected(embedded_client: PipelineClient, pipeline_name: str) -> None:
    with pytest.raises(ProgramCompilationError):
        PipelineBuilder(embedded_client, pipeline_name, T + "create view v as select nope from t;").create(timeout_s=60)
    pipeline = named(embedded_client, pipeline_name)
    with pytest.raises(PipelineAPIError, match=r"did not compile.*line 2, column 25: .*`nope`.*correct the program") as caught:
        pipeline.start()
    assert (caught.value.status_code, caught.value.error_code) == (400, "CannotStartWithCompilationError")
    pipeline.modify(sql=T + "create materialized view v as select i from t;")
    pipeline.start(timeout_s=60)
    pipeline.input_json("t", {"i": 7})
    # The view has been run, so a program that does not compile may not take what it holds away.
    pipeline.stop(force=True, timeout_s=60)
    wrong = T + "create materialized view v as select nope from t;"
    with pytest.raises(ProgramCompilationError, match=r"(?s)the one it has was kept.*`nope` cannot be resolved"):
        pipeline.modify(sql=wrong)
    with pytest.raises(ProgramCompilationError, match="`nope` cannot be resolved"):
        PipelineBuilder(embedded_client, pipeline_name, wrong).create_or_replace()
    with pytest.raises(PipelineAPIError, match="is empty, so the one it has was kept"):
        PipelineBuilder(embedded_client, pipeline_name, "").create_or_replace()
    pipeline.modify(sql=wrong, allow_compile_errors=True)
    # Whether it is found before the start or on the way makes no difference.
    with pytest.raises((PipelineFailedError, PipelineAPIError), match=r"`nope` cannot be resolved"):
        pipeline.start(timeout_s=60)
    pipeline.modify(sql=T + "create materialized view v as select i from t;")
    pipeline.start(timeout_s=60)
    assert list(pipeline.query("select * from v")) == [{"i": 7}]


# --- names ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("method", ["create", "create_or_replace"])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "EmptyName"),
        ("a b", "NameDoesNotMatchPattern"),
        ("-a", "NameDoesNotMatchPattern"),
        ("a/b", "NameDoesNotMatchPattern"),
        ("..", "NameDoesNotMatchPattern"),
        ("../../etc", "NameDoesNotMatchPattern"),
        ("é", "NameDoesNotMatchPattern"),
        ("x" * 64, "TooLongName"),
    ],
)
def test_invalid_names_are_refused(embedded_client: PipelineClient, name: str, code: str, method: str) -> None:
    before = {pipeline.name for pipeline in Pipeline.all(embedded_client)}
    with pytest.raises(PipelineAPIError) as caught:
        getattr(PipelineBuilder(embedded_client, name, T), method)()
    assert (caught.value.status_code, caught.value.error_code) == (400, code)
    assert "name" in caught.value.message
    assert {pipeline.name for pipeline in Pipeline.all(embedded_client)} == before


@pytest.mark.core
def test_a_name_that_is_taken(embedded_client: PipelineClient, pipeline_name: str) -> None:
    PipelineBuilder(embedded_client, pipeline_name, T).create(timeout_s=60)
    with pytest.raises(RuntimeError, match="exists already: use create_or_replace"):
        PipelineBuilder(embedded_client, pipeline_name, "").create()
    with pytest.raises(PipelineAPIError, match=f"'{pipeline_name}' already exists") as caught:
        embedded_client.post("/v0/pipelines", json={"name": pipeline_name, "program_code": ""})
    assert (caught.value.status_code, caught.value.error_code) == (409, "DuplicateName")
    assert named(embedded_client, pipeline_name).program_code() == T


@pytest.mark.core
def test_a_pipeline_that_is_not_there(embedded_client: PipelineClient) -> None:
    with pytest.raises(PipelineAPIError, match="no pipeline named 'nobody'") as caught:
        named(embedded_client, "nobody")
    assert (caught.value.status_code, caught.value.error_code) == (404, "UnknownPipelineName")
