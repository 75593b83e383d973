"""The bytes of pages: entries are found, changed and split without being decoded."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.page_layout import EXPIRY, NEVER, find
from airflow_pipelines.streams.state.page_update import FEW, update_page
from airflow_pipelines.streams.state.pages import (
    PageRows,
    Row,
    StoredPage,
    frame_entry,
    kept_in,
    key_hashes,
    key_in,
)

KEYS = st.binary(max_size=6)
TIMES = st.one_of(st.just(NEVER), st.integers(-(2**63), NEVER - 1))


def row(key, kept, times=(NEVER, NEVER, NEVER), bits=None):
    return Row(key_hashes(key)[1] if bits is None else bits, frame_entry(key, kept), times)


def page_of(rows):
    page = PageRows()
    page.extend(rows)
    return page.assemble()


@given(
    before=st.dictionaries(KEYS, st.tuples(st.binary(), st.tuples(TIMES, TIMES, TIMES)), min_size=1),
    changes=st.dictionaries(KEYS, st.one_of(st.none(), st.tuples(st.binary(), st.tuples(TIMES, TIMES, TIMES)))),
)
def test_a_changed_page_is_what_a_dict_would_be(before, changes):
    page = page_of(row(key, *kept) for key, kept in before.items())
    rows = PageRows.of(page.data)
    rows.change({key: None if kept is None else row(key, *kept) for key, kept in changes.items()})
    expected = {key: kept for key, kept in {**before, **changes}.items() if kept is not None}
    assert rows.get_contents() == {key: kept for key, (kept, _) in expected.items()}
    if not expected:
        assert len(rows) == 0
        return
    changed = rows.assemble()
    assert len(changed.data) <= rows.size()
    for key in {*before, *changes}:
        assert find(changed.data, key_hashes(key)[1], key) == (expected[key][0] if key in expected else None)
    dues = [min(times[domain] for _, times in expected.values()) for domain in (0, 1)]
    assert changed.due == tuple(None if due == NEVER else due for due in dues)
    again = PageRows.of(changed.data)
    for number, data in enumerate(again.data):
        found = tuple(NEVER if column is None else column[number] for column in again.times)
        assert found == expected[key_in(data)][1]


@pytest.mark.rest
@given(
    before=st.dictionaries(KEYS, st.tuples(st.binary(), st.tuples(TIMES, TIMES, TIMES)), min_size=1),
    changes=st.dictionaries(KEYS, st.one_of(st.none(), st.tuples(st.binary(), st.tuples(TIMES, TIMES, TIMES))), max_size=FEW + 1),
    now=st.one_of(st.none(), st.integers(-(2**63), NEVER - 1)),
)
@example(before={b"a": (b"1", (NEVER,) * 3), b"b": (b"2", (NEVER,) * 3)}, changes={b"a": (b"longer", (NEVER,) * 3)}, now=None)
@example(before={b"a": (b"1", (4, 5, 6)), b"b": (b"2", (1, NEVER, 9))}, changes={b"b": (b"2", (NEVER, NEVER, 8))}, now=5)
@example(before={b"a": (b"1", (4, 5, 6))}, changes={b"c": (b"3", (2, NEVER, NEVER)), b"": (b"", (3, 1, 7))}, now=6)
def test_a_few_changes_give_the_same_page_whether_it_is_taken_apart_or_not(before, changes, now):
    page = page_of(row(key, *kept) for key, kept in before.items())
    given_changes = {key: None if kept is None else row(key, *kept) for key, kept in changes.items()}
    rows = PageRows.of(page.data)
    rows.change(given_changes)
    copied = update_page(page.data, given_changes, now)
    columns = PageRows.of(page.data).times
    fits = all(
        kept is not None and all(time == NEVER or columns[number] is not None for number, time in enumerate(kept[1]))
        for kept in changes.values()
    )
    if not fits or len(changes) > FEW or (now is not None and rows.find_expired(now)):
        assert copied is None
        return
    again = PageRows.of(copied.data)
    assert (again.bits, again.data) == (rows.bits, rows.data)
    assert again.assemble() == rows.assemble()
    assert copied.due == rows.assemble().due


def test_keys_with_one_hash_are_told_apart_and_a_hash_is_not_found_across_two_others():
    same = page_of([row(b"a", b"1", bits=7), row(b"b", b"2", bits=7)])
    assert [find(same.data, 7, key) for key in (b"a", b"b", b"c")] == [b"1", b"2", None]
    first, second = struct.unpack("<2I", b"\x01\x02\x03\x04\x05\x06\x07\x08")
    across = struct.unpack("<I", b"\x03\x04\x05\x06")[0]
    page = page_of([row(b"a", b"1", bits=first), row(b"b", b"2", bits=second), row(b"c", b"3", bits=across)])
    assert find(page.data, across, b"c") == b"3"
    assert find(page.data, across, b"a") is None


def test_a_page_splits_by_the_bits_of_its_keys_with_their_times():
    keys = [str(number).encode() for number in range(100)]
    whole = PageRows.of(page_of(row(key, key, (number, NEVER, -number)) for number, key in enumerate(keys)).data)
    parts = whole.parts(1, 2)
    assert sum(map(len, parts)) == 100
    for number, part in enumerate(parts):
        for key, time, bits in zip(part.data, part.times[EXPIRY], part.bits, strict=True):
            assert bits >> 1 & 3 == number
            assert kept_in(key) == key_in(key) == str(-time).encode()


def test_columns_of_times_cost_nothing_where_there_are_none():
    plain = page_of([row(b"a", b"1"), row(b"b", b"2")])
    timed = page_of([row(b"a", b"1"), row(b"b", b"2", (5, NEVER, NEVER))])
    assert plain.due == (None, None)
    assert timed.due == (5, None)
    assert len(timed.data) == len(plain.data) + 16


def test_what_has_expired_is_known_without_decoding():
    rows = PageRows.of(page_of([row(b"a", b"", (NEVER, NEVER, 10)), row(b"b", b""), row(b"c", b"", (NEVER, NEVER, 11))]).data)
    assert (rows.find_expired(9), rows.find_expired(10), rows.find_expired(11)) == ([], [0], [0, 2])


def test_pages_of_another_layout_are_refused():
    page = StoredPage(b"\x02" + page_of([row(b"a", b"1")]).data[1:])
    with pytest.raises(StreamProgramError, match="layout 2, and this release reads 1"):
        find(page.data, 0, b"a")
    with pytest.raises(StreamProgramError, match="written by another release"):
        PageRows.of(page.data)
