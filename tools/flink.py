"""A separate environment with PyFlink, in which the comparison of results and the benchmark run it next to ours.

Flink pins versions of pandas, pyarrow and others that ours does not support, so it is never installed beside ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VERSION = "2.3.0"
"""The newest version on PyPI. It installs with Python 3.9 to 3.12 and runs on Java 11 and 17."""
NEWEST_PYTHON = (3, 12)
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "flink"
PATIENCE_S = 3600.0


class FlinkUnavailableError(Exception):
    """The error if Flink cannot be set up or run here; the text has the reason."""


@dataclass(frozen=True)
class Flink:
    """An environment with Flink.

    :param folder: its folder; other tools may keep their dependencies there
    """

    folder: Path

    @classmethod
    def set_up(cls, folder: Path = FOLDER) -> Flink:
        """Install Flink into ``folder`` unless it is there already.

        :raises FlinkUnavailableError: when ``uv`` is missing or the installation fails
        """
        flink, done = cls(folder), folder / f"installed-{VERSION}"
        if not done.exists():
            uv = tool("uv")
            python = sys.executable if sys.version_info[:2] <= NEWEST_PYTHON else "{}.{}".format(*NEWEST_PYTHON)
            run([uv, "venv", "--quiet", "--clear", "--python", python, folder / "venv"])
            run([uv, "pip", "install", "--quiet", "--system-certs", "--python", flink.python, f"apache-flink=={VERSION}"])
            done.touch()
        return flink

    @property
    def python(self) -> Path:
        """The Python that has Flink."""
        return self.folder / "venv" / "bin" / "python"

    def environment(self, heap: str | None = None) -> Mapping[str, str]:
        """Return the environment variables of a process with Flink.

        :param heap: memory of the Java process, in the form of ``-Xmx``
        :return: those of this process, with those that Flink needs
        """
        # A Python inside of the Java process, as in thread mode, does not use the virtual environment.
        packages = next((self.folder / "venv" / "lib").glob("python3.*")) / "site-packages"
        found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(packages)])}
        return found if heap is None else {**found, "JVM_ARGS": f"-Xmx{heap}"}


def tool(name: str) -> str:
    """Return the path of a program, beside this Python or on the path.

    :raises FlinkUnavailableError: when it does not exist
    """
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise FlinkUnavailableError(f"{name} is needed to install Flink and is not on the path")
    return found


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
    """Run a program to its end.

    :return: its output
    :raises FlinkUnavailableError: when it fails or takes too long
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)
    except subprocess.CalledProcessError as error:
        raise FlinkUnavailableError(f"{' '.join(words[:4])} ... failed: {error.stderr[-2000:]}") from error
    except subprocess.TimeoutExpired as error:
        raise FlinkUnavailableError(f"{' '.join(words[:4])} ... took more than {PATIENCE_S:.0f} s") from error
    return done.stdout
