"""The fast part of the suite starts nothing."""

from __future__ import annotations

import socket
import subprocess

import pytest

from tests.fast import Guard, StartedInFastPart, is_slow


@pytest.mark.parametrize(
    ("event", "arguments", "says"),
    [
        ("subprocess.Popen", ("/usr/bin/java", ["java"], None, None), "starts /usr/bin/java"),
        ("os.posix_spawn", (b"java", [], {}), "starts java"),
        ("os.fork", (), "forks"),
        ("socket.bind", (None, ("127.0.0.1", 0)), "listens at"),
    ],
)
def test_a_test_that_starts_something_fails(event: str, arguments: tuple[object, ...], says: str) -> None:
    guard = Guard()
    guard.audit(event, arguments)
    guard.active = True
    guard.audit("open", ("/a/file", "r", 0))
    with pytest.raises(StartedInFastPart, match=says):
        guard.audit(event, arguments)


def test_the_guard_is_there(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--fast"):
        assert not is_slow(request.node)
        return
    with pytest.raises(StartedInFastPart):
        subprocess.run(["true"], check=True)
    with socket.socket() as one, pytest.raises(StartedInFastPart):
        one.bind(("127.0.0.1", 0))
