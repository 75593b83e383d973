"""A process for tests: does what it is told over its connection."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from airflow_pipelines.streams.processes import connect_to_parent


def main() -> None:
    """Obey."""
    connection = connect_to_parent()
    while True:
        try:
            what, argument = connection.recv()
        except EOFError:
            sys.stdout.write("saw the end\n")
            return
        answer = _do(what, argument)
        connection.send(answer)


def _do(what: str, argument: Any) -> Any:
    if what == "paths":
        return sys.path
    if what == "environment":
        return dict(os.environ), str(Path.cwd())
    if what == "write":
        os.write(1, argument)
    elif what == "print":
        sys.stdout.write(f"{argument}\n")
        sys.stderr.write(f"{argument}\n")
    elif what == "exit":
        sys.stderr.write("about to end\n")
        os._exit(argument)
    elif what == "signal":
        os.kill(os.getpid(), getattr(signal, argument))
    elif what == "sleep":
        time.sleep(argument)
    elif what == "child":
        return subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({argument})"]).pid
    return None


if __name__ == "__main__":
    main()
