"""Following a view of another pipeline: contents, changes, and contents again where changes are not known."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import httpx
import pytest

from airflow_pipelines.connectors.base import ChunkInTransaction, ConnectorFailure, InputChunk, Lag, TransientConnectorFailure
from airflow_pipelines.connectors.transports import pipeline_input
from airflow_pipelines.connectors.transports.pipeline_input import PipelineInput, PipelineInputOptions
from airflow_pipelines.rows.formats.parsed import Parser
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.contexts import input_context
from tests.connectors.relations import NESTED, SCALARS, col, relation
from tests.connectors.services import KEY, FollowedView

VIEW = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="v")
TABLE = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="t")


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> FollowedView:
    made = FollowedView(VIEW)
    serve(made, monkeypatch)
    return made


def serve(view: FollowedView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_input, "new_client", view.client)


def no_parser() -> Parser:
    raise AssertionError("this input has no format")


def opened(position: Any = None, schema: RelationSchema = TABLE, **options: Any) -> PipelineInput:
    chosen = {"url": "http://service.example:8080/", "pipeline": "shop", "view": "v", **options}
    made = PipelineInput(PipelineInputOptions.model_validate(chosen), input_context(schema, None, no_parser))
    made.open(position)
    return made


def read(source: PipelineInput, most: int = 1000) -> InputChunk:
    chunk = source.read(most, 0.0)
    assert chunk is not None
    return chunk


def rows(*chunks: InputChunk) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for chunk in chunks if chunk.changes is not None for row in chunk.changes.rows.to_pylist()]


class Copy:
    """The table, as the engine keeps it."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[Any, ...]] = Counter()

    def take(self, chunk: InputChunk) -> None:
        if chunk.changes is not None and chunk.changes.truncates:
            self.rows.clear()
        for *row, op in rows(chunk):
            self.rows[tuple(row)] += op
            assert self.rows[tuple(row)] >= 0


def test_contents_come_first_and_then_changes(view: FollowedView) -> None:
    view.step(((1, "a"), 1), ((2, None), 1), ((2, None), 1))
    source = opened()
    first = read(source)
    assert first.changes is not None
    assert first.changes.truncates
    assert sorted(rows(first)) == [(1, "a", 1), (2, None, 1), (2, None, 1)]
    assert (first.records, first.position, first.transaction) == (3, {"after": "a:1"}, None)
    assert first.size_bytes > 0
    assert source.read(1000, 0.0) is None
    view.step(((2, None), -1), ((2, "b"), 1))
    view.step(((1, "a"), -1))
    second = read(source)
    assert second.changes is not None
    assert not second.changes.truncates
    assert rows(second) == [(2, None, -1), (2, "b", 1), (1, "a", -1)]
    assert second.position == {"after": "a:3"}
    # Steps that change other relations move the place.
    view.step()
    assert read(source) == InputChunk(None, 0, 0, {"after": "a:4"})
    assert source.read(1000, 0.0) is None
    assert view.asked == [None, "a:1", "a:1", "a:3", "a:4"]


def test_large_answers_are_one_transaction(view: FollowedView) -> None:
    view.step(*(((number, "n"), 1) for number in range(10)))
    source = opened()
    chunks = [read(source, 3) for _ in range(4)]
    assert [chunk.transaction for chunk in chunks] == [*[ChunkInTransaction.MORE] * 3, ChunkInTransaction.LAST]
    assert [chunk.records for chunk in chunks] == [3, 3, 3, 1]
    assert [chunk.changes is not None and chunk.changes.truncates for chunk in chunks] == [True, False, False, False]
    # Nothing of it counts before its end.
    assert [chunk.position for chunk in chunks] == [*[{"after": None}] * 3, {"after": "a:1"}]
    assert sorted(rows(*chunks)) == [(number, "n", 1) for number in range(10)]
    again = opened({"after": None})
    assert sorted(rows(read(again))) == sorted(rows(*chunks))


def test_from_every_place_the_table_becomes_the_view(view: FollowedView) -> None:
    view.step(((1, "a"), 1), ((2, "b"), 1))
    view.step(((1, "a"), -1), ((1, "c"), 1))
    view.step(((2, "b"), -1))
    view.step(((2, "d"), 1), ((3, "d"), 1))
    wanted = Counter({(1, "c"): 1, (2, "d"): 1, (3, "d"): 1})
    for begin in (0, 2, 4):
        view.begin = begin
        for most in (1, 2, 1000):
            view.most_steps = most
            source, copy, position = opened(), Copy(), None
            while position != {"after": "a:4"}:
                chunk = read(source, 1)
                copy.take(chunk)
                if chunk.transaction is not ChunkInTransaction.MORE:
                    position = chunk.position
                    source.close()
                    source = opened(position)
            assert +copy.rows == wanted


def test_contents_come_again_where_changes_are_not_known(view: FollowedView) -> None:
    view.step(((1, "a"), 1), ((2, "b"), 1))
    source = opened()
    copy = Copy()
    copy.take(read(source))
    view.step(((2, "b"), -1))
    view.forget()
    again = read(source)
    assert again.changes is not None
    assert again.changes.truncates
    copy.take(again)
    assert +copy.rows == Counter({(1, "a"): 1})
    # Another run, whose steps with the same numbers are others; its view is empty.
    view.run, view.steps, view.begin = "b", [[], [], []], 0
    emptied = read(source)
    assert emptied.changes is not None
    assert (emptied.changes.truncates, emptied.changes.rows.num_rows, emptied.position) == (True, 0, {"after": "b:3"})


def test_the_lag(view: FollowedView) -> None:
    view.step(*(((number, "n"), 1) for number in range(5)))
    source = opened()
    assert source.lag() is None
    read(source, 2)
    assert source.lag() == Lag(records=3)
    read(source, 3)
    assert source.lag() == Lag(records=0)
    view.most_steps = 1
    for number in range(3):
        view.step(((number, "m"), 1))
    read(source)
    assert source.lag() == Lag(records=2)
    read(source)
    read(source)
    assert source.lag() == Lag(records=0)


def test_values_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (*SCALARS.columns, *NESTED.columns)
    given = FollowedView(relation(*columns, name="v"))
    serve(given, monkeypatch)
    values: dict[str, Any] = {column.name: None for column in columns}
    values |= {"i64": 1, "r": math.inf, "f": math.nan, "s3": "abc", "u": "00000000-0000-0000-0000-000000000001", "arr": [1, None]}
    given.step((tuple(values.values()), 1))
    source = opened(schema=relation(*columns, name="t"))
    chunk = read(source)
    assert (chunk.records, chunk.num_parse_errors) == (1, 0)
    [row] = rows(chunk)
    assert math.isnan(row[6])
    assert row[5] == math.inf
    assert row[-3:] == (None, None, 1)
    assert row[16] == [1, None]


def test_other_types_are_converted_and_what_does_not_fit_is_malformed(view: FollowedView) -> None:
    view.step(((1, "12"), 1), ((1 << 40, "3"), 1), ((3, "x"), 1), ((4, None), 1))
    narrow = relation(col("NAME", "DECIMAL", precision=4, scale=1), col("id", "INTEGER"), col("more", "VARCHAR"), name="t")
    chunk = read(opened(schema=narrow))
    assert [(float(row[0]) if row[0] is not None else None, *row[1:]) for row in rows(chunk)] == [
        (12.0, 1, None, 1),
        (None, 4, None, 1),
    ]
    assert (chunk.records, chunk.num_parse_errors) == (2, 2)
    view.step(((1, "12"), -1), ((3, "x"), -1))
    source = opened({"after": "a:1"}, schema=narrow)
    [gone] = rows(read(source))
    assert gone[1:] == (1, None, -1)


def test_a_view_that_cannot_fill_the_table(view: FollowedView) -> None:
    needed = relation(col("id", "BIGINT"), col("amount", "BIGINT", null=False), name="t")
    with pytest.raises(ConnectorFailure, match=r"v of pipeline shop has no column for 'amount'; its columns: id, name\. Add a DEF"):
        opened(schema=needed)
    with pytest.raises(ConnectorFailure, match="no column for any of the table's columns"):
        opened(schema=relation(col("other", "BIGINT"), name="t"))


def test_who_cannot_be_asked(view: FollowedView, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectorFailure, match="answered 404: There is no view or table w; views: v") as missing:
        opened(view="w")
    assert not isinstance(missing.value, TransientConnectorFailure)
    view.key = KEY
    with pytest.raises(ConnectorFailure, match=r"answered 401: No key\. Give a key of the service that may read") as refused:
        opened(api_key="wrong")
    assert "wrong" not in str(refused.value)
    opened(api_key=KEY)
    view.is_there = False
    with pytest.raises(TransientConnectorFailure, match=r"service.example:8080/? cannot be reached: nobody listens") as away:
        opened(url="http://user:pass@service.example:8080")
    assert "pass" not in str(away.value)
    stopped = {"message": "The pipeline shop does not run.", "error_code": "PipelineInteractionNotDeployed", "details": {}}
    ending = {"message": "The pipeline shop is being stopped.", "error_code": "Terminating", "details": {}}
    for answer, part in (
        (httpx.Response(410, json=ending), "answered 410: The pipeline shop is being stopped"),
        (httpx.Response(503, json=stopped), "answered 503: The pipeline shop does not run"),
        (httpx.Response(200, content=b"<html>hello</html>"), "what the service sent cannot be read"),
    ):
        transport = httpx.MockTransport(lambda _, given=answer: given)
        monkeypatch.setattr(pipeline_input, "new_client", lambda _, given=transport: httpx.Client(transport=given))
        with pytest.raises(TransientConnectorFailure, match=part):
            opened()
    other = httpx.MockTransport(lambda _: httpx.Response(404, text="Not Found"))
    monkeypatch.setattr(pipeline_input, "new_client", lambda _: httpx.Client(transport=other))
    with pytest.raises(ConnectorFailure, match=r"answered 404: Not Found \(is this the address of a service"):
        opened()


def test_an_answer_that_was_cut_off(view: FollowedView, monkeypatch: pytest.MonkeyPatch) -> None:
    view.step(*(((number, "n"), 1) for number in range(10)))
    whole = view.answer(httpx.Request("GET", "http://x/v0/pipelines/shop/changes/v")).content
    for size in range(0, len(whole), 40):
        transport = httpx.MockTransport(lambda _, part=whole[:size]: httpx.Response(200, content=part))
        monkeypatch.setattr(pipeline_input, "new_client", lambda _, given=transport: httpx.Client(transport=given))
        with pytest.raises(TransientConnectorFailure):
            opened()
