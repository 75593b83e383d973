"""Ends of relations in a pipeline, and splits that have had nothing to read yet."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_pipelines.streams.relations import RelationSource
from airflow_pipelines.streams.state.entries import EVENT_TIME
from airflow_pipelines.streams.worker.messages import FeedKind, RelationFeed, SourceFeed
from tests.streams.ends_of_sources import LINES, USES, timed
from tests.streams.worker.programs import Endless, Kept, begin, elements, ended, program, rows, splits
from tests.streams.worker.test_run import Watermarks, watching


def _relation() -> RelationSource:
    return RelationSource("lines", False, lambda names, values, kind: dict(zip(names, values, strict=True)))


def _rows(*lines: str) -> RelationFeed:
    schema = pa.schema([("line", pa.string()), ("__weight", pa.int64())])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as writer:
        writer.write_table(pa.table([list(lines), [1] * len(lines)], schema=schema))
    return RelationFeed("in", out.getvalue().to_pybytes())


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("at_source", [True, False], ids=["at source", "after it"])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_relation_ends_behind_its_last_row(use: str, at_source: bool, restarted: bool) -> None:
    define, before, at_end = USES[use]
    bound = program(define(timed(_relation(), at_source, 1)))
    run, _ = begin(bound, now_ms=0)
    found = rows(run.step(0, [_rows(*LINES)]))
    assert sorted(found) == sorted((repr(each),) for each in before)
    if restarted:
        kept = Kept()
        kept.save(run)
        run, _ = begin(bound, kept.rest, kept.stored())
    stepped = run.step(1, [ended(0)])
    assert (rows(stepped), stepped.has_ended) == ([(repr(each),) for each in at_end], True)


@pytest.mark.parametrize("restarted", [True, False])
def test_rows_that_come_after_the_end_of_a_relation_are_counted_in_a_warning(restarted: bool) -> None:
    bound = program(timed(_relation(), True, 1))
    run, _ = begin(bound, now_ms=0)
    assert run.step(0, [_rows("a,1"), ended(0)]).has_ended
    if restarted:
        kept = Kept()
        kept.save(run)
        run, _ = begin(bound, kept.rest, kept.stored())
    stepped = run.step(1, [_rows("a,2", "a,3")])
    assert rows(stepped) == []
    (warning,) = stepped.warnings
    assert warning.startswith("2 rows came to 'Source: in' after its end")
    assert "stays_open=True" in warning


@pytest.mark.parametrize("restarted", [True, False])
def test_a_split_without_input_holds_nobody_back_before_its_first_element(restarted: bool) -> None:
    bound = watching()
    run, _ = begin(bound, now_ms=0)
    run.step(1, [splits(2), SourceFeed("in", 1, FeedKind.NO_INPUT)])
    assert rows(run.step(2, [elements([("a", 10), ("a", 20)], 0)])) == [("10",)]
    if restarted:
        kept = Kept()
        kept.save(run)
        run, _ = begin(bound, kept.rest, kept.stored())
    assert rows(run.step(3, [SourceFeed("in", 1, FeedKind.NO_INPUT), elements([("a", 30)], 0)])) == [("20",)]
    assert rows(run.step(4, [elements([("a", 35)], 1), elements([("a", 40)], 0)])) == [("30",)]
    assert rows(run.step(5, [SourceFeed("in", 1, FeedKind.NO_INPUT), elements([("a", 50)], 0)])) == []  # it has given something


def test_keys_that_wait_are_counted_when_event_time_stands_still() -> None:
    stream = timed(Endless([]), True, 1)
    run, _ = begin(program(stream.key_by(lambda value: value[0]).process(Watermarks()).uid("watch"), hot_keys=1), now_ms=0)
    run.step(0, [splits(1), elements(["a,10", "b,20", "c,30", "a,30"])])
    assert run.metrics()["watch", 0].waiting_keys is None
    run.metrics()
    assert run.metrics()["watch", 0].waiting_keys == 2
    part = next(part for part in run._runner.parts() if part.uid == "watch")
    assert part.store is not None
    assert part.store.keys_with_timers(EVENT_TIME) == 2
    run.step(1, [elements(["d,40"])])
    assert run.metrics()["watch", 0].waiting_keys is None
