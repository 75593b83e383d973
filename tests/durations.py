"""The measured durations of the suite, and the report of a run of all of it.

``make test-all`` writes ``tests/durations.json``, by which tests are shared out among shards and the sum of the core tests is
limited, and ``build/test-all.json``, which says what was run and how it ended.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pendulum
import pytest

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_suffix(".json")
_REPORT = ROOT / "build" / "test-all.json"
_SLOWEST = 10


@dataclass
class Durations:
    """The durations of tests, in seconds of the process that runs them."""

    fast: dict[str, float] = field(default_factory=dict)
    """All fast tests of a file together."""
    slow: dict[str, dict[str, float]] = field(default_factory=dict)
    """The slow tests of a file, each without the fixtures that it shares with tests of other files."""
    fixtures: dict[str, float] = field(default_factory=dict)
    """The set-up of these fixtures, which each process of a run needs once; the longest that was seen."""

    @classmethod
    def load(cls) -> Durations:
        """Read what was measured last; nothing when no run has measured."""
        return cls(**json.loads(FILE.read_text())) if FILE.exists() else cls()

    def save(self) -> None:
        """Write the file, sorted, so that two measurements can be compared."""
        FILE.write_text(json.dumps(vars(self), indent=1, sort_keys=True) + "\n")

    def of_test(self, node_id: str) -> float:
        """Return the duration of a slow test; 0 when it was never measured."""
        file, _, test = node_id.partition("::")
        return self.slow.get(file, {}).get(test, 0.0)

    def sum_by_file(self) -> dict[str, float]:
        """Return how long all tests of each file take."""
        return {file: self.fast.get(file, 0.0) + sum(self.slow.get(file, {}).values()) for file in {*self.fast, *self.slow}}

    def replace_files(self, measured: Durations) -> None:
        """Take over what was measured of some files, and keep the rest."""
        for file in {*measured.fast, *measured.slow}:
            self.fast.pop(file, None)
            self.slow.pop(file, None)
        self.fast |= measured.fast
        self.slow |= measured.slow
        self.fixtures |= measured.fixtures


class FixtureClock:
    """A clock for fixtures of the session in each process of a run, so that no test is blamed for being the first to ask."""

    def __init__(self) -> None:
        self._shared: dict[str, float] = {}
        self._depth = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        # A fixture may ask for another while it is set up: that one's time is already in its own.
        if fixturedef.scope != "session" or self._depth:
            return (yield)
        begin = time.perf_counter()
        self._depth += 1
        try:
            return (yield)
        finally:
            self._depth -= 1
            self._shared[fixturedef.argname] = time.perf_counter() - begin

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        try:
            return (yield)
        finally:
            item.user_properties.append(("shared fixtures", dict(self._shared)))
            self._shared.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        # After the last test all shared fixtures end.
        item.user_properties.append(("is last", nextitem is None))
        return (yield)


class RunReport:
    """The report of a run of the suite: durations, counts, skipped tests with their reasons, failures."""

    def __init__(self, shard: tuple[int, int] | None) -> None:
        self._shard = shard
        self._begin = pendulum.now("UTC")
        self._seconds: dict[str, float] = defaultdict(float)
        self._tiers: dict[str, str] = {}
        self._fixtures: dict[str, float] = {}
        self._outcomes: dict[str, str] = {}
        self._skipped: dict[str, list[str]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties: dict[str, Any] = dict(report.user_properties)
        # The report of a test whose process has ended in the middle of it has no properties.
        self._tiers.setdefault(report.nodeid, properties.get("tier", "unknown"))
        shared: Mapping[str, float] = properties.get("shared fixtures", {})
        if report.when == "setup":
            self._seconds[report.nodeid] -= sum(shared.values())
            for name, seconds in shared.items():
                self._fixtures[name] = max(seconds, self._fixtures.get(name, 0.0))
        if not (report.when == "teardown" and properties.get("is last")):
            self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._outcomes[report.nodeid] = "failed" if report.when == "call" else "error"
        elif report.skipped:
            self._outcomes[report.nodeid] = "skipped" if not hasattr(report, "wasxfail") else "xfailed"
            self._skipped[_reason(report)].append(report.nodeid)
        elif report.when == "call":
            self._outcomes[report.nodeid] = "passed"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        slowest = sorted(self._seconds, key=lambda test: -self._seconds[test])[:_SLOWEST]
        counts = Counter(self._outcomes.values())
        self._write_report(counts, slowest, exitstatus)
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            durations = Durations.load()
            durations.replace_files(self._measured())
            durations.save()
        write = terminalreporter.write_line
        terminalreporter.section("the whole suite" if self._shard is None else f"shard {self._shard[0]} of {self._shard[1]}")
        for reason, tests in sorted(self._skipped.items()):
            write(f"skipped, {len(tests)}: {reason}")
            for test in tests:
                write(f"    {test}")
        write("slowest:")
        for test in slowest:
            write(f"    {self._seconds[test]:7.1f} s  {test}")
        write(
            ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            + f"; {_REPORT.relative_to(ROOT)} has it all"
        )

    def _write_report(self, counts: Mapping[str, int], slowest: list[str], exitstatus: int) -> None:
        _REPORT.parent.mkdir(exist_ok=True)
        report = {
            "commit": _git("rev-parse", "HEAD"),
            "has_uncommitted_changes": bool(_git("status", "--porcelain", "--untracked-files=no")),
            "date": self._begin.to_iso8601_string(),
            "minutes": round((pendulum.now("UTC") - self._begin).total_seconds() / 60, 1),
            "shard": self._shard and "/".join(map(str, self._shard)),
            "exit_status": int(exitstatus),
            "counts": dict(counts),
            "counts_by_tier": dict(Counter(self._tiers.values())),
            "failures": sorted(test for test, outcome in self._outcomes.items() if outcome in ("failed", "error")),
            "skipped": {reason: sorted(tests) for reason, tests in sorted(self._skipped.items())},
            "slowest": {test: round(self._seconds[test], 1) for test in slowest},
        }
        _REPORT.write_text(json.dumps(report, indent=1) + "\n")

    def _measured(self) -> Durations:
        fast: dict[str, float] = defaultdict(float)
        slow: dict[str, dict[str, float]] = defaultdict(dict)
        for node_id, seconds in self._seconds.items():
            file, _, test = node_id.partition("::")
            if self._tiers[node_id] == "fast":
                fast[file] += seconds
            else:
                slow[file][test] = max(0.0, round(seconds, 1))
        return Durations(
            {file: round(seconds, 1) for file, seconds in fast.items()},
            dict(slow),
            {name: round(seconds, 1) for name, seconds in self._fixtures.items() if seconds >= 0.1},
        )


def _reason(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}"
    return report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--report", action="store_true", help="write build/test-all.json and tests/durations.json")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--report") or config.getoption("collectonly"):
        return
    config.pluginmanager.register(FixtureClock())
    if hasattr(config, "workerinput"):
        return
    # The process that the others report to.
    chosen = [name for name in ("tier", "keyword", "markexpr") if config.getoption(name)]
    if chosen or config.args_source is pytest.Config.ArgsSource.ARGS:
        raise pytest.UsageError("--report is about all tests, or a shard of them: leave out --tier, -k, -m and paths")
    config.pluginmanager.register(RunReport(config.getoption("--shard")))
