"""A real ``airflow-pipelines serve`` over a folder, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_S = 60.0
END_S = 20.0
_COMMAND = (sys.executable, "-m", "airflow_pipelines.cli")


@dataclass(frozen=True, slots=True)
class Served:
    """A running service: its URL, and its process."""

    url: str
    pid: int


@contextmanager
def served(home: Path, log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Serve the pipelines of a folder on a free port until the block ends. Its hosts outlive it: see :func:`stop_hosts`.

    :param home: the folder of the store
    :param log: the file for the service's output
    :param environment: the service's environment variables; None for those of this process
    :raises RuntimeError: when the service does not come up, the message has its output
    """
    command = [*_COMMAND, "serve", "--port", "0", "--home", str(home)]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process:
        try:
            yield Served(_announced_url(process, log), process.pid)
        finally:
            process.terminate()
            process.wait(END_S)


def stop_hosts(home: Path) -> None:
    """Stop the shared host of a folder, if there is one.

    :raises CalledProcessError: when that fails
    """
    subprocess.run([*_COMMAND, "hosts", "stop", "--home", str(home)], check=True, stdout=subprocess.DEVNULL)


def _announced_url(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"http://\S+:\d+", log.read_text()):
            return found[0]
        time.sleep(0.05)
    raise RuntimeError(f"the service did not start (exit code {process.poll()}):\n{log.read_text()}")
