"""Nexmark on Flink SQL: its own environment, set up once, and the runs in it.

Flink gets what a user who knows it would give it: as many slots as there are cores, object reuse, mini-batches and split distinct
aggregates, state on the heap, no checkpoints, a blackhole sink, and for a time only what the job itself took: reading included,
planning excluded. Each of its readers has a Parquet file of its own in the order of event time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from benchmarks.nexmark.flink_queries import QUERIES
from benchmarks.nexmark.streams import Stream

VERSION = "2.3.0"
"""The newest version on PyPI that installs with Python 3.11 and runs on Java 17."""
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "flink"
PARQUET = f"org.apache.flink:flink-sql-parquet:{VERSION}"
PATIENCE_S = 3600.0


class FlinkUnavailableError(Exception):
    """Flink could not be set up here; the text says why."""


@dataclass(frozen=True)
class Answer:
    """What Flink says of one query: the seconds of its job or the rows of its answer, or the error that it ended with."""

    seconds: float | None = None
    rows: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Flink:
    """An environment with Flink in it: its Python, and the jars that a job needs."""

    python: Path
    jars: tuple[Path, ...]

    @classmethod
    def set_up(cls, folder: Path = FOLDER) -> Flink:
        """Install Flink into ``folder`` unless it is there already.

        :raises FlinkUnavailableError: when a tool is missing or an installation fails
        """
        python, jars, done = folder / "venv" / "bin" / "python", folder / "jars", folder / f"installed-{VERSION}"
        if not done.exists():
            uv = _tool("uv")
            _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder / "venv"])
            _run([uv, "pip", "install", "--quiet", "--system-certs", "--python", python, f"apache-flink=={VERSION}"])
            # Flink reads Parquet with a jar of its own that PyPI's package lacks, and with Hadoop's client, which PySpark brings.
            _run([_tool("mvn"), "-q", "-B", "dependency:copy", f"-Dartifact={PARQUET}", f"-DoutputDirectory={jars}"])
            for jar in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"):
                shutil.copy(jar, jars)
            done.touch()
        return cls(python, tuple(sorted(jars.glob("*.jar"))))

    def times(self, stream: Stream, names: Sequence[str], runs: int, cores: int, heap: str) -> Mapping[str, Answer]:
        """The median of the seconds of each query's jobs over the stream; jobs that are thrown away warm the process up.

        :param names: queries in :data:`~benchmarks.nexmark.flink_queries.QUERIES`; others are left out
        :param runs: how often each query runs
        :param heap: memory of the Java process, as ``-Xmx`` takes it
        """
        jobs = [name for name in _known(names) for _ in range(runs)]
        found: dict[str, list[Answer]] = {}
        for name, answer in self._answers(stream, ("q0", "q12", *jobs), cores, heap, ())[2:]:
            found.setdefault(name, []).append(answer)
        return {name: _median(answers) for name, answers in found.items()}

    def counts(self, stream: Stream, names: Sequence[str], cores: int, heap: str) -> Mapping[str, Answer]:
        """The number of rows of each query's final answer."""
        return dict(self._answers(stream, _known(names), cores, heap, ("--count",)))

    def _answers(
        self, stream: Stream, names: Iterable[str], cores: int, heap: str, options: tuple[str, ...]
    ) -> list[tuple[str, Answer]]:
        command: list[str | Path] = [
            self.python,
            "-m",
            "benchmarks.nexmark.flink_job",
            "--events",
            stream.whole,
            "--jars",
            *self.jars,
        ]
        command += ["--parallelism", str(cores), *options, "--", *names]
        environment = {**os.environ, "JVM_ARGS": f"-Xmx{heap}", "PYTHONPATH": str(ROOT)}
        lines = _run(command, environment).splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [(entry.pop("query"), Answer(**entry)) for entry in found]


def _median(answers: Sequence[Answer]) -> Answer:
    """The answer in the middle by its seconds, or the first that is an error."""
    failed = next((answer for answer in answers if answer.seconds is None), None)
    return failed or sorted(answers, key=lambda answer: answer.seconds or 0.0)[len(answers) // 2]


def _known(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in QUERIES)


def _tool(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise FlinkUnavailableError(f"{name} is needed to install Flink and is not on the path")
    return found


def _run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)
    except subprocess.CalledProcessError as error:
        raise FlinkUnavailableError(f"{' '.join(words[:4])} ... failed: {error.stderr[-2000:]}") from error
    except subprocess.TimeoutExpired as error:
        raise FlinkUnavailableError(f"{' '.join(words[:4])} ... took more than {PATIENCE_S:.0f} s") from error
    return done.stdout
