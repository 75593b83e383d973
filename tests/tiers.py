"""The three tiers of the suite, and the choice of a part of it.

=====  ==================  =================================================================================
tier   command             contents
=====  ==================  =================================================================================
fast   ``make test-fast``  tests that start no JVM, no server and no other program
core   ``make test``       the fast tests, and of the slow ones those with the marker ``core``
rest   ``make test-all``   everything
=====  ==================  =================================================================================

The first border follows from what a test uses. A fixture that starts something asks for the fixture ``processes``, and a test
that does so itself has the marker ``processes``; these are slow. A guard makes a fast test fail that starts something all the same.
The second border is a decision: ``docs/testing.md`` says by which rule a slow test is core, and which fast tests are left to the
last tier.
"""

from __future__ import annotations

import heapq
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from tests.durations import Durations

_NO_JAVA = "/nonexistent (the fast tests start no JVM)"
_UNKNOWN_FILE_S = 10.0
"""The expected duration of a file that was never measured."""


class Tier(StrEnum):
    """A part of the suite; tiers do not overlap."""

    FAST = "fast"
    CORE = "core"
    REST = "rest"


@dataclass(frozen=True)
class CollectedTest:
    """A test of the suite as far as tiers are concerned."""

    node_id: str
    tier: Tier
    named_cases: frozenset[str]
    """The ids that markers ``core`` and ``rest`` of the test name."""
    slow_because: str | None
    """The reason for which a core test may take longer than others."""
    fixtures: tuple[str, ...]

    @property
    def file(self) -> str:
        return self.node_id.partition("::")[0]

    @property
    def case(self) -> str | None:
        """The id of this case of a parametrized test."""
        return self.node_id.partition("[")[2].removesuffix("]") or None


COLLECTED: pytest.StashKey[list[CollectedTest]] = pytest.StashKey()
"""All tests that were collected, those included that the options leave out."""


class StartedInFastTest(BaseException):
    """A fast test started a program or a server. Not an Exception: no code under test may take it for its own."""


class Guard:
    """Refuses programs and listening sockets while a test runs."""

    def __init__(self) -> None:
        self.active = False

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Look at what Python is about to do (a hook for :func:`sys.addaudithook`).

        :raises StartedInFastTest: when a test is running, and this starts a program or a server
        """
        if not self.active:
            return
        if event == "socket.bind":
            raise StartedInFastTest(f"a socket of this test listens at {arguments[1]!r}")
        if event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
            raise StartedInFastTest(f"this test starts {os.fsdecode(arguments[0])}")
        if event == "os.fork":
            raise StartedInFastTest("this test forks")


_GUARD: pytest.StashKey[Guard] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers = [str(tier) for tier in Tier]
    parser.addoption("--tier", action="append", choices=tiers, default=[], help="run only tests of this tier; may be repeated")
    parser.addoption("--shard", metavar="K/N", type=parse_shard, help="run only the K-th of N parts of about equal duration")
    parser.addoption("--ask-spark", action="store_true", help="ask Spark what planner tests know from files, and write them anew")


def parse_shard(text: str) -> tuple[int, int]:
    """Read a shard such as ``1/3``.

    :return: the shard's number, from 1 on, and the number of shards
    :raises ValueError: if it is no such fraction
    """
    number, _, count = text.partition("/")
    if not 1 <= int(number) <= int(count):
        raise ValueError(f"shard {text}: the first number must be between 1 and the second")
    return int(number), int(count)


def chosen_tiers(config: pytest.Config) -> set[Tier]:
    """Return the tiers that the options choose: all of them when they name none."""
    return set(map(Tier, config.getoption("--tier"))) or set(Tier)


_SHORT_RUN = "SHORT_TEST_RUN"


def examples(variable: str, usual: int) -> int:
    """Return how many examples a search tries; a run that leaves out tests of the last tier tries a fifth of the usual number.

    :param variable: the environment variable that says otherwise
    :param usual: the number for ``make test-all``, and for whoever runs the test by name
    """
    default = usual if _SHORT_RUN not in os.environ else max(3, usual // 5)
    return int(os.environ.get(variable, default))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COLLECTED] = []
    # Modules of tests ask for it while they are imported.
    os.environ.pop(_SHORT_RUN, None)
    if Tier.REST not in chosen_tiers(config):
        os.environ[_SHORT_RUN] = "1"
    if chosen_tiers(config) == {Tier.FAST}:
        # Where the guard does not see it, as from a thread between two tests, there is no Java either.
        os.environ["JAVA_HOME"] = _NO_JAVA
        # Airflow imports it when the first model is looked at, in whatever test that is; and it starts a program.
        importlib.import_module("croniter")
        guard = config.stash[_GUARD] = Guard()
        sys.addaudithook(guard.audit)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = [_describe_test(item) for item in items]
    config.stash[COLLECTED].extend(tests)
    is_chosen = _make_choice(config, tests)
    chosen = [(test, item) for test, item in zip(tests, items, strict=True) if is_chosen(test)]
    config.hook.pytest_deselected(items=[item for test, item in zip(tests, items, strict=True) if not is_chosen(test)])
    # Files with slow tests come first: they take longest, and at the end no process shall wait for another's last file.
    slow_files = {item.path for test, item in chosen if test.tier is not Tier.FAST}
    items[:] = sorted((item for _, item in chosen), key=lambda item: item.path not in slow_files)


def _make_choice(config: pytest.Config, tests: Sequence[CollectedTest]) -> Callable[[CollectedTest], bool]:
    tiers = chosen_tiers(config)
    shard = config.getoption("--shard")
    if shard is None:
        return lambda test: test.tier in tiers
    number, count = shard
    ours = share_files({test.file for test in tests}, Durations.load().sum_by_file(), count)[number - 1]
    return lambda test: test.tier in tiers and test.file in ours


def share_files(files: set[str], seconds: Mapping[str, float], count: int) -> list[set[str]]:
    """Share files out so that all shards take about equally long: the longest first, each to the shard with the least so far.

    :param files: the files of the suite
    :param seconds: their measured durations; one that was never measured is taken to be of usual length
    :param count: the number of shards
    :return: the files of each shard
    """
    shards: list[tuple[float, int, set[str]]] = [(0.0, number, set()) for number in range(count)]
    for file in sorted(files, key=lambda file: (-seconds.get(file, _UNKNOWN_FILE_S), file)):
        total, number, shard = heapq.heappop(shards)
        heapq.heappush(shards, (total + seconds.get(file, _UNKNOWN_FILE_S), number, shard | {file}))
    return [shard for _, _, shard in sorted(shards, key=lambda each: each[1])]


def _describe_test(item: pytest.Item) -> CollectedTest:
    """Find the tier of a test.

    A marker with ids, such as ``@pytest.mark.core("a-b", "c")``, is for these cases only. The marker ``core`` of a test goes before
    that of its file, and ``rest`` before both; it takes out a fast test, too.
    """
    case = item.nodeid.partition("[")[2].removesuffix("]")
    closest = item.get_closest_marker("core")
    core = closest if closest and (not closest.args or case in closest.args) else None
    is_left_out = any(not marker.args or case in marker.args for marker in item.iter_markers("rest"))
    tier = Tier.REST if is_left_out else Tier.FAST if not is_slow(item) else Tier.CORE if core else Tier.REST
    item.user_properties.append(("tier", str(tier)))
    return CollectedTest(
        item.nodeid,
        tier,
        frozenset(case for name in ("core", "rest") for marker in item.iter_markers(name) for case in marker.args),
        core.kwargs.get("slow_because") if core else None,
        tuple(getattr(item, "fixturenames", ())),
    )


def is_slow(item: pytest.Item) -> bool:
    """Return True if a test starts a JVM, a server or another program, by the fixtures and markers that it has."""
    uses = getattr(item, "fixturenames", ())
    return "processes" in uses or any(map(item.get_closest_marker, ("processes", "integration")))


@pytest.fixture(scope="session")
def processes() -> None:
    """Mark whatever asks for this as starting a server or another program."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    guard = item.config.stash.get(_GUARD, None)
    if guard is None:
        return (yield)
    guard.active = True
    try:
        return (yield)
    finally:
        guard.active = False
