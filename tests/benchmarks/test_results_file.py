"""Figures of one run replace those of the same name, and all others stay as they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.machine import Machine
from benchmarks.measure import Bound, Measurement, geometric_mean
from benchmarks.results_file import Results
from benchmarks.tables import filled_in

MACHINE = Machine("2026-01-01T00:00:00Z", "a processor", 2, 4.0, "Linux", "3.11", "4.2.0")


def test_new_figures_replace_old_ones_and_others_keep_their_date(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results = Results.read(path)
    results.add([Measurement("a", 1.0, "s", 2.0), Measurement("b", 1.0, "x", 2.0, Bound.AT_LEAST)], MACHINE)
    results.write(path)
    results = Results.read(path)
    results.add([Measurement("a", 3.0, "s", 2.0)], replace(MACHINE, measured_at="2026-02-02T00:00:00Z"))
    results.write(path)
    found = Results.read(path)
    assert found.ratios == {"a": 3.0, "b": 1.0}
    assert {name: dated.measured_at[:10] for name, dated in found.figures.items()} == {"a": "2026-02-02", "b": "2026-01-01"}
    assert [found.figures[name].measurement.met for name in "ab"] == [False, False]


def test_the_page_shows_what_was_measured() -> None:
    results = Results()
    figures = ["step_s", "step_views_s", "jobs", "recompute_s", "step_vs_recompute", "first_s", "batch_s", "linear"]
    results.add([Measurement(f"tpch.1e6.q{query}.{name}", query, "s") for query in (10, 9) for name in figures], MACHINE)
    results.add([Measurement("mean", 0.5, "x", 0.25)], MACHINE)
    page = "<!-- begin tpch -->\nold\n<!-- end tpch -->\n<!-- begin summary -->\n<!-- end summary -->\n"
    filled = filled_in(page, results)
    assert "old" not in filled
    assert filled.index("| q9 | 9.00") < filled.index("| q10 | 10.00")
    assert "| `mean` | 0.5 x | <= 0.25 | **missed** | 2026-01-01 |" in filled
    assert filled_in(filled, results) == filled


def test_the_mean_of_ratios() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="nothing"):
        geometric_mean([])
