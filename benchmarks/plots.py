"""Plots of the stored figures."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
# Otherwise every run gives other identifiers inside the file, and each drawing is a change.
mpl.rcParams["svg.hashsalt"] = "benchmarks"

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from benchmarks.results_file import Results  # noqa: E402
from benchmarks.tables import by_query, sizes  # noqa: E402

_OURS, _THEIRS, _OTHERS = "#2a6f97", "#c8c8c8", "#e3b873"


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw what there are figures for; returns the files."""
    drawn = []
    if sizes(results):
        drawn.append(_tpch(results, folder / "tpch.svg"))
    if any(name.startswith("nexmark.") for name in results.figures):
        drawn.append(_nexmark(results, folder / "nexmark.svg"))
    if any(name.startswith("memory.step.") for name in results.figures):
        drawn.append(_memory(results, folder / "memory.svg"))
    return drawn


def _tpch(results: Results, path: Path) -> Path:
    found = sizes(results)
    figure, plots = plt.subplots(len(found), 1, figsize=(11, 3.4 * len(found)), squeeze=False)
    for plot, size in zip(plots[:, 0], found, strict=True):
        rows = by_query(results, size)
        places = range(len(rows))
        plot.bar([at - 0.2 for at in places], [row["recompute_s"] for row in rows.values()], 0.4, color=_THEIRS, label="recompute")
        plot.bar(
            [at + 0.2 for at in places],
            [row["step_s"] for row in rows.values()],
            0.4,
            color=_OURS,
            label="step, 1,000 changed rows",
        )
        plot.set_xticks(list(places), list(rows))
        plot.set_yscale("log")
        plot.set_ylabel("seconds")
        plot.set_title(f"TPC-H, {size} lineitems")
        plot.grid(axis="y", alpha=0.3)
        plot.legend()
    return _saved(figure, path)


def _nexmark(results: Results, path: Path) -> Path:
    figure, plot = plt.subplots(figsize=(11, 3.4))
    systems = (
        ("1e6", "ours, batches of 10^6", _OURS),
        ("flink", "Flink SQL", _THEIRS),
        ("structured", "Structured Streaming", _OTHERS),
    )
    queries = [f"q{at}" for at in range(23) if f"nexmark.1e6.q{at}.events_per_s" in results.figures]
    for shift, (system, title, color) in enumerate(systems):
        rates = [results.figures.get(f"nexmark.{system}.{query}.events_per_s") for query in queries]
        heights = [0.0 if rate is None else rate.measurement.value for rate in rates]
        plot.bar([at + 0.28 * (shift - 1) for at in range(len(queries))], heights, 0.28, color=color, label=title)
    plot.set_xticks(range(len(queries)), queries)
    plot.set_yscale("log")
    plot.set_ylabel("events per second")
    plot.set_title("Nexmark")
    plot.grid(axis="y", alpha=0.3)
    plot.legend(ncols=3)
    return _saved(figure, path)


def _memory(results: Results, path: Path) -> Path:
    figure, plot = plt.subplots(figsize=(11, 3.4))
    for name, title in (("python_rss", "Python process"), ("jvm_rss", "JVM process"), ("jvm_live", "objects in use in the JVM")):
        points = sorted(
            (int(match[1]), dated.measurement.value)
            for key, dated in results.figures.items()
            if (match := re.fullmatch(rf"memory\.step\.(\d+)\.{name}", key))
        )
        plot.plot([step for step, _ in points], [value for _, value in points], label=title)
    plot.set_xlabel("steps")
    plot.set_ylabel("MiB")
    plot.set_ylim(bottom=0)
    plot.set_title("Driver memory over small steps")
    plot.grid(alpha=0.3)
    plot.legend()
    return _saved(figure, path)


def _saved(figure: Figure, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
