"""The fast part of the suite, ``pytest --fast``: the tests that start no JVM, no server and no other program.

Which tests these are follows from what they use. A fixture that starts something asks for the fixture ``processes``, and a
test that does so itself has the marker ``processes``; tests with either are left out. A guard makes a test fail that starts
something all the same.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

_NO_JAVA = "/nonexistent (the fast part of the tests starts no JVM)"


class StartedInFastPart(BaseException):
    """A test of the fast part started a program or a server. Not an Exception: no code under test may take it for its own."""


class Guard:
    """Refuses programs and listening sockets while a test runs."""

    def __init__(self) -> None:
        self.active = False

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Look at what Python is about to do (a hook for :func:`sys.addaudithook`).

        :raises StartedInFastPart: when a test is running, and this starts a program or a server
        """
        if not self.active:
            return
        if event == "socket.bind":
            raise StartedInFastPart(f"a socket of this test listens at {arguments[1]!r}")
        if event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
            raise StartedInFastPart(f"this test starts {os.fsdecode(arguments[0])}")
        if event == "os.fork":
            raise StartedInFastPart("this test forks")


_GUARD: pytest.StashKey[Guard] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only tests that start no JVM, no server and no other program")
    parser.addoption("--ask-spark", action="store_true", help="ask Spark what planner tests know from files, and write them anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fast"):
        # Where the guard does not see it, as from a thread between two tests, there is no Java either.
        os.environ["JAVA_HOME"] = _NO_JAVA
        # Airflow imports it when the first model is looked at, in whatever test that is; and it starts a program.
        importlib.import_module("croniter")
        guard = config.stash[_GUARD] = Guard()
        sys.addaudithook(guard.audit)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = [item for item in items if is_slow(item)]
    if config.getoption("--fast"):
        items[:] = [item for item in items if not is_slow(item)]
        config.hook.pytest_deselected(items=slow)
    else:
        # Files with such tests come first: they take longest, and at the end no process shall wait for another's last file.
        files = {item.path for item in slow}
        items.sort(key=lambda item: item.path not in files)


def is_slow(item: pytest.Item) -> bool:
    """Whether a test starts a JVM, a server or another program, by what it uses and says."""
    uses = getattr(item, "fixturenames", ())
    return "processes" in uses or any(map(item.get_closest_marker, ("processes", "integration")))


@pytest.fixture(scope="session")
def processes() -> None:
    """What a fixture asks for that starts a server or another program."""


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
