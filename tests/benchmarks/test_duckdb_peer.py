"""The peer that computes queries anew: it gets the same queries and rows, and its answers are compared, not only counted."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.answers import difference
from benchmarks.duckdb_peer import DuckDb, even_at
from benchmarks.machine import Machine
from benchmarks.measure import Measurement
from benchmarks.nexmark.ours import Run
from benchmarks.nexmark.queries import QUERIES
from benchmarks.nexmark.recomputing import Recomputed, answers, recompute
from benchmarks.nexmark.speed import Figures
from benchmarks.nexmark.streams import write_batches, write_stream
from benchmarks.options import Options
from benchmarks.results_file import Results
from benchmarks.tables import filled_in
from benchmarks.tpch.generator import Generator
from benchmarks.tpch.queries import NAMES, queries
from benchmarks.tpch.scale import Scale
from benchmarks.tpch.schema import TABLES
from benchmarks.tpch.speed import QueryFigures, summary

MACHINE = Machine("2026-01-01T00:00:00Z", "a processor", 2, 4.0, "Linux", "3.11", "4.2.0")
EVENTS = 2_000
QUERY_NAMES = [query.name for query in QUERIES]


def _values(measurements):
    return {item.name: item.value for item in measurements}


def test_answers_are_equal_as_bags_whatever_the_types_of_numbers():
    ours = pa.table(
        {"k": pa.array([2, 1, 1], pa.int32()), "mean": [Decimal("0.333333"), None, Decimal("5.000000")], "t": ["b", "a", None]}
    )
    theirs = pa.table({"k": pa.array([1, 1, 2], pa.int64()), "avg": [5.0, None, 1 / 3], "t": [None, "a", "b"]})
    assert difference(ours, theirs) is None
    assert difference(theirs, ours) is None


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("k", [1, 1, 3]),
        ("mean", [5.0, None, 0.3334]),
        ("mean", [5.0, 0.0, 1 / 3]),
        ("t", ["a", "a", "b"]),
        ("at", pa.array([0, 0, 2], pa.timestamp("us"))),
    ],
)
def test_a_different_value_is_named(column, values):
    ours = pa.table(
        {
            "k": [1, 1, 2],
            "mean": [5.0, None, 1 / 3],
            "t": [None, "a", "b"],
            "at": pa.array([0, 0, 1], pa.timestamp("us", "UTC")),
        }
    )
    theirs = ours.set_column(ours.schema.get_field_index(column), column, values if isinstance(values, pa.Array) else [values])
    assert difference(ours, ours) is None
    assert column in difference(ours, theirs)


def test_a_row_that_is_there_twice_is_a_difference():
    assert difference(pa.table({"k": [1, 1, 2]}), pa.table({"k": [1, 2, 2]})) == "other values of k"
    assert "2 rows of 1 columns against 1 of 1" in difference(pa.table({"k": [1, 1]}), pa.table({"k": [1]}))


def test_each_nexmark_query_runs_over_the_events_so_far(tmp_path):
    pytest.importorskip("duckdb")
    stream = write_stream(tmp_path, EVENTS, (EVENTS // 2,), 1)
    found = answers(QUERIES, stream, EVENTS // 2)
    bids = sum(pq.read_metadata(batch / "bid.parquet").num_rows for batch in stream.batches(EVENTS // 2))
    assert {name: found[name].num_rows for name in ("q0", "q13", "q15")} == {"q0": bids, "q13": bids, "q15": 1}
    # Only of the auctions that query 2 looks for are there none among so few.
    assert [name for name, answer in found.items() if not answer.num_rows] == ["q2"]
    lines = []
    taken = recompute(QUERIES[:1], stream, EVENTS // 2, (EVENTS // 2, EVENTS), 1, lines.append)
    assert set(taken.seconds["q0"]) == {EVENTS // 2, EVENTS}
    assert len(lines) == 2


def test_sessions_and_windows_of_the_rewritten_queries(tmp_path):
    pytest.importorskip("duckdb")
    stream = write_stream(tmp_path, EVENTS, (EVENTS,), 1)
    seconds = pa.array([at * 1_000_000 for at in (0, 10, 21, 1)], pa.timestamp("us"))
    bids = pq.read_table(stream.batch(EVENTS, 0) / "bid.parquet").slice(0, 4)
    bids = bids.set_column(bids.schema.get_field_index("date_time"), "date_time", seconds)
    bids = bids.set_column(bids.schema.get_field_index("bidder"), "bidder", pa.array([1, 1, 1, 2]))
    bids = bids.set_column(bids.schema.get_field_index("auction"), "auction", pa.array([7, 7, 7, 8]))
    pq.write_table(bids, stream.batch(EVENTS, 0) / "bid.parquet")
    found = answers([query for query in QUERIES if query.name in ("q5", "q11", "q12")], stream, EVENTS)
    # A session goes on when the next bid comes just as it ends. Each bid is in five windows.
    assert sorted(found["q11"].column("bid_count").to_pylist()) == [1, 1, 2]
    assert sorted(found["q12"].column("bid_count").to_pylist()) == [1, 1, 1, 1]
    assert found["q5"].num_rows == 20
    assert set(found["q5"].column("num").to_pylist()) == {1}


def test_each_tpch_query_runs(tmp_path):
    pytest.importorskip("duckdb")
    generator = Generator(Scale(4_000, focus=0.5))
    tables = {name: generator.table(name) for name in list(TABLES)[:6]}
    tables |= next(generator.chunks())
    with DuckDb.open() as database:
        for name, rows in tables.items():
            pq.write_table(rows, tmp_path / f"{name}'.parquet")
            database.load(name, [tmp_path / f"{name}'.parquet"])
        found = {name: database.answer(text) for name, text in queries(generator.scale).items()}
        assert database.seconds("select 1", 1) > 0
    assert set(found) == set(NAMES)
    assert found["q1"].num_rows == 4


@pytest.mark.parametrize(
    ("recomputing", "steps", "expected"),
    [
        ({1: 2.0, 10: 20.0}, {1: 1.0, 10: 1.0}, 1.0),
        ({10: 1.0, 1: 0.1}, {1: 0.55, 10: 0.55}, 5.5),
        ({1: 0.1, 10: 1.0, 100: 10.0}, {1: 2.0, 10: 2.0, 100: 2.0}, 20.0),
        ({1: 0.1, 10: 1.0}, {1: 2.0, 10: 2.0}, 20.0),
        ({1: 0.1, 10: 0.1}, {1: 2.0, 10: 2.0}, None),
        ({1: 1.0, 10: 10.0}, {1: 2.0, 10: 20.0}, None),
    ],
)
def test_from_which_size_on_a_step_is_cheaper(recomputing, steps, expected):
    assert even_at(recomputing, steps) == (None if expected is None else pytest.approx(expected))


def test_figures_of_nexmark_and_their_means():
    recomputed = Recomputed({name: {100_000: 0.05, 1_000_000: 0.5} for name in QUERY_NAMES})
    figures = Figures(
        large=dict.fromkeys(QUERY_NAMES, 4e6),
        small=dict.fromkeys(QUERY_NAMES, 1e6),
        tiny={**dict.fromkeys(QUERY_NAMES, 0.1), "q9": 0.2},
        flink={name: 1e6 for name in QUERY_NAMES if name != "q6"},
        recomputed=recomputed,
    )
    found = {item.name: item for item in figures.measurements()}
    assert (found["nexmark_vs_flink_geomean"].value, found["nexmark_vs_flink_geomean"].met) == (pytest.approx(4.0), True)
    assert (found["nexmark_vs_flink_geomean_1e5"].value, found["nexmark_vs_flink_geomean_1e5"].met) == (pytest.approx(1.0), True)
    assert (found["nexmark_vs_flink_min"].target, found["nexmark_vs_flink_min"].met) == (0.8, True)
    assert (found["nexmark_step_1e4_s_max"].value, found["nexmark_step_1e4_s_max"].met) == (0.2, False)
    assert found["nexmark.duckdb.q1.even_at_1e4"].value == pytest.approx(200_000)
    assert found["nexmark_step_1e5_vs_duckdb_geomean_at_1000000"].value == pytest.approx(0.2)
    assert found["nexmark_step_1e4_vs_duckdb_even_at_median"].value == pytest.approx(200_000)
    assert not any(name.startswith("nexmark_vs_structured") for name in found)
    del figures.small["q3"], figures.large["q3"], figures.tiny["q3"]
    assert [item.name for item in figures.measurements() if "." not in item.name] == []
    chosen = Options(queries=("q1", "q6"), means_of_chosen=True).required(QUERY_NAMES)
    assert {"nexmark_vs_flink_geomean_1e5", "nexmark_step_1e4_s_max"} <= _values(figures.measurements(chosen)).keys()


def test_means_are_those_of_all_queries_unless_a_choice_shall_do():
    assert Options(queries=("q1",)).required(NAMES) == frozenset(NAMES)
    assert Options(queries=("q1",), means_of_chosen=True).required(NAMES) == {"q1"}
    assert Options(means_of_chosen=True).required(NAMES) == frozenset(NAMES)


def _figures(query, rows, step_s, duckdb_s):
    return QueryFigures(query, rows, 1.0, 1.0, step_s, step_s, 0.0, 1.0, duckdb_s, 1.0, ("join",))


def test_figures_of_tpch_and_their_means():
    one = _values(summary([_figures("q1", 100_000, 0.2, 0.1)], frozenset({"q1"})))
    assert one["tpch_step_vs_duckdb_geomean_1e5"] == pytest.approx(2.0)
    assert one["tpch_step_below_duckdb_1e5"] == 0
    assert summary([_figures("q1", 100_000, 0.2, 0.1)]) == []
    found = _values(summary([_figures(name, rows, 0.1, rows / 4e7) for name in NAMES for rows in (1_000_000, 10_000_000)]))
    assert found["tpch_step_below_duckdb_1e7"] == len(NAMES)
    assert found["tpch_even.q13.lineitems"] == found["tpch_step_vs_duckdb_even_at_median"] == pytest.approx(4_000_000)


def test_the_page_shows_the_peer_beside_our_steps():
    results = Results()
    figures = Figures(large={"q4": 1e6}, small={"q4": 5e5}, tiny={"q4": 0.125}, flink={"q4": 1e6})
    figures.recomputed = Recomputed({"q4": {100_000: 0.05, 1_000_000: 0.5}})
    results.add([*figures.measurements(), *_figures("q4", 1_000_000, 0.5, 0.25).measurements()], MACHINE)
    results.add([Measurement("tpch_even.q4.lineitems", 5.0, "lineitems")], MACHINE)
    page = "".join(f"<!-- begin {name} -->\n<!-- end {name} -->\n" for name in ("tpch", "nexmark", "nexmark_recomputed"))
    filled = filled_in(page, results)
    assert "| q4 | 1,000,000 | 500,000 | 1,000,000 |  | 1.00 | 0.50 | 0.125 |" in filled
    assert "| q4 | 0.050 | 0.500 | 250,000 | 400,000 |" in filled
    assert "| 0.250 | 2.00 |" in filled


def test_the_page_shows_where_the_time_of_a_step_goes():
    run = Run("q4", 1_000_000, 0.5, ("join",), {"join": 300.0, "top-k by new rows": 100.0}, 40.0, 3.0, 1)
    assert run.profile(10) == {"reading": 4.0, "join": 30.0, "top-k by new rows": 10.0, "merging": 0.3, "rest": pytest.approx(5.7)}
    results = Results()
    results.add(Figures(small={"q4": run.events_per_s}, profile={"q4": run.profile(10)}).measurements(), MACHINE)
    filled = filled_in("<!-- begin nexmark_profile -->\n<!-- end nexmark_profile -->\n", results)
    assert "| q4 | 50 | join 30, top-k by new rows 10, rest 6, reading 4 |" in filled


def test_the_rest_of_a_step_is_never_less_than_nothing():
    run = Run("q5", 100_000, 0.1, ("join",), {"join": 80.0, "accumulators": 70.0}, 10.0, 0.0, 1)
    assert run.profile(1)["rest"] == 0.0


def test_a_stream_gets_batches_of_one_more_size(tmp_path):
    stream = write_stream(tmp_path, EVENTS, (EVENTS,), 1)
    size = EVENTS // 4
    parts = write_batches(stream, size, range(2, 6))
    whole = pq.read_table(stream.batch(EVENTS, 0) / "bid.parquet")
    found = pa.concat_tables(pq.read_table(part / "bid.parquet") for part in parts[:2])
    assert found.equals(whole.slice(whole.num_rows - found.num_rows))
    assert parts[2] == stream.batch(size, 4)
