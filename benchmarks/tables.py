"""Tables in Markdown from the stored figures, and the page that shows them.

``python -m benchmarks.tables`` writes them between the markers in ``docs/performance.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.results_file import Results

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_QUERY_FIGURE = re.compile(r"tpch\.(\w+)\.(q\d+)\.(\w+)")
_NEXMARK_RATE = re.compile(r"nexmark\.(\w+)\.(q\d+)\.events_per_s")
_MARKED = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def sizes(results: Results) -> list[str]:
    """The sizes at which TPC-H queries were measured, as written in names, ascending."""
    found = {match[1] for name in results.figures if (match := _QUERY_FIGURE.fullmatch(name))}
    return sorted(found, key=float)


def by_query(results: Results, size: str) -> dict[str, dict[str, float]]:
    """The figures of each TPC-H query at one size."""
    found: dict[str, dict[str, float]] = {}
    for name, dated in results.figures.items():
        match = _QUERY_FIGURE.fullmatch(name)
        if match and match[1] == size:
            found.setdefault(match[2], {})[match[3]] = dated.measurement.value
    return dict(sorted(found.items(), key=lambda entry: int(entry[0][1:])))


def filled_in(page: str, results: Results) -> str:
    """The page with the tables between its markers made anew.

    :raises KeyError: when a marker names no table
    """
    tables = {"machine": _machine, "summary": _summary, "tpch": _tpch, "nexmark": _nexmark}
    return _MARKED.sub(lambda match: f"{match[1]}\n{tables[match[2]](results)}\n\n{match[3]}", page)


def _machine(results: Results) -> str:
    machine = results.machine
    versions = f"Python {machine['python']}, PySpark {machine['pyspark']}"
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, {versions}."


def _summary(results: Results) -> str:
    rows = []
    for name, dated in results.figures.items():
        item = dated.measurement
        if "." not in name:
            target = "" if item.target is None else f"{item.bound.value} {item.target:g}"
            verdict = {None: "", True: "met", False: "**missed**"}[item.met]
            rows.append((f"`{name}`", f"{item.value:.3g} {item.unit}", target, verdict, dated.measured_at[:10]))
    return _table(("figure", "value", "target", "", "measured"), rows)


def _tpch(results: Results) -> str:
    parts = []
    for size in sizes(results):
        rows = [
            (
                query,
                f"{row['step_s']:.2f}",
                f"{row['step_views_s']:.2f}",
                f"{row['jobs']:.0f}",
                f"{row['recompute_s']:.2f}",
                f"{row['step_vs_recompute']:.2f}",
                f"{row['first_s']:.1f}",
                f"{row['batch_s']:.1f}",
                "yes" if row["linear"] else "",
            )
            for query, row in by_query(results, size).items()
        ]
        headings = (
            "query",
            "step s",
            "of it the view",
            "jobs",
            "recompute s",
            "ratio",
            "first load s",
            "batch s",
            "linear rules only",
        )
        parts.append(f"{size} lineitems:\n\n{_table(headings, rows)}")
    return "\n\n".join(parts)


def _nexmark(results: Results) -> str:
    rates: dict[str, dict[str, float]] = {}
    for name, dated in results.figures.items():
        if match := _NEXMARK_RATE.fullmatch(name):
            rates.setdefault(match[2], {})[match[1]] = dated.measurement.value
    rows = []
    for query, row in sorted(rates.items(), key=lambda entry: int(entry[0][1:])):
        systems = [f"{row[system]:,.0f}" if system in row else "" for system in ("1e6", "1e5", "flink", "structured")]
        rows.append((query, *systems, f"{row['1e6'] / row['flink']:.2f}" if {"1e6", "flink"} <= set(row) else ""))
    return _table(
        ("query", "ours, batches of 1e6", "ours, batches of 1e5", "Flink SQL", "Structured Streaming", "ours / Flink"), rows
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


if __name__ == "__main__":
    PAGE.write_text(filled_in(PAGE.read_text(), Results.read()))
