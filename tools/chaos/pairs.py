"""A test of connectors under kills, ``python -m tools.chaos.pairs --minutes 20``: orders go from each of four systems to each.

One pipeline reads a topic of Kafka, a table of PostgreSQL, a Delta table and files, sums each up in a view, and writes each view to
all four. The host is killed at any time or at a named point, or a server is stopped and started beside it. After each start all
sixteen targets must equal their sources, and their logs of changes must have each change once; otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from tools.chaos.points import Moment, Point
from tools.chaos.process import HostDied, HostProcess
from tools.chaos.systems.base import GoneError, Sums, System, total
from tools.chaos.systems.delta import DeltaSystem
from tools.chaos.systems.files import FileSystem
from tools.chaos.systems.kafka import KafkaSystem
from tools.chaos.systems.objects import Bucket
from tools.chaos.systems.postgresql import PostgresSystem
from tools.console import say
from tools.kafka_broker import Broker
from tools.model import require
from tools.object_store import ObjectStore
from tools.postgres_server import PostgresServer, find_programs

WAIT_S = 240.0
NAMES = ("kafka", "postgres", "delta", "files")
VIEWS = {name: f"sums_{name}" for name in NAMES}
REMOTE = VIEWS["files"]
"""The view whose Delta table and files are in an object store."""
MODELS = ("exactly_once", "at_least_once", "none")


class Kill(StrEnum):
    """The end of a round."""

    HOST = "the host at any time"
    POINT = "the host at a point"
    WITHOUT_SERVER = "the host while a server is away"
    SERVERS = "the servers, one after the other, and a graceful stop"


POINTS = tuple(
    Point(module, function, moment)
    for module, functions in (
        ("connectors.transports.kafka.output", ("TransactionalKafkaOutput.write",)),
        ("systems.kafka.transactions", ("NumberedTransactions.commit",)),
        ("connectors.transports.kafka.input", ("KafkaInput.commit",)),
        ("connectors.transports.postgresql.output", ("PostgresOutput.write", "PostgresOutput._merged")),
        ("connectors.transports.postgresql.cdc_input", ("PostgresCdcInput.commit",)),
        ("connectors.transports.delta_table.output", ("DeltaTableOutput.open", "DeltaTableOutput.write")),
        ("connectors.transports.files.line_output", ("FileOutput.write",)),
        ("connectors.transports.files.folder_output", ("FolderOutput.write", "FolderOutput._finish")),
        ("host.outputs.delivery_queue", ("DeliveryQueue.delivered_first", "DeliveryQueue.kept")),
        ("host.outputs.output_endpoints", ("OutputEndpoints.deliver", "OutputEndpoints.deliver_again")),
        ("host.checkpoints.durability", ("Durability.commit", "Durability.save_checkpoint", "Durability.save_recovery_point")),
        ("engine.storage.journal", ("Journal.append", "Journal.discard")),
        ("engine.storage.checkpoint", ("CheckpointStore.save",)),
        ("host.steps.recovery", ("Recovery.restore",)),
    )
    for function in functions
    for moment in Moment
)


def program(systems: Sequence[System]) -> str:
    """Return one pipeline with all pairs of an input and an output.

    :param systems: the sources and targets
    """
    parts = []
    for system in systems:
        view, index = VIEWS[system.name], f"by_{system.name}"
        targets = [{"name": other.name, "index": index, **other.target(view)} for other in systems]
        parts.append(f"""
            CREATE TABLE orders_{system.name} (id BIGINT, customer VARCHAR, amount DECIMAL(10, 2))
                WITH ('materialized' = 'true', 'connectors' = '{_declared([{"name": "source", **system.source()}])}');
            CREATE MATERIALIZED VIEW {view} WITH ('connectors' = '{_declared(targets)}')
                AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders_{system.name} GROUP BY customer;
            CREATE INDEX {index} ON {view}(customer);
        """)
    return "".join(parts)


def _declared(connectors: list[dict[str, Any]]) -> str:
    return json.dumps(connectors).replace("'", "''")


class Writers:
    """The threads that change all sources, one for each, until they are told to rest."""

    def __init__(self, systems: Sequence[System], dice: random.Random) -> None:
        self.changes: Counter[str] = Counter()
        """The number of transactions that each system took."""
        self.failures: list[BaseException] = []
        self._write = threading.Event()
        self._ended = threading.Event()
        self._locks = {system.name: threading.Lock() for system in systems}
        self._threads = [
            threading.Thread(target=self._run, args=(system, random.Random(dice.random())), daemon=True)  # noqa: S311
            for system in systems
        ]
        for thread in self._threads:
            thread.start()

    def go_on(self) -> None:
        """Change the sources."""
        self._write.set()

    def rest(self) -> None:
        """Pause the changes, and return after those under way."""
        self._write.clear()
        for lock in self._locks.values():
            with lock:
                pass
        if self.failures:
            raise self.failures[0]

    def end(self) -> None:
        """Stop the changes for good."""
        self._ended.set()
        self._write.set()
        for thread in self._threads:
            thread.join(WAIT_S)

    def _run(self, system: System, dice: random.Random) -> None:
        while not self._ended.is_set():
            self._write.wait()
            with self._locks[system.name]:
                if self._ended.is_set() or not self._write.is_set():
                    continue
                try:
                    system.change(dice)
                    self.changes[system.name] += 1
                except GoneError:
                    pass
                except BaseException as error:  # noqa: BLE001  the main thread raises it
                    self.failures.append(error)
                    return
            self._ended.wait(dice.choice([0.05, 0.2, 0.5]))


class PairRounds:
    """The rounds over one pipeline: start it, change the sources, kill or stop something, start it again, compare.

    :param folder: the folder of the pipeline
    :param systems: the sources and targets, with nothing in them
    :param dice: the source of random choices
    """

    def __init__(self, folder: Path, systems: Sequence[System], dice: random.Random) -> None:
        self.done = 0
        self.what = ""
        self.compared = 0
        self.kills: Counter[str] = Counter()
        self._folder = folder
        self._systems = systems
        self._dice = dice
        self._program = program(systems)
        self.host = HostProcess(folder, {})
        self.writers = Writers(systems, dice)

    def one(self, kill: Kill | None = None) -> None:
        """Run one round.

        :param kill: its end; at random by default
        :raises AssertionError: when a target does not become equal to its view, or has a change twice
        """
        kill = self._dice.choice(list(Kill)) if kill is None else kill
        model, interval = self._dice.choice(MODELS), self._dice.choice([1, 1, 3])
        self.host.runtime_config = {"fault_tolerance": {"model": model, "checkpoint_interval_secs": interval}}
        point, call = (self._dice.choice(POINTS), self._dice.choice([1, 2, 5, 20])) if kill is Kill.POINT else (None, 1)
        self.what = f"{model}, a checkpoint every {interval} s, kill {kill if point is None else f'at call {call} {point}'}"
        try:
            self.host.start(self._program, point, call)
            self.compare()
            self.writers.go_on()
            self._wait_for_work()
            self._end(kill)
        except HostDied:
            if point is None:
                raise AssertionError("the host died, and nobody killed it") from None
        self.host.kill()
        self.kills[kill] += 1
        self.done += 1
        # Sources change while nothing runs, too.
        self.writers.go_on()

    def last(self) -> None:
        """Start once more, and compare."""
        self.what = "the last start"
        self.host.start(self._program)
        self.compare()

    def compare(self) -> None:
        """Let the sources rest, wait until all targets are equal to their views, and check that no connector has failed.

        :raises HostDied: when the host is killed meanwhile
        """
        self.writers.rest()
        deadline = time.monotonic() + WAIT_S
        for source in self._systems:
            view, wanted = VIEWS[source.name], total(source.orders())
            for target in self._systems:
                while (found := _sums(target, view)) != wanted:
                    if not self.host.alive:
                        raise HostDied
                    self._in_time(deadline, f"{source.name} to {target.name}: {found} is not {wanted}")
                    time.sleep(0.1)
                self.compared += 1
            rows = self.host.query(f"SELECT customer, n, CAST(total AS VARCHAR) AS total FROM {view}")
            shown = {row["customer"]: (row["n"], row["total"]) for row in rows}
            require(shown == {name: (n, str(amount)) for name, (n, amount) in wanted.items()}, f"the view {view}: {shown}")
        for connector in self._connectors():
            name = connector["endpoint_name"]
            require(connector["fatal_error"] is None, f"{name} has ended: {connector['fatal_error']}")
            require(not connector["metrics"].get("num_parse_errors"), f"{name} has malformed records: {connector}")

    def stop_server(self, system: System, then: Callable[[], None]) -> None:
        """Stop a server for a while: its connectors must report it, and everything else must continue.

        :param system: the system of the server
        :param then: the function to call meanwhile
        """
        system.stop()
        try:
            self._wait_for_health(lambda users: any(user in users for user in _users(system)), f"{system.name} is away")
            then()
        finally:
            system.start()

    def close(self) -> None:
        """End the writers and the host."""
        self.writers.end()
        self.host.kill()

    def summary(self) -> str:
        """Return a summary of one line."""
        kills = ", ".join(f"{count} times {kill}" for kill, count in self.kills.items())
        changes = ", ".join(f"{count} of {name}" for name, count in self.writers.changes.items())
        return f"{self.done} rounds: {kills}; {self.compared} comparisons of a target; transactions: {changes}"

    def _end(self, kill: Kill) -> None:
        match kill:
            case Kill.HOST:
                time.sleep(self._dice.uniform(0, 2))
            case Kill.POINT:
                deadline = time.monotonic() + 10
                while time.monotonic() < deadline:
                    if not self.host.alive:
                        raise HostDied
                    time.sleep(0.05)
            case Kill.WITHOUT_SERVER:
                self.stop_server(self._dice.choice(self._systems), self.host.kill)
            case Kill.SERVERS:
                for system in self._systems[:3]:
                    self.stop_server(system, lambda: time.sleep(self._dice.uniform(0, 2)))
                    self._wait_for_health(lambda users: not users, "all work again")
                self._wait_for_work()
                self.host.call("POST", "/suspend")
                self.host.wait_for("Suspended")

    def _wait_for_work(self) -> None:
        """Wait until all outputs have delivered something, and all sources have changed."""
        changes, delivered = dict(self.writers.changes), self._delivered()
        deadline = time.monotonic() + WAIT_S
        while any(self.writers.changes[name] < changes.get(name, 0) + 3 for name in NAMES) or any(
            now <= before for now, before in zip(self._delivered(), delivered, strict=True)
        ):
            self._in_time(deadline, "nothing is delivered")
            time.sleep(0.1)

    def _delivered(self) -> list[int]:
        outputs = self.host.call("GET", "/stats").json()["outputs"]
        return [output["metrics"]["transmitted_records"] for output in outputs]

    def _wait_for_health(self, holds: Callable[[set[str]], bool], what: str) -> None:
        """Wait until the set of unhealthy connectors meets a condition, and check that each of them reports a reason."""
        deadline = time.monotonic() + WAIT_S
        while True:
            sick = {each["endpoint_name"]: each["health"] for each in self._connectors() if each["health"]["status"] != "Healthy"}
            require(all(health["description"] for health in sick.values()), f"no reason: {sick}")
            if holds(set(sick)):
                return
            self._in_time(deadline, what)
            time.sleep(0.1)

    def _in_time(self, deadline: float, what: str) -> None:
        """Raise when the deadline has passed."""
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}; {self._stats()}")

    def _connectors(self) -> list[dict[str, Any]]:
        stats = self.host.call("GET", "/stats", params={"include_connector_errors": True}).json()
        return [*stats["inputs"], *stats["outputs"]]

    def _stats(self) -> str:
        """Return the unhealthy connectors, and write all statistics of the host to a file."""
        with suppress(HostDied):
            (self._folder / "stats.json").write_text(self.host.call("GET", "/stats").text)
            return f"not healthy: {json.dumps([each for each in self._connectors() if each['health']['status'] != 'Healthy'])}"
        return "the host does not answer"


def _users(system: System) -> list[str]:
    """Return the connectors that soon notice an outage of a system's server: those that poll it, or write to it."""
    if system.name in {"kafka", "postgres"}:
        return [f"orders_{system.name}.source"]
    return [f"{REMOTE}.{system.name}"]


def _sums(target: System, view: str) -> Sums | None:
    try:
        return target.sums(view)
    except GoneError:
        return None


@contextmanager
def systems(folder: Path, broker: Broker, server: PostgresServer, database: str) -> Iterator[list[System]]:
    """Yield the four systems, empty.

    :param folder: the folder for tables and files
    :param broker: a running broker, which may be stopped
    :param server: a running server, which may be stopped
    :param database: an empty database of the server
    """
    store = ObjectStore(folder / "objects.log")
    try:
        store.start()
        bucket = Bucket(store)
        yield [
            KafkaSystem(broker, VIEWS.values()),
            PostgresSystem(server, database, VIEWS.values()),
            DeltaSystem(folder / "delta", bucket, REMOTE),
            FileSystem(folder / "files", bucket, REMOTE),
        ]
    finally:
        store.close()


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(prog="chaos.pairs", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10**6)
    parser.add_argument("--minutes", type=float, default=20.0, help="no new round is begun after this time")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    say(f"seed {arguments.seed}")
    folder = Path(tempfile.mkdtemp(prefix="chaos-pairs-"))
    passed = False
    try:
        passed = _run(arguments, folder)
    finally:
        if passed:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            say(f"what was written is in {folder}")
    return 0 if passed else 1


def _run(arguments: argparse.Namespace, folder: Path) -> bool:
    programs = find_programs()
    if programs is None:
        raise SystemExit("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    with ExitStack() as running:
        broker = Broker(folder / "broker", "-Xmx256m", "-XX:+UseSerialGC")
        running.callback(broker.close)
        broker.start()
        server = PostgresServer(programs)
        running.callback(server.close)
        server.start()
        made = running.enter_context(systems(folder, broker, server, "postgres"))
        rounds = PairRounds(folder, made, random.Random(arguments.seed))  # noqa: S311
        running.callback(rounds.close)
        until = time.monotonic() + arguments.minutes * 60
        try:
            while rounds.done < arguments.rounds and time.monotonic() < until:
                rounds.one()
                say(f"{rounds.done:4} {rounds.what}")
            rounds.last()
        except AssertionError as error:
            say(f"round {rounds.done + 1} ({rounds.what}): {error}")
            # The broker's folder is deleted with it.
            shutil.copy(broker.log, folder / "kafka.log")
            return False
        finally:
            say(rounds.summary())
    return True


if __name__ == "__main__":
    sys.exit(main())
