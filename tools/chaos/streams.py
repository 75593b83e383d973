"""A test that kills a stream program repeatedly: ``python -m tools.chaos.streams --rounds 100``.

The program reads and writes files.

The whole host is killed, at any time or at a named point; or only the process of the program, also between two files that a
checkpoint publishes; or only the process that reads its sources. After each start each line must be in the output files and in the
relations exactly once; otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from airflow_pipelines.program.sources import ProgramSource, SourceFile
from tools.chaos.points import Moment, Point
from tools.chaos.process import HostDied, HostProcess
from tools.console import say
from tools.model import require

KEYS = 200
WAIT_S = 60.0
LARGE = 6_000
"""The number of lines of a large file: more than one message of a source."""
PROGRAM = Path(__file__).with_name("numbered_lines.py")
MODELS = ("exactly_once", "at_least_once", "none")
SQL = """create materialized view totals as select count(*) as keys, sum(n) as lines from counts;
create materialized view numbers as select key, count(*) as lines, min(n) as first, max(n) as last from numbered group by key;
"""


class Kill(StrEnum):
    """The end of a round."""

    HOST = "the host at any time"
    POINT = "the host at a point"
    WORKER = "the process of the program"
    RENAME = "the process of the program between two files"
    READING = "the process that reads"
    STOP = "a graceful stop"


POINTS = tuple(
    Point(module, function, moment)
    for module, function in (
        ("engine.streams.runtime", "StreamRuntime.open"),
        ("engine.streams.runtime", "StreamRuntime.step"),
        ("engine.streams.runtime", "StreamRuntime.take_checkpoint"),
        ("engine.storage.state_files", "adopt_state"),
        ("engine.storage.state_files", "link_state"),
        ("engine.streams.runtime", "StreamRuntime.committed"),
        ("engine.storage.checkpoint", "CheckpointStore.save"),
        ("engine.storage.journal", "Journal.append"),
        ("engine.storage.journal", "Journal.discard"),
        ("host.checkpoints.durability", "Durability.commit"),
        ("host.steps.recovery", "Recovery.restore"),
    )
    for moment in Moment
)


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(prog="chaos.streams", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no new round is begun after this time")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--folder", type=Path, default=None, help="where to keep the pipeline; a temporary folder by default")
    arguments = parser.parse_args()
    say(f"seed {arguments.seed}")
    if arguments.folder is not None:
        return _run(arguments, arguments.folder)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        return _run(arguments, Path(folder))


def _run(arguments: argparse.Namespace, folder: Path) -> int:
    rounds = StreamRounds(folder, random.Random(arguments.seed))  # noqa: S311
    until = time.monotonic() + arguments.minutes * 60
    try:
        while rounds.done < arguments.rounds and time.monotonic() < until:
            rounds.one()
        rounds.last()
    except AssertionError as error:
        say(f"round {rounds.done + 1} ({rounds.what}): {error}")
        say((folder / "pipeline.log").read_text(errors="replace")[-5000:])
        return 1
    finally:
        rounds.host.kill()
        say(rounds.summary())
    return 0


class StreamRounds:
    """The rounds over one pipeline: start it, compare its output with its input, add files, kill something.

    :param folder: the folder of the pipeline, its input and its output
    :param dice: the source of random choices
    """

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.done = 0
        self.what = ""
        self._model = ""
        self._folder = folder
        self._dice = dice
        self._files = 0
        self._lines: set[str] = set()
        self._kills: Counter[str] = Counter()
        (folder / "in").mkdir()
        (folder / "out").mkdir()
        (folder / "taken").mkdir()
        file = SourceFile(PROGRAM.name, PROGRAM.read_text())
        self._program = ProgramSource(SQL, stream_files=(file,), stream_arguments=(str(folder),))
        self.host = HostProcess(folder, {})

    def one(self, kill: Kill | None = None) -> None:
        """Run one round.

        :param kill: its end; at random by default
        :raises AssertionError: when the output is wrong, or the pipeline does not start
        """
        kill = self._dice.choice(list(Kill)) if kill is None else kill
        model = self._model = self._dice.choice(MODELS)
        interval = self._dice.choice([1, 1, 3])
        self.host.runtime_config = {"fault_tolerance": {"model": model, "checkpoint_interval_secs": interval}}
        point, call = (self._dice.choice(POINTS), self._dice.randint(1, 12)) if kill is Kill.POINT else (None, 1)
        self.what = f"{model}, a checkpoint every {interval} s, kill {kill if point is None else f'at call {call} {point}'}"
        try:
            self.host.start(self._program, point, call)
            self._check()
            self._end(kill)
        except HostDied:
            if kill is Kill.RENAME:
                # The host may end before the round has looked whether the process of the program has.
                require("SIGKILL" in self.host.wait_for_failure(), "the error does not say what happened")
            elif point is None:
                raise AssertionError("the host died, and nobody killed it") from None
        self.host.kill()
        self._kills[kill] += 1
        self.done += 1
        say(f"{self.done:4} {self.what}: {len(self._lines)} lines in {self._files} files")
        # Input while nothing runs.
        self._give()

    def last(self) -> None:
        """Start once more, compare, and stop."""
        self.what = "the last start"
        self.host.start(self._program)
        self._check()
        self._stop()

    def summary(self) -> str:
        """Return a summary of one line."""
        kills = ", ".join(f"{count} times {kill}" for kill, count in self._kills.items())
        hidden = sum(1 for _ in (self._folder / "out").glob(".*"))
        return f"{self.done} rounds, {len(self._lines)} lines: {kills}; {hidden} files of killed runs are hidden"

    def _end(self, kill: Kill) -> None:
        match kill:
            case Kill.HOST:
                self._give_for(self._dice.uniform(0.2, 4.0))
            case Kill.POINT:
                self._give_for(8.0)
            case Kill.WORKER | Kill.READING:
                self._give_for(self._dice.uniform(0.2, 4.0))
                os.kill(self._process("runs it" if kill is Kill.WORKER else "reads its sources"), signal.SIGKILL)
                require("SIGKILL" in self.host.wait_for_failure(), "the error does not say what happened")
            case Kill.RENAME:
                (self._folder / "die").write_text(str(self._dice.randint(1, 4)))
                self._give_for(WAIT_S, while_=self._is_to_be_killed)
                require("SIGKILL" in self.host.wait_for_failure(), "the error does not say what happened")
            case Kill.STOP:
                self._give_for(self._dice.uniform(0.2, 2.0))
                self._stop()

    def _is_to_be_killed(self) -> bool:
        """Return True if the process has not come to the rename yet. Without a checkpoint interval, request a checkpoint."""
        if self._model == "none":
            self.host.call("POST", "/checkpoint")
        return (self._folder / "die").exists()

    def _stop(self) -> None:
        self.host.call("POST", "/suspend")
        self.host.wait_for("Suspended")

    def _process(self, what: str) -> int:
        return int(re.findall(rf"process (\d+) {what}", (self._folder / "pipeline.log").read_text())[-1])

    def _give_for(self, seconds: float, while_: Callable[[], bool] = lambda: True) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and while_():
            self._give()
            if self._dice.random() < 0.2:
                self._take()
            time.sleep(self._dice.choice([0.0, 0.02, 0.2]))
            if not self.host.alive:
                raise HostDied

    def _give(self) -> None:
        """Add an input file, which appears when it is complete. Some of its lines were there before."""
        lines = []
        for _ in range(self._dice.choice([1, 1, 5, 50, LARGE if self._dice.random() < 0.05 else 100])):
            key = self._dice.randrange(KEYS)
            lines.append(f"{key} {self._dice.randrange(len(self._lines) + 20)}")
        self._lines.update(lines)
        name = f"{self._files:06}.txt"
        self._files += 1
        hidden = self._folder / "in" / f".{name}"
        hidden.write_text("".join(f"{line}\n" for line in lines))
        hidden.rename(hidden.with_name(name))

    def _take(self) -> None:
        """Remove all output files that a reader sees."""
        for path in self._shown():
            path.rename(self._folder / "taken" / path.name)

    def _shown(self) -> list[Path]:
        files = [path for path in (self._folder / "out").iterdir() if not path.name.startswith(".")]
        require(all(path.name.startswith("part-") and path.suffix != ".inprogress" for path in files), "the names of the files")
        return files

    def _check(self) -> None:
        """Compare the relations and the output files with the input lines.

        :raises HostDied: when the host is killed meanwhile
        """
        deadline = time.monotonic() + WAIT_S
        while (found := self.host.query("select count(*) as n from numbered")[0]["n"]) < len(self._lines):
            require(time.monotonic() < deadline, f"{found} of {len(self._lines)} lines after {WAIT_S:.0f} s")
            time.sleep(0.1)
        rows = self.host.query("select * from numbered")
        require(Counter(row["line"] for row in rows) == Counter(self._lines), "the lines of the relation")
        counts = Counter(int(line.split()[0]) for line in self._lines)
        require(sorted((row["key"], row["n"]) for row in rows) == _all_numbers(counts), "the numbers of the lines")
        require({row["key"]: row["n"] for row in self.host.query("select * from counts")} == counts, "the counts")
        total = {"keys": len(counts), "lines": counts.total() if counts else None}
        require(self.host.query("select * from totals") == [total], "the view of the counts")
        numbers = sorted((row["key"], row["lines"], row["first"], row["last"]) for row in self.host.query("select * from numbers"))
        require(numbers == [(key, count, 1, count) for key, count in sorted(counts.items())], "the view of the lines")
        require(self.host.call("POST", "/checkpoint").status_code in {200, 202}, "the checkpoint")
        expected = Counter(f"{row['n']} {row['line']}" for row in rows)
        deadline = time.monotonic() + WAIT_S
        while (written := self._written()) != expected:
            missing, more = expected - written, written - expected
            wrong = f"the files: missing {missing.total()} {list(missing)[:3]}, too many {more.total()} {list(more)[:3]}"
            require(not more and time.monotonic() < deadline, wrong)
            time.sleep(0.1)

    def _written(self) -> Counter[str]:
        """Return the lines that a reader of the output sees, including those of removed files."""
        files = [*self._shown(), *(self._folder / "taken").iterdir()]
        return Counter(line for path in files for line in path.read_text().splitlines())


def _all_numbers(counts: Counter[int]) -> list[tuple[int, int]]:
    return [(key, number) for key, count in sorted(counts.items()) for number in range(1, count + 1)]


if __name__ == "__main__":
    sys.exit(main())
