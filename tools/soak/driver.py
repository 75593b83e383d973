"""The driver of one pipeline: it writes, waits, checks, and performs every action that is possible between two steps."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from airflow_pipelines import BootstrapPolicy, PipelineStatus
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.output_handler import OutputHandler
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from tools.model import Change, Model, require
from tools.soak.record import Record
from tools.soak.workloads import CUSTOMERS, Workload, difference

KEYS = 400
LOAD = 2_000
"""The number of rows of a large request."""
MOST_LINES = 1_000
PATIENCE_S = 300.0
TICKS = 20


class Driver:
    """The only writer of a pipeline, so that it knows the expected content."""

    def __init__(self, client: PipelineClient, workload: Workload, dice: random.Random, record: Record) -> None:
        self.workload = workload
        self._dice = dice
        self._record = record
        self._variant = 0
        self._value = 0
        self._model = Model()
        self._lines: list[tuple[int, int]] = []
        self._written: Counter[str] = Counter()
        self._read_to = 0
        self._followed: Counter[tuple[Any, ...]] = Counter()
        self._listener: OutputHandler | None = None
        if workload.lines is not None:
            workload.lines.touch()
        self.pipeline = PipelineBuilder(
            client,
            workload.name,
            workload.program(self._variant),
            runtime_config=workload.config(),
            udf_python=workload.udf_python(self._variant),
        ).create_or_replace()

    def run(self, ended: threading.Event) -> None:
        """Start the pipeline, drive it until the event is set, and check it a last time. Faults are recorded."""
        self._attempt(self.start)
        while not ended.is_set() and not self._record.hopeless:
            self._attempt(self._one)
        self._attempt(self.check)
        if self._listener is not None:
            self._listener.stop()

    def start(self) -> None:
        """Start the pipeline, follow a view, and give the second table of joins its rows."""
        self.pipeline.start_paused(timeout_s=PATIENCE_S)
        self._follow()
        self.pipeline.resume(timeout_s=PATIENCE_S)
        if self.workload.joined:
            rows = [{"id": number, "region": f"region {number % 7}"} for number in range(CUSTOMERS)]
            self.pipeline.input_json("customers", rows)

    def actions(self) -> list[tuple[Callable[[], None], float]]:
        """Return the possible actions on the pipeline, with their weights."""
        workload = self.workload
        possible = [
            (self.write, 50.0),
            (self.load, 3.0),
            (self.unload, 3.0),
            (self.insert, 5.0),
            (self.checkpoint, 4.0),
            (self.check, 6.0),
            (self.pause, 2.0),
            (self.restart, 1.0),
        ]
        if workload.copies:
            possible.append((self.copy, 2.0))
        if workload.changes:
            possible.append((self.change_program, 1.0))
        if workload.lines is not None:
            possible += [(self.append_lines, 5.0), (self.delete_lines, 3.0)]
        if "ticks" in workload.tables:
            possible.append((self.tick, 10.0))
        return possible

    def _one(self) -> None:
        possible = self.actions()
        [(act, _)] = self._dice.choices(possible, [weight for _, weight in possible])
        act()
        self._record.count(act.__name__.replace("_", " "))

    def _attempt(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001  whatever is wrong is what the run is there to find
            self._record.fault(self.workload.name, error)
            # No busy loop over a service that does not answer.
            time.sleep(1.0)

    # --- rows ----------------------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Upsert and delete a few rows, and wait until the views have them."""
        self._send([self._change() for _ in range(self._dice.choice([1, 1, 3, 30]))])

    def load(self) -> None:
        """Write many rows."""
        self._send([(KEYS + at, self._next()) for at in range(LOAD)])

    def unload(self) -> None:
        """Delete many rows."""
        self._send([(KEYS + at, None) for at in range(LOAD)])

    def insert(self) -> None:
        """Write a row by a statement."""
        key, value = self._dice.randrange(KEYS), self._next()
        self._model.send([(key, value)])
        with self._record.timed("statement"):
            self.pipeline.execute(f"INSERT INTO t VALUES ({key}, {key % CUSTOMERS}, {value})")
        self._model.acknowledge()

    def append_lines(self) -> None:
        """Append to the followed file, and wait until the table has it."""
        path = self.workload.lines
        if path is None or len(self._lines) > MOST_LINES:
            return
        lines = [(self._next(), self._dice.randrange(KEYS)) for _ in range(self._dice.choice([1, 20, 100]))]
        with path.open("a") as file:
            file.writelines(f"{a},{b}\n" for a, b in lines)
        self._lines += lines
        with self._record.timed("file"):
            self._until(lambda: self._count("lines") == len(self._lines), "the lines of the file to be read")

    def delete_lines(self) -> None:
        """Delete the oldest rows of the table without a key."""
        count = len(self._lines) // 2
        gone, self._lines = self._lines[:count], self._lines[count:]
        if gone:
            self.pipeline.input_json("lines", [{"delete": {"a": a, "b": b}} for a, b in gone], "insert_delete")

    def tick(self) -> None:
        """Write rows with the current time, some of them a little late."""
        now = time.time()
        stamps = [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now - self._dice.random() * 5)) for _ in range(TICKS)]
        self.pipeline.input_json("ticks", [{"at": at, "v": self._next()} for at in stamps])

    def _change(self) -> Change:
        key = self._dice.randrange(KEYS)
        return key, None if self._dice.random() < 0.3 else self._next()

    def _next(self) -> int:
        self._value += 1
        return self._value

    def _send(self, changes: list[Change]) -> None:
        rows = [_operation(key, value) for key, value in changes]
        self._model.send(changes)
        with self._record.timed("load" if len(changes) >= LOAD else "step"):
            self.pipeline.input_json("t", rows, "insert_delete", timeout_s=PATIENCE_S)
        self._model.acknowledge()
        self._record.count("rows", len(rows))

    # --- the life of a pipeline ----------------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Take a checkpoint."""
        with self._record.timed("checkpoint"):
            self.pipeline.checkpoint(wait=True, timeout_s=PATIENCE_S)

    def copy(self) -> None:
        """Copy a new checkpoint to the bucket."""
        self.pipeline.checkpoint(wait=True, timeout_s=PATIENCE_S)
        with self._record.timed("sync"):
            self.pipeline.sync_checkpoint(wait=True, timeout_s=PATIENCE_S)

    def pause(self) -> None:
        """Pause the pipeline, write a row that has to wait, and resume."""
        with self._record.timed("pause and resume"):
            self.pipeline.pause(timeout_s=PATIENCE_S)
            change = self._change()
            self._model.send([change])
            token = self.pipeline.input_json("t", [_operation(*change)], "insert_delete", force=True, wait=False)
            self.pipeline.resume(timeout_s=PATIENCE_S)
        self.pipeline.wait_for_token(token, timeout_s=PATIENCE_S)
        self._model.acknowledge()

    def restart(self) -> None:
        """Stop the pipeline gracefully, and start it again."""
        self._stop()
        with self._record.timed("start"):
            self.pipeline.start_paused(timeout_s=PATIENCE_S)
        self._follow()
        self.pipeline.resume(timeout_s=PATIENCE_S)

    def change_program(self) -> None:
        """Stop the pipeline, modify its program, and approve the change."""
        self._stop()
        self._variant += 1
        with self._record.timed("modify"):
            self.pipeline.modify(
                sql=self.workload.program(self._variant), udf_python=self.workload.udf_python(self._variant) or None
            )
            self.pipeline.start_paused(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=PATIENCE_S)
            change = self.pipeline.pending_change()
            require(change is not None, f"{self.pipeline.status()} after a change of the program that needs approval")
            self.pipeline.approve(expected_programs=change.programs if change is not None else {})
            self.pipeline.wait_for_status(PipelineStatus.PAUSED, timeout=PATIENCE_S)
        self._follow()
        self.pipeline.resume(timeout_s=PATIENCE_S)

    def _stop(self) -> None:
        with self._record.timed("stop"):
            self.pipeline.stop(force=False, timeout_s=PATIENCE_S)

    def _follow(self) -> None:
        """Listen to the paused pipeline, so that its content and the listener's changes add up."""
        self._followed = self._contents(self.workload.listened)
        self._listener = self.pipeline.listen(self.workload.listened)

    # --- what must be true ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Compare the table with the model, views with their queries, and the received output with the views.

        :raises LostError: when something is wrong
        """
        found = {row["id"]: row["v"] for row in self._rows("SELECT id, v FROM t")}
        self._model.settle(found)
        for view, query in self._views().items():
            different = self._rows(difference(view, query))
            require(not different, f"view {view} of {self.workload.name}: {len(different)} rows differ, as {different[:3]}")
        self._check_lines()
        self._check_listener()
        self._check_output()

    def _views(self) -> Mapping[str, str]:
        return {**self.workload.views, "changed": self.workload.changed(self._variant)}

    def _check_lines(self) -> None:
        if self.workload.lines is not None:
            found = Counter((row["a"], row["b"]) for row in self._rows("SELECT a, b FROM lines"))
            require(found == Counter(self._lines), f"table lines: {len(found)} rows instead of {len(self._lines)}")

    def _check_listener(self) -> None:
        view = self.workload.listened
        wanted = self._contents(view)

        def arrived() -> bool:
            if self._listener is not None:
                for row in self._listener.to_dict():
                    self._followed[_values(row)] += row["insert_delete"]
            return {row: count for row, count in self._followed.items() if count} == dict(wanted)

        self._until(arrived, f"the listener of {view} to have got what the view contains", patience_s=30.0)

    def _check_output(self) -> None:
        output = self.workload.output
        if output is None:
            return
        with output.open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
            self._read_to = file.tell()
        require(not new or new.endswith(b"\n"), "the output ends within a line although the pipeline has delivered all")
        for line in new.decode().splitlines():
            row, _, weight = line.rpartition(",")
            self._written[row] += int(weight)
        self._written = Counter({row: weight for row, weight in self._written.items() if weight})
        wanted = {f"{key},{value}": 1 for key, value in self._model.known.items()}
        require(self._written == wanted, f"the output has {len(self._written)} rows instead of {len(wanted)}, or others")

    def _contents(self, view: str) -> Counter[tuple[Any, ...]]:
        return Counter(_values(row) for row in self._rows(f"SELECT * FROM {view}"))

    def _count(self, table: str) -> int:
        return int(self._rows(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"])

    def _rows(self, query: str) -> list[Mapping[str, Any]]:
        with self._record.timed("query"):
            return list(self.pipeline.query(query))

    def _until(self, condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + patience_s
        while not condition():
            require(time.monotonic() < deadline, f"waited {patience_s:.0f} s for {what}")
            time.sleep(0.1)


def _operation(key: int, value: int | None) -> dict[str, Any]:
    row = {"id": key, "customer": key % CUSTOMERS, "v": value}
    return {"delete": {"id": key}} if value is None else {"insert": row}


def _values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((name, str(value)) for name, value in sorted(row.items()) if name != "insert_delete")
