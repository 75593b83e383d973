"""Rounds of work and kills: ``python -m tools.chaos --rounds 500``. The exit code is 1 if a row is wrong."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tools.chaos.points import POINTS, Point
from tools.chaos.process import HostDied, HostProcess
from tools.console import say
from tools.model import Change, Model, require

KEYS = 400
LOAD = 3_000
"""The number of rows of a large request: more than one step, and enough for batch files."""


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
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
    rounds = Rounds(folder, random.Random(arguments.seed))  # noqa: S311
    until = time.monotonic() + arguments.minutes * 60
    try:
        while rounds.done < arguments.rounds and time.monotonic() < until:
            rounds.one()
    except AssertionError as error:
        say(f"round {rounds.done + 1} ({rounds.what}): {error}")
        say((folder / "pipeline.log").read_text(errors="replace")[-3000:])
        return 1
    finally:
        rounds.host.kill()
        say(rounds.summary())
    return 0


class Rounds:
    """The rounds over one pipeline: start it, compare it with the model, work, kill it."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.done = 0
        self.what = ""
        self._dice = dice
        self._model = Model()
        self._value = 0
        self._kills: Counter[str] = Counter()
        self._unanswered = 0
        self._output = folder / "out.csv"
        self._variant = 0
        sync = {"bucket": f"file://{folder / 'bucket'}"}
        config = {
            "fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": 3},
            "storage": {"backend": {"name": "file", "config": {"sync": sync}}},
        }
        self.host = HostProcess(folder, config)

    def one(self) -> None:
        """Run one round, which ends with a kill.

        :raises AssertionError: when rows are wrong, or the pipeline does not start
        """
        point, call = self._point()
        if self._dice.random() < 0.1:
            self._variant += 1
        self.what = f"kill at call {call} {point}" if point is not None else "kill at any time"
        try:
            self.host.start(self._program(), point, call)
            self._check()
            self._work(seconds=self._dice.uniform(0.5, 6.0) if point is None else 10.0)
            ended = "at any time"
        except HostDied:
            ended = str(point)
        self.host.kill()
        self._kills[ended] += 1
        self.done += 1
        say(f"{self.done:4} {self.what}: {len(self._model.known)} rows acknowledged, {len(self._model.pending)} changes under way")

    def summary(self) -> str:
        """Return a summary of a few lines."""
        named = {name: count for name, count in self._kills.items() if name != "at any time"}
        return (
            f"{self.done} rounds: {sum(named.values())} kills at {len(named)} of {len(POINTS)} named points, "
            f"{self._kills['at any time']} at any time; {self._unanswered} changes had no answer and were there after all"
        )

    def _point(self) -> tuple[Point | None, int]:
        if self._dice.random() < 0.25:
            return None, 0
        return self._dice.choice(POINTS), min(int(self._dice.expovariate(0.5)) + 1, 12)

    def _program(self) -> str:
        transport = {"name": "file_output", "config": {"path": str(self._output)}}
        connectors = json.dumps([{"name": "out", "transport": transport, "format": {"name": "csv"}}])
        return (
            "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v BIGINT) WITH ('materialized' = 'true');"
            "CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(v) AS total FROM t;"
            "CREATE MATERIALIZED VIEW last AS SELECT id, v, ROW_NUMBER() OVER (PARTITION BY id % 7 ORDER BY v DESC) AS at FROM t;"
            f"CREATE VIEW rows WITH ('connectors' = '{connectors}') AS SELECT id, v FROM t;"
            # Another program, so that starts with a change are among the rounds.
            f"CREATE MATERIALIZED VIEW changed AS SELECT id + {self._variant} AS x FROM t WHERE id % 5 = 0;"
        )

    def _check(self) -> None:
        """Compare table, views and output with the acknowledged rows.

        :raises LostError: when they differ
        :raises HostDied: when the host is killed meanwhile
        """
        found = {row["id"]: row["v"] for row in self.host.query("SELECT id, v FROM t")}
        self._unanswered += self._model.settle(found)
        rows = self._model.known
        totals = [{"n": len(rows), "total": sum(rows.values()) if rows else None}]
        require(self.host.query("SELECT * FROM totals") == totals, "totals")
        changed = {row["x"] for row in self.host.query("SELECT x FROM changed")}
        require(changed == {number + self._variant for number in rows if number % 5 == 0}, "changed")
        firsts = {row["id"] for row in self.host.query("SELECT id FROM last WHERE at = 1")}
        greatest = {part: max((v, number) for number, v in rows.items() if number % 7 == part) for part in {i % 7 for i in rows}}
        require(firsts == {number for _, number in greatest.values()}, "last")
        written: Counter[str] = Counter()
        for line in self._output.read_text().splitlines():
            row, _, weight = line.rpartition(",")
            written[row] += int(weight)
        left = {row: weight for row, weight in written.items() if weight}
        require(left == {f"{number},{value}": 1 for number, value in rows.items()}, "the output")

    def _work(self, seconds: float) -> None:
        """Write, delete, checkpoint, copy and stop, until the time is over.

        :raises HostDied: when the host is killed meanwhile
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            match self._dice.random():
                case dice if dice < 0.55:
                    self._send([self._change() for _ in range(self._dice.choice([1, 1, 3, 30]))])
                case dice if dice < 0.7:
                    self._send([(KEYS + at, self._next()) for at in range(LOAD)])
                case dice if dice < 0.75:
                    self._send([(KEYS + at, None) for at in range(LOAD)])
                case dice if dice < 0.8:
                    self._transaction([self._change() for _ in range(4)])
                case dice if dice < 0.85:
                    self.host.call("POST", "/checkpoint")
                case dice if dice < 0.9:
                    self.host.call("POST", "/checkpoint/sync")
                case dice if dice < 0.95:
                    self._insert()
                case dice if dice < 0.97:
                    self.host.call("POST", "/suspend")
                    self.host.wait_for("Suspended")
                    return
                case _:
                    time.sleep(self._dice.random())

    def _change(self) -> Change:
        key = self._dice.randrange(KEYS)
        return key, None if self._dice.random() < 0.3 else self._next()

    def _next(self) -> int:
        self._value += 1
        return self._value

    def _send(self, changes: list[Change]) -> None:
        self._model.send(changes)
        token = self._push(changes)
        while True:
            status = self.host.call("GET", "/completion_status", params={"token": token})
            require(status.status_code in {200, 202}, status.text)
            if status.json()["status"] == "complete":
                break
            time.sleep(0.01)
        self._model.acknowledge()

    def _transaction(self, changes: list[Change]) -> None:
        """Send changes in two requests of one transaction."""
        self._model.send(changes)
        started = self.host.call("POST", "/start_transaction")
        require(started.status_code == 200, started.text)
        half = len(changes) // 2
        self._push(changes[:half])
        self._push(changes[half:])
        committed = self.host.call("POST", "/commit_transaction")
        require(committed.status_code == 200, committed.text)
        while self.host.call("GET", "/stats").json()["global_metrics"]["transaction_id"]:
            time.sleep(0.01)
        self._model.acknowledge()

    def _push(self, changes: list[Change]) -> str:
        """Send changes, and return the completion token."""
        lines = (
            json.dumps({"delete": {"id": key}} if value is None else {"insert": {"id": key, "v": value}}) for key, value in changes
        )
        answer = self.host.call("POST", "/ingress/t", params={"format": "json"}, content="\n".join(lines))
        require(answer.status_code == 200, answer.text)
        token: str = answer.json()["token"]
        return token

    def _insert(self) -> None:
        change = self._dice.randrange(KEYS), self._next()
        self._model.send([change])
        answer = self.host.call("GET", "/query", params={"sql": f"INSERT INTO t VALUES ({change[0]}, {change[1]})"})
        require(answer.status_code == 200, answer.text)
        self._model.acknowledge()


if __name__ == "__main__":
    sys.exit(main())
