"""The state of a stream program survives its way through traces: pages of earlier releases, and what is not by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.compaction import compact_trace
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.streams.saved_state import (
    PAGES,
    PROGRESS,
    REST,
    SCHEMAS,
    PageKey,
    due_of,
    newest_version,
    operators_of,
    page_bytes,
    pages_of,
    progress_row,
    rest_batch,
    rest_of,
)
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.streams import StreamOperator, StreamState
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.streams.worker.messages import StateChanges

Page = tuple[bytes, int | None, int | None]
OPERATORS = (
    StreamOperator("a", "count", "Keyed", "f", states=(StreamState("n", "value"),)),
    StreamOperator("b", "print", "Sink", "g"),
)


def _page_rows(pages: Mapping[PageKey, Page], weights: list[int]) -> pa.Table:
    values = [(*key, *page) for key, page in pages.items()]
    columns = list(zip(*values, strict=True)) or [()] * 7
    names = ("uid", "key_group", "depth", "bits", "data", "due_event", "due_processing")
    types = (pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.binary(), pa.int64(), pa.int64())
    arrays = {name: pa.array(column, type_) for name, column, type_ in zip(names, columns, types, strict=True)}
    return pa.table({**arrays, WEIGHT: pa.array(weights, pa.int64())})


@dataclass
class _State:
    """The traces as a release with pages wrote them, and what they must have."""

    traces: dict[str, Trace] = field(default_factory=lambda: {name: schema.empty() for name, schema in SCHEMAS.items()})
    expected: dict[PageKey, Page] = field(default_factory=dict)

    def change(self, written: Mapping[PageKey, Page], gone: list[PageKey], rest: bytes = b"") -> None:
        """Add a row with a weight for each page that is new or gone, and one without for each that is replaced."""
        removed: dict[PageKey, Page] = {key: (b"", None, None) for key in gone if key in self.expected}
        weights = [int(key not in self.expected) for key in written] + [-1] * len(removed)
        version = 1 + newest_version(self.traces[PAGES])
        if weights:
            batch = SCHEMAS[PAGES].batch(_page_rows({**written, **removed}, weights), version)
            self.traces[PAGES] = self.traces[PAGES].append(batch)
        self.traces[REST] = self.traces[REST].append(rest_batch(StateChanges(rest, False), OPERATORS, self.traces))
        self.expected = {key: page for key, page in {**self.expected, **written}.items() if key not in gone}

    def pages(self) -> dict[PageKey, Page]:
        found: dict[PageKey, Page] = {}
        for part in pages_of(self.traces[PAGES]):
            for page_id, page in part.pages.items():
                assert (part.uid, *page_id) not in found
                found[part.uid, *page_id] = page
        return found


_keys = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1))
_due = st.none() | st.integers(-(2**63), 2**63 - 1)
_change = st.tuples(st.dictionaries(_keys, st.tuples(st.binary(max_size=3), _due, _due)), st.lists(_keys, unique=True, max_size=4))


@pytest.mark.rest
@given(st.lists(_change, max_size=6), st.data())
@settings(deadline=None)
def test_pages_are_what_was_written_last(changes: list[tuple[dict[PageKey, Page], list[PageKey]]], data: st.DataObject) -> None:
    state = _State()
    for written, gone in changes:
        state.change({key: page for key, page in written.items() if key not in gone}, gone)
        assert state.pages() == state.expected
        assert operators_of(state.traces[REST]) == OPERATORS


def test_pages_in_files_are_read_some_at_a_time(tmp_path: Path) -> None:
    store, state = BatchStore(tmp_path), _State()
    state.change({("a", number, 0, 0): (b"%d" % number, number, None) for number in range(200)}, [])
    state.change({("a", number, 0, 0): (b"new", None, number) for number in range(0, 200, 3)}, [("a", 1, 0, 0), ("a", 199, 0, 0)])
    flushed = state.traces[PAGES].flush(store)
    again = Trace.from_manifest(flushed.to_manifest(), BatchStore(tmp_path), Mock(small_rows=0))
    assert not any(batch.table for batch in again.batches)
    state.traces[PAGES] = again
    assert state.pages() == state.expected
    assert max(len(part.pages) for part in pages_of(again)) < 200


@pytest.mark.core
@pytest.mark.parametrize("limits", [DEFAULT_LIMITS, replace(DEFAULT_LIMITS, small_input=0, small_rows=0)], ids=["driver", "spark"])
def test_a_page_that_came_back_after_a_merge_is_there_once(sessions: SparkSessions, tmp_path: Path, limits: Limits) -> None:
    state, store = _State(), BatchStore(tmp_path)
    context = Context(sessions, BatchViews(sessions, limits), store, limits=limits)

    def merge() -> None:
        for name in (PAGES, REST):
            state.traces[name] = state.traces[name].compact(lambda part: compact_trace(part, context))

    state.change({("a", 0, 0, 0): (b"1", 1, None), ("a", 1, 0, 0): (b"x", None, None)}, [], b"one")
    state.change({("a", 1, 0, 0): (b"y", None, 5)}, [("a", 0, 0, 0)], b"two")
    merge()
    assert state.pages() == state.expected
    state.change({("a", 0, 0, 0): (b"2", None, None)}, [("a", 1, 0, 0)], b"three")
    assert (state.pages(), rest_of(state.traces[REST])) == (state.expected, b"three")
    merge()
    assert (state.pages(), rest_of(state.traces[REST])) == ({("a", 0, 0, 0): (b"2", None, None)}, b"three")


@pytest.mark.parametrize("dues", [[5], [5, None], [None, 7], [9, 3, 3]])
def test_when_it_is_due_is_what_was_said_last(dues: list[int | None]) -> None:
    trace = SCHEMAS[PROGRESS].empty()
    for version, due in enumerate(dues, 1):
        trace = trace.append(SCHEMAS[PROGRESS].batch(progress_row(due, trace), version))
    assert due_of(trace) == dues[-1]


def test_nothing_is_due_and_nothing_is_kept_before_the_first_step() -> None:
    state = _State()
    assert (due_of(state.traces[PROGRESS]), rest_of(state.traces[REST]), state.pages()) == (None, None, {})


def test_the_sizes_of_pages_are_known_by_operator() -> None:
    state = _State()
    state.change({("a", 0, 0, 0): (b"12345", 1, None), ("a", 1, 0, 0): (b"12", None, None), ("b", 1, 0, 0): (b"1", None, None)}, [])
    state.change({("a", 0, 0, 0): (b"123", 1, None)}, [("b", 1, 0, 0)])
    assert page_bytes(state.traces[PAGES]) == {"a": 5}
