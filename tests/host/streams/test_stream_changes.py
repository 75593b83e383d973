"""What a change of a stream program does to its state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_pipelines.contract.change_plan import OperatorChange, OperatorChangeKind
from airflow_pipelines.host.streams.kept_operators import running_operators
from airflow_pipelines.host.streams.stream_changes import SavedOperator, StreamChange, stream_change
from airflow_pipelines.program.streams import RelationInput, StreamOperator, StreamProgram, StreamState

SOURCE = StreamOperator("in", "Source: orders", "Data Source", "f0")
TOTALS = (StreamState("total", "value", "INT"), StreamState("seen", "map"))
COUNT = StreamOperator("count", "Count", "Keyed Process", "f1", ("in",), True, "STRING", 128, TOTALS)
SINK = StreamOperator("out", "Sink: print", "Data Sink", "f2", ("count",))
KEPT = (SavedOperator(SOURCE), SavedOperator(COUNT, TOTALS, 4096, has_keys=True), SavedOperator(SINK))


def _change(
    *operators: StreamOperator, inputs: tuple[RelationInput, ...] = (), fresh: frozenset[str] = frozenset()
) -> StreamChange:
    return stream_change(KEPT, StreamProgram("p", b"", operators, inputs=inputs), fresh)


def test_the_same_program_goes_on_with_everything() -> None:
    assert _change(SOURCE, COUNT, SINK) == StreamChange()


def test_state_stays_when_code_changes() -> None:
    change = _change(SOURCE, replace(COUNT, fingerprint="other"), SINK)
    assert change.dropped == frozenset()
    assert change.operators == (
        OperatorChange("count", "Count", OperatorChangeKind.MODIFIED, ("total", "seen"), (), "", None, 4096),
    )


def test_an_operator_elsewhere_with_the_same_uid_goes_on() -> None:
    assert _change(SOURCE, SINK, replace(COUNT, inputs=("out",))).dropped == frozenset()


def test_the_state_of_an_operator_that_is_gone_is_dropped() -> None:
    change = _change(SOURCE, replace(SINK, inputs=("in",)))
    assert change.dropped == {"count"}
    assert [(each.uid, each.change, each.dropped_states, each.bytes) for each in change.operators] == [
        ("count", OperatorChangeKind.REMOVED, ("total", "seen"), 4096)
    ]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (None, "total: it is not declared any more"),
        (StreamState("total", "list", "INT"), "total: it was a value state, and is a list state"),
        (StreamState("total", "value", "STRING"), "total: its type was INT, and is STRING"),
        (StreamState("total", "value"), "total: its type was INT, and is not declared"),
        (StreamState("total", "value", "INT", "10 ms"), "total: it has a time to live now"),
    ],
)
def test_a_state_that_is_declared_otherwise_is_dropped_alone(state: StreamState | None, reason: str) -> None:
    states = (TOTALS[1],) if state is None else (state, TOTALS[1])
    change = _change(SOURCE, replace(COUNT, states=states), SINK)
    assert change.dropped == {("count", "total")}
    assert [(each.kept_states, each.dropped_states, each.reason) for each in change.operators] == [(("seen",), ("total",), reason)]


def test_a_longer_time_to_live_drops_nothing() -> None:
    before = (StreamState("total", "value", "INT", "10 ms"),)
    kept = (SavedOperator(replace(COUNT, states=before), before, 1),)
    after = replace(COUNT, states=(StreamState("total", "value", "INT", "20 ms"),))
    assert stream_change(kept, StreamProgram("p", b"", (after,)), frozenset()).dropped == frozenset()


def test_nothing_is_dropped_where_it_is_not_known_what_is_declared() -> None:
    assert _change(SOURCE, replace(COUNT, states=None, fingerprint="x"), SINK).dropped == frozenset()


@pytest.mark.parametrize(
    ("operator", "fix"),
    [
        (replace(COUNT, max_parallelism=64), "set_max_parallelism(128)"),
        (replace(COUNT, key_type="INT"), "Declare the type as it was"),
        (replace(COUNT, key_type=""), "declares no type"),
    ],
)
def test_what_finds_keys_cannot_change(operator: StreamOperator, fix: str) -> None:
    refused = _change(SOURCE, operator, SINK).refusals
    assert len(refused) == 1
    assert fix in refused[0].message
    assert "'Count' (uid 'count')" in refused[0].message


def test_what_finds_keys_cannot_change_before_the_first_checkpoint_either() -> None:
    before = StreamProgram("p", b"", (COUNT,))
    after = StreamProgram("p", b"", (replace(COUNT, max_parallelism=64),))
    for with_keys, number in ((frozenset({"count"}), 1), (frozenset({"in"}), 0)):
        assert len(stream_change(running_operators({}, before, with_keys), after, frozenset()).refusals) == number


def test_what_finds_keys_may_change_before_there_is_any() -> None:
    change = stream_change((SavedOperator(COUNT),), StreamProgram("p", b"", (replace(COUNT, max_parallelism=64),)), frozenset())
    assert change.refusals == ()


def test_state_by_key_goes_with_the_keys() -> None:
    change = _change(SOURCE, replace(COUNT, is_keyed=False, states=()), SINK)
    assert (change.dropped, change.refusals) == ({"count"}, ())
    assert [each.dropped_states for each in change.operators] == [("total", "seen")]


def test_a_broadcast_state_is_dropped_alone_and_keeps_no_keys_from_changing() -> None:
    rules, limits = StreamState("broadcast/rules", "broadcast"), StreamState("broadcast/limits", "broadcast")
    before = replace(COUNT, states=(rules, limits))
    after = StreamProgram("p", b"", (replace(before, states=(rules,), key_type="INT"),))
    change = stream_change([SavedOperator(before, (rules, limits), 0, 70)], after, frozenset())
    assert change.dropped == {("count", "broadcast/limits")}
    assert change.refusals == ()
    assert [(each.kept_states, each.dropped_states, each.bytes) for each in change.operators] == [
        (("broadcast/rules",), ("broadcast/limits",), 70)
    ]


def test_what_reads_a_relation_that_starts_anew_starts_anew() -> None:
    inputs = (RelationInput("in", "orders", True),)
    change = _change(SOURCE, COUNT, SINK, inputs=inputs, fresh=frozenset({"orders"}))
    assert change.fresh_inputs == {"in"}
    assert change.dropped == {"in", "count", "out"}
    assert {each.uid: each.change for each in change.operators} == dict.fromkeys(
        ("in", "count", "out"), OperatorChangeKind.STARTED_ANEW
    )


def test_a_relation_that_is_read_for_the_first_time_drops_nothing() -> None:
    customers = StreamOperator("customers", "customers", "Data Source", "f5")
    change = _change(
        SOURCE,
        customers,
        replace(COUNT, inputs=("in", "customers")),
        SINK,
        inputs=(RelationInput("customers", "customers", False),),
    )
    assert change.fresh_inputs == {"customers"}
    assert change.dropped == frozenset()
    assert [(each.uid, each.change) for each in change.operators] == [("customers", OperatorChangeKind.ADDED)]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (("FileSource", ("/a",)), ("FileSource", ("/b",)), "it reads /b, and its position is one in /a"),
        (("FileSource", ("/a",)), ("KafkaSource", ("topic a",)), "it was a FileSource and is a KafkaSource"),
        (("KafkaSource", ("topic a", "topic b")), ("KafkaSource", ("topic b", "topic c")), ""),
        (("Tap", ()), ("Tap", ()), ""),
        (("", ()), ("FileSource", ("/b",)), ""),  # it was not written down what it read
    ],
)
def test_a_source_that_reads_something_else_begins_anew_and_what_reads_it_goes_on(
    before: tuple[str, tuple[str, ...]], after: tuple[str, tuple[str, ...]], reason: str
) -> None:
    old = replace(SOURCE, position_kind=before[0], places=before[1])
    new = replace(SOURCE, fingerprint="other", position_kind=after[0], places=after[1])
    change = stream_change((SavedOperator(old), *KEPT[1:]), StreamProgram("p", b"", (new, COUNT, SINK)), frozenset())
    assert (change.dropped, change.fresh_sources) == (({"in"}, {"in"}) if reason else (frozenset(), frozenset()))
    (operator,) = change.operators
    kind = OperatorChangeKind.STARTED_ANEW if reason else OperatorChangeKind.MODIFIED
    assert (operator.change, operator.reason) == (kind, reason)
    assert (operator.kept_states, operator.dropped_states) == (((), ("its position",)) if reason else (("its position",), ()))


def test_what_reads_another_relation_gets_its_contents_and_starts_anew() -> None:
    old = replace(SOURCE, position_kind="RelationSource", places=("orders",))
    new = replace(old, places=("visits",), fingerprint="other")
    program = StreamProgram("p", b"", (new, COUNT, SINK), inputs=(RelationInput("in", "visits", True),))
    change = stream_change((SavedOperator(old), *KEPT[1:]), program, frozenset())
    assert (change.fresh_inputs, change.fresh_sources) == ({"in"}, frozenset())
    assert change.dropped == {"in", "count", "out"}


def test_a_relation_with_other_connectors_has_another_end() -> None:
    inputs = (RelationInput("in", "orders", True, ends_with=("orders.b",)),)
    change = stream_change(KEPT, StreamProgram("p", b"", (SOURCE, COUNT, SINK), inputs=inputs), frozenset(), {"in"})
    assert (change.dropped, change.fresh_inputs) == ({"in"}, frozenset())
    (operator,) = change.operators
    assert (operator.kept_states, operator.dropped_states) == (("its position",), ("its end",))
    assert operator.reason == "its relation has other connectors"


def test_all_is_dropped_with_the_stream_program() -> None:
    change = stream_change(KEPT, None, frozenset())
    assert change.dropped == {"in", "count", "out"}
    assert {each.change for each in change.operators} == {OperatorChangeKind.REMOVED}


def test_a_source_whose_code_changes_goes_on_where_it_is() -> None:
    change = _change(replace(SOURCE, fingerprint="other"), COUNT, SINK)
    assert change.dropped == frozenset()
    assert change.operators == (
        OperatorChange("in", "Source: orders", OperatorChangeKind.MODIFIED, ("its position",), (), "", None, None),
    )


def test_the_position_of_a_source_that_is_gone_is_dropped() -> None:
    (operator, *_) = _change(replace(COUNT, inputs=()), SINK).operators
    assert (operator.uid, operator.change, operator.dropped_states) == ("in", OperatorChangeKind.REMOVED, ("its position",))


@pytest.mark.parametrize(
    ("shares", "bytes_of_total"),
    [({"total": 0.25, "seen": 0.75}, 1024), ({}, 4096), ({"total": 0.25}, 4096)],
    ids=["known", "unknown", "unknown of one"],
)
def test_the_size_of_a_state_that_is_dropped_alone_is_its_own_where_it_is_known(
    shares: dict[str, float], bytes_of_total: int
) -> None:
    kept = (SavedOperator(COUNT, TOTALS, 4096, has_keys=True, shares=shares),)
    for operators, size in (
        ((replace(COUNT, states=(TOTALS[1],)),), bytes_of_total),
        ((replace(COUNT, fingerprint="other"),), 4096),
        ((), 4096),
    ):
        change = stream_change(kept, StreamProgram("p", b"", operators), frozenset())
        assert [each.bytes for each in change.operators] == [size]
