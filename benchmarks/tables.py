"""Tables in Markdown from the stored figures, and the page that shows them.

``python -m benchmarks.tables`` writes them between the markers in ``docs/performance.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.connectors.titles import TITLES
from benchmarks.results_file import Results

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_QUERY_FIGURE = re.compile(r"tpch\.(\w+)\.(q\d+)\.(\w+)")
_NEXMARK_RATE = re.compile(r"nexmark\.(\w+)\.(q\d+)\.events_per_s")
_NEXMARK_STEP = re.compile(r"nexmark\.(\w+)\.(q\d+)\.step_s")
_NEXMARK_PROFILE = re.compile(r"nexmark\.profile\.(q\d+)\.(\w[\w-]*)_ms")
_NEXMARK_RECOMPUTED = re.compile(r"nexmark\.duckdb\.(q\d+)\.(\w+)")
_STREAM_RATE = re.compile(r"streams\.(\w+)\.(\w+)\.elements_per_s")
_STREAM_LATENCY = re.compile(r"streams\.latency\.(\w+)\.ms_(median|p95)")
_STREAM_GROWTH = re.compile(r"streams\.growth\.(\w+)\.(\w+)")
_STREAM_PROFILE = "streams.profile."
_STREAM_SYSTEMS = {
    "ours": "ours, as a script",
    "ours_deployed": "ours, deployed",
    "ours_deployed_shown": "ours, deployed, until a reader of a view has it",
    "flink_thread": "PyFlink, threads",
    "flink_process": "PyFlink, processes",
    "flink_process_at_once": "PyFlink, processes, each element at once",
    "quix": "Quix Streams",
}
_LATENCY_ONLY = frozenset({"ours_deployed_shown", "flink_process_at_once"})
_WHOLE = 100
"""From here on figures are shown as whole numbers."""
_MARKED = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def sizes(results: Results) -> list[str]:
    """Return the sizes at which TPC-H queries were measured, as written in names, ascending."""
    found = {match[1] for name in results.figures if (match := _QUERY_FIGURE.fullmatch(name))}
    return sorted(found, key=float)


def by_query(results: Results, size: str) -> dict[str, dict[str, float]]:
    """Return the figures of each TPC-H query at one size."""
    found: dict[str, dict[str, float]] = {}
    for name, dated in results.figures.items():
        match = _QUERY_FIGURE.fullmatch(name)
        if match and match[1] == size:
            found.setdefault(match[2], {})[match[3]] = dated.measurement.value
    return dict(sorted(found.items(), key=lambda entry: int(entry[0][1:])))


def filled_in(page: str, results: Results) -> str:
    """Return the page with new tables between its markers.

    :raises KeyError: if a marker names no table
    """
    tables = {
        "machine": _machine,
        "summary": _summary,
        "tpch": _tpch,
        "nexmark": _nexmark,
        "nexmark_recomputed": _nexmark_recomputed,
        "nexmark_profile": _nexmark_profile,
        "streams": _stream_rates,
        "stream_latency": _stream_latency,
        "stream_growth": _stream_growth,
        "stream_profile": _stream_profile,
        **{f"connectors_{system}": partial(_connectors, TITLES[system]) for system in TITLES},
    }
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
                *_if_there(row, {"duckdb_s": ".3f", "step_vs_duckdb": ".2f"}),
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
            "DuckDB recomputes s",
            "step / DuckDB",
            "first load s",
            "batch s",
            "linear rules only",
        )
        parts.append(f"{size} lineitems:\n\n{_table(headings, rows)}")
    return "\n\n".join(parts)


def _nexmark(results: Results) -> str:
    rates, tiny = _matches(results, _NEXMARK_RATE), _matches(results, _NEXMARK_STEP)
    rows = []
    for query in _by_number({row for rates_of_system in rates.values() for row in rates_of_system}):
        row = {system: found[query] for system, found in rates.items() if query in found}
        shown = _if_there(row, dict.fromkeys(("1e6", "1e5", "flink", "structured"), ",.0f"))
        against = [f"{row[size] / row['flink']:.2f}" if {size, "flink"} <= set(row) else "" for size in ("1e6", "1e5")]
        rows.append((query, *shown, *against, *_if_there(tiny.get("1e4", {}), {query: ".3f"})))
    return _table(
        (
            "query",
            "ours, batches of 1e6",
            "ours, batches of 1e5",
            "Flink SQL",
            "Structured Streaming",
            "ours / Flink, 1e6",
            "ours / Flink, 1e5",
            "a step of 1e4, s",
        ),
        rows,
    )


def _nexmark_recomputed(results: Results) -> str:
    found = _matches(results, _NEXMARK_RECOMPUTED)
    if not found:
        return "Not measured yet."
    sizes = sorted({name for row in found.values() for name in row if name.startswith("at_")}, key=lambda name: int(name[3:-2]))
    shown = {**dict.fromkeys(sizes, ".3f"), "even_at_1e4": ",.0f", "even_at_1e5": ",.0f"}
    rows = [(query, *_if_there(found[query], shown)) for query in _by_number(found)]
    seconds = [f"over {int(name[3:-2]):,} events, s" for name in sizes]
    return _table(("query", *seconds, "a step of 1e4 is cheaper from", "a step of 1e5 is cheaper from"), rows)


def _nexmark_profile(results: Results) -> str:
    found = _matches(results, _NEXMARK_PROFILE)
    if not found:
        return "Not measured yet."
    rate = _matches(results, _NEXMARK_RATE).get("1e5", {})
    rows = []
    for query in _by_number(found):
        parts = sorted(found[query].items(), key=lambda part: -part[1])
        shown = ", ".join(f"{name.replace('_', ' ')} {milliseconds:.0f}" for name, milliseconds in parts if milliseconds >= 0.5)
        rows.append((query, f"{100_000_000 / rate[query]:.0f}" if query in rate else "", shown))
    return _table(("query", "a step of 1e5, ms", "where they go, ms"), rows)


def _if_there(row: Mapping[str, float], formats: Mapping[str, str]) -> list[str]:
    """Format the figures of a row with these names; the text of a missing figure is empty."""
    return [format(row[name], form) if name in row else "" for name, form in formats.items()]


def _by_number(queries: Iterable[str]) -> list[str]:
    return sorted(queries, key=lambda query: int(query[1:]))


def _matches(results: Results, pattern: re.Pattern[str]) -> dict[str, dict[str, float]]:
    """Return the figures whose names match the pattern, by the pattern's two groups."""
    found: dict[str, dict[str, float]] = {}
    for name, dated in results.figures.items():
        if match := pattern.fullmatch(name):
            found.setdefault(match[1], {})[match[2]] = dated.measurement.value
    return found


def _stream_rates(results: Results) -> str:
    systems = {system: title for system, title in _STREAM_SYSTEMS.items() if system not in _LATENCY_ONLY}
    rows = []
    for workload, rates in _matches(results, _STREAM_RATE).items():
        ratio = f"{rates['ours'] / rates['flink_thread']:.1f}" if {"ours", "flink_thread"} <= set(rates) else ""
        rows.append((workload, *(f"{rates[system]:,.0f}" if system in rates else "" for system in systems), ratio))
    return _table(("program", *systems.values(), "ours / PyFlink, threads"), rows)


def _stream_latency(results: Results) -> str:
    found = _matches(results, _STREAM_LATENCY)
    rows = [(_STREAM_SYSTEMS[system], f"{row['median']:.2g}", f"{row['p95']:.2g}") for system, row in found.items()]
    return _table(("system", "median, ms", "95 of 100 within, ms"), rows)


def _stream_growth(results: Results) -> str:
    rows = [
        (size, f"{row['step_s']:.3f}", f"{row['step_and_checkpoint_s']:.3f}", f"{row['rss_mib']:.0f}")
        for size, row in _matches(results, _STREAM_GROWTH).items()
    ]
    return _table(("keys", "step, s", "step and checkpoint, s", "peak of the process, MiB"), rows)


def _stream_profile(results: Results) -> str:
    shares = {name: dated.measurement.value for name, dated in results.figures.items() if name.startswith(_STREAM_PROFILE)}
    ordered = sorted(shares.items(), key=lambda entry: -entry[1])
    return _table(("part", "share"), [(name.removeprefix(_STREAM_PROFILE), f"{share:.0%}") for name, share in ordered])


def _connectors(titles: Mapping[str, str], results: Results) -> str:
    rows = []
    for name, title in titles.items():
        if name in results.figures:
            item = results.figures[name].measurement
            value = f"{item.value:,.0f}" if item.value >= _WHOLE else f"{item.value:.2g}"
            target = "" if item.target is None else f"{item.bound.value} {item.target:,g}"
            rows.append((title, f"{value} {item.unit}", target))
    return _table(("", "value", "target"), rows)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


if __name__ == "__main__":
    PAGE.write_text(filled_in(PAGE.read_text(), Results.read()))
