"""Elements as rows of relations, and rows as elements."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from airflow_pipelines.datastream import Row, RowKind, StreamExecutionEnvironment, Types
from airflow_pipelines.datastream.common.tuples import Tuple2
from airflow_pipelines.datastream.relations import relation_sink, relation_source
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.relations import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

TWO = "id BIGINT, note VARCHAR"


def row_of(element: Any, schema: Any = TWO, primary_key: Any = None) -> tuple[int, tuple[Any, ...]]:
    sink = pickle.loads(pickle.dumps(relation_sink("Alerts", schema, primary_key)))
    assert sink.relation == "alerts"
    found: tuple[int, tuple[Any, ...]] = sink.to_row(element)
    return found


@pytest.mark.parametrize(
    "element",
    [
        Row(1, "x"),
        Row(note="x", id=1),
        (1, "x"),
        [1, "x"],
        Tuple2(1, "x"),
        {"note": "x", "id": 1},
    ],
)
def test_elements_are_rows(element: Any) -> None:
    assert row_of(element) == (INSERT, (1, "x"))


def test_fields_that_are_not_given_are_null() -> None:
    assert row_of({"id": 1}) == (INSERT, (1, None))
    assert row_of(Row(id=1)) == (INSERT, (1, None))


def test_names_may_be_written_as_in_the_schema_or_as_sql_knows_them() -> None:
    schema = {"userId": Types.LONG(), '"Note"': "VARCHAR"}
    assert row_of({"userId": 1, "Note": "x"}, schema) == row_of({"userid": 1, "Note": "x"}, schema) == (INSERT, (1, "x"))


@pytest.mark.parametrize(
    ("element", "expected"),
    [(5, 5), ("x", "x"), (None, None), (Row(5), 5), (Row(v=5), 5), ((5,), 5), ({"v": 5}, 5), ([1, 2], [1, 2])],
)
def test_one_column_takes_the_value_itself(element: Any, expected: Any) -> None:
    assert row_of(element, "v BIGINT") == (INSERT, (expected,))


def test_one_column_takes_a_dict_as_its_value() -> None:
    assert row_of({"k": 1}, "v MAP<VARCHAR, BIGINT>") == (INSERT, ({"k": 1},))
    assert row_of({}, "v MAP<VARCHAR, BIGINT>") == (INSERT, ({},))


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (RowKind.INSERT, INSERT),
        (RowKind.UPDATE_BEFORE, UPDATE_BEFORE),
        (RowKind.UPDATE_AFTER, UPDATE_AFTER),
        (RowKind.DELETE, DELETE),
    ],
)
def test_kinds_with_a_key(kind: RowKind, number: int) -> None:
    assert row_of(Row.of_kind(kind, 1, "x"), primary_key=["ID"]) == (number, (1, "x"))


@pytest.mark.parametrize("kind", [RowKind.DELETE, RowKind.UPDATE_BEFORE])
def test_without_a_key_no_row_can_be_removed(kind: RowKind) -> None:
    with pytest.raises(StreamProgramError, match=rf"'alerts' only gets rows, and .* of kind {kind.name}.*primary_key"):
        row_of(Row.of_kind(kind, 1, "x"))
    assert row_of(Row.of_kind(RowKind.UPDATE_AFTER, 1, "x")) == (UPDATE_AFTER, (1, "x"))


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ((1,), "has 2 columns, and .* has 1 fields"),
        ((1, 2, 3), "has 2 columns, and .* has 3 fields"),
        (1, r"has 2 columns, and 1 \(int\) is no Row, tuple or dict"),
        ("ab", r"has 2 columns, and 'ab' \(str\) is no"),
        ({"id": 1, "other": 2}, "columns id, note, and no 'other'"),
        (Row(id=1, other=2), "no 'other'"),
        (None, r"None \(NoneType\)"),
    ],
)
def test_elements_that_are_no_rows(element: Any, message: str) -> None:
    with pytest.raises(StreamProgramError, match=message):
        row_of(element)


def test_a_key_that_is_none() -> None:
    with pytest.raises(StreamProgramError, match="primary key id, and 'id' is None in"):
        row_of((None, "x"), primary_key="id")


def test_a_value_that_does_not_fit_names_the_column() -> None:
    with pytest.raises(
        StreamProgramError, match=r"'alerts' cannot have \('a', 'x'\): column 'id': Types.LONG\(\) does not take 'a'"
    ):
        row_of(("a", "x"), Types.ROW_NAMED(["id", "note"], [Types.LONG(), Types.STRING()]))


@pytest.mark.parametrize("key", ["other", [], ["id", "id"], ["id", "x"]])
def test_keys_that_cannot_be(key: Any) -> None:
    with pytest.raises(StreamProgramError, match=r"primary key .* of the relation 'alerts'"):
        relation_sink("alerts", TWO, key)


def test_rows_of_a_relation_are_rows_with_a_kind() -> None:
    source = relation_source('"Orders"', with_changes=True)
    assert (source.relation, source.with_changes) == ("Orders", True)
    assert source.to_element(("id", "note"), (1, "x"), INSERT) == Row(id=1, note="x")
    removed = source.to_element(("id",), (1,), DELETE)
    assert removed.get_row_kind() is RowKind.DELETE
    assert removed.id == 1


def test_a_script_prints_what_it_would_give_to_a_relation(capsys: pytest.CaptureFixture[str]) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    rows = env.from_collection([(1, "a"), Row.of_kind(RowKind.DELETE, 1, "a")])
    rows.to_relation("alerts", TWO, primary_key="id")
    env.execute()
    assert capsys.readouterr().out == "alerts> +I[id=1, note='a']\nalerts> -D[id=1, note='a']\n"


def test_a_script_cannot_read_relations() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_relation("orders").print()
    with pytest.raises(StreamProgramError, match=r"relation 'orders'.*airflow-pipelines run"):
        env.execute()
