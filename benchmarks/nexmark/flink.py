"""Nexmark on Flink SQL: its own environment, set up once, and the runs in it.

Flink gets what a user who knows it would give it: as many slots as there are cores, object reuse, mini-batches and split distinct
aggregates, state on the heap, no checkpoints, a blackhole sink, and for a time only what the job itself took: reading included,
planning excluded. Each of its readers has a Parquet file of its own in the order of event time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from benchmarks.nexmark.flink_queries import QUERIES
from benchmarks.nexmark.streams import Stream
from tools.flink import VERSION, Flink, run, tool

PARQUET = f"org.apache.flink:flink-sql-parquet:{VERSION}"


@dataclass(frozen=True)
class Answer:
    """What Flink says of one query: the seconds of its job or the rows of its answer, or the error that it ended with."""

    seconds: float | None = None
    rows: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class FlinkSql:
    """Flink with what its SQL needs to read Parquet.

    :param flink: where it is installed
    :param jars: what a job needs besides
    """

    flink: Flink
    jars: tuple[Path, ...]

    @classmethod
    def set_up(cls) -> FlinkSql:
        """Install what is missing.

        :raises FlinkUnavailableError: when a tool is missing or an installation fails
        """
        flink = Flink.set_up()
        jars, done = flink.folder / "jars", flink.folder / f"jars-{VERSION}"
        if not done.exists():
            # Flink reads Parquet with a jar of its own that PyPI's package lacks, and with Hadoop's client, which PySpark brings.
            run([tool("mvn"), "-q", "-B", "dependency:copy", f"-Dartifact={PARQUET}", f"-DoutputDirectory={jars}"])
            for jar in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"):
                shutil.copy(jar, jars)
            done.touch()
        return cls(flink, tuple(sorted(jars.glob("*.jar"))))

    def times(self, stream: Stream, names: Sequence[str], runs: int, cores: int, heap: str) -> Mapping[str, Answer]:
        """Measure each query's jobs over the stream, and return the median of their seconds; further jobs warm the process up.

        :param names: the queries, of those in :data:`~benchmarks.nexmark.flink_queries.QUERIES`; others are left out
        :param runs: the number of runs of each query
        :param heap: the memory of the Java process, as ``-Xmx`` takes it
        """
        jobs = [name for name in _known(names) for _ in range(runs)]
        found: dict[str, list[Answer]] = {}
        for name, answer in self._answers(stream, ("q0", "q12", *jobs), cores, heap, ())[2:]:
            found.setdefault(name, []).append(answer)
        return {name: _median(answers) for name, answers in found.items()}

    def counts(self, stream: Stream, names: Sequence[str], cores: int, heap: str) -> Mapping[str, Answer]:
        """Return the number of rows of each query's final answer."""
        return dict(self._answers(stream, _known(names), cores, heap, ("--count",)))

    def _answers(
        self, stream: Stream, names: Iterable[str], cores: int, heap: str, options: tuple[str, ...]
    ) -> list[tuple[str, Answer]]:
        command: list[str | Path] = [
            self.flink.python,
            "-m",
            "benchmarks.nexmark.flink_job",
            "--events",
            stream.whole,
            "--jars",
            *self.jars,
        ]
        command += ["--parallelism", str(cores), *options, "--", *names]
        lines = run(command, self.flink.environment(heap)).splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [(entry.pop("query"), Answer(**entry)) for entry in found]


def _median(answers: Sequence[Answer]) -> Answer:
    """Return the median answer by its seconds, or the first that is an error."""
    failed = next((answer for answer in answers if answer.seconds is None), None)
    return failed or sorted(answers, key=lambda answer: answer.seconds or 0.0)[len(answers) // 2]


def _known(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in QUERIES)
