"""Outputs with a queue: what is slow or gone holds up no step, and nothing gets lost or comes twice."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from airflow_pipelines.connectors.base import ConnectorFailure, OutputTransport, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.connector_state import KeptStep
from airflow_pipelines.host.outputs import delivery_queue
from airflow_pipelines.host.outputs.delivery_queue import DeliveryQueue, QueueLimits
from airflow_pipelines.host.outputs.queued_sink import QueuedSink
from airflow_pipelines.host.outputs.sinks import ResumedOutput
from airflow_pipelines.host.outputs.step_changes import StepChanges
from tests.connectors.targets import Committing, Plain, Rewinding, Target
from tests.connectors.waits import set_waits

SCHEMA = weighted(StructType([StructField("x", IntegerType())]))
NO_SESSION = cast(SparkSession, None)


def part(step: int, *values: int, epoch: int = 1) -> StepChanges:
    rows = pa.table({"x": list(values) or [step], "__weight": [1] * (len(values) or 1)})
    return StepChanges(step, epoch, Batch.in_memory(SCHEMA, rows), ("x",))


class Output:
    """A sink with its queue, and what it says."""

    def __init__(self, folder: Path, open_transport: Callable[[], OutputTransport], limits: QueueLimits | None = None) -> None:
        self.store = BatchStore(folder / "batches")
        self.queue = DeliveryQueue(limits or QueueLimits(1000, 1_000_000), self.store)
        self.written = [0, 0]
        self.failures: list[str] = []
        self.troubles: list[str | None] = []
        self.woken = threading.Event()
        self.opened = threading.Event()
        self.sink = QueuedSink("v.out", (), self.queue, NO_SESSION, open_transport, self)

    def inherit_properties(self) -> Callable[[], None]:
        return lambda: None

    def note_opened(self) -> None:
        self.opened.set()

    def count_written(self, records: int, size_bytes: int) -> None:
        self.written = [self.written[0] + records, self.written[1] + size_bytes]

    def fail(self, error: Exception) -> None:
        self.failures.append(str(error))

    def note_trouble(self, failure: TransientConnectorFailure | None, wait_s: float) -> None:
        self.troubles.append(None if failure is None else str(failure))

    def wake(self) -> None:
        self.woken.set()

    def run(self, resumed: ResumedOutput | None = None) -> Output:
        self.sink.open(resumed)
        self.sink.start()
        return self

    def put(self, *parts: StepChanges) -> None:
        for each in parts:
            self.sink.write(each, lambda: pytest.fail("a queue asks for changes when it writes them"))

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "it took too long"
            time.sleep(0.002)

    def until_empty(self) -> None:
        self.until(lambda: not self.queue.batches)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    set_waits(monkeypatch, first_s=0.001, longest_s=0.01)


def number(step: int, epoch: int = 1) -> int:
    return part(step, epoch=epoch).number


def test_steps_do_not_wait_for_a_slow_target(tmp_path: Path) -> None:
    target = Target()
    target.blocked.clear()
    output = Output(tmp_path, lambda: Plain(target)).run()
    output.put(part(1), part(2, 5, 6))
    assert (output.queue.batches, output.queue.records, output.queue.oldest_step) == (2, 3, 1)
    target.blocked.set()
    output.until_empty()
    assert target.rows == [(1, [1]), (2, [5, 6])]
    assert output.written == [3, 30]
    assert output.woken.is_set()
    assert output.queue.delivered == number(2)
    output.sink.close()
    assert (target.opened, target.closed) == ([False], 1)
    assert output.opened.is_set()


def test_the_steps_of_a_buffer_wait_from_its_first_one_on(tmp_path: Path) -> None:
    output = Output(tmp_path, lambda: Plain(Target()))
    output.put(replace(part(5, 1, 2), since=3))
    assert output.queue.oldest_step == 3
    [kept] = output.queue.kept()[1]
    assert kept.step == 5


def test_a_queue_is_full_until_something_was_delivered(tmp_path: Path) -> None:
    target = Target()
    target.blocked.clear()
    output = Output(tmp_path, lambda: Plain(target), QueueLimits(2, 1_000_000)).run()
    output.put(part(1))
    assert not output.queue.is_full
    assert output.queue.full_s == 0
    output.put(part(2))
    assert output.queue.is_full
    assert output.queue.full_s > 0
    target.blocked.set()
    output.until_empty()
    assert not output.queue.is_full
    output.sink.close()
    small = Output(tmp_path, lambda: Plain(target), QueueLimits(1000, 1))
    small.put(part(1))
    assert small.queue.is_full, "one of the two bounds is enough"


def test_a_target_that_goes_and_comes_back(tmp_path: Path) -> None:
    target = Target()
    target.is_there = False
    output = Output(tmp_path, lambda: Plain(target)).run()
    output.put(part(1))
    output.until(lambda: output.troubles.count("the target is not there") >= 2)
    target.is_there = True
    output.until_empty()
    assert output.troubles[-1] is None
    target.is_there = False
    output.put(part(2))
    output.until(lambda: "the target is gone" in output.troubles)
    output.put(part(3))
    target.is_there = True
    output.until_empty()
    assert target.rows == [(1, [1]), (2, [2]), (3, [3])]
    assert target.opened[0] is False
    assert set(target.opened[1:]) == {True}, "it goes on with what it began"
    assert not output.failures
    output.sink.close()


def test_a_lost_answer_makes_no_second_step_where_the_target_knows_its_steps(tmp_path: Path) -> None:
    for kind, expected in ((Plain, [1, 1, 2]), (Committing, [1, 2])):
        target = Target()
        target.loses_answers = 1
        output = Output(tmp_path, lambda kind=kind, target=target: kind(target)).run()
        output.put(part(1), part(2))
        output.until_empty()
        assert [rows[0] for _, rows in target.rows] == expected
        output.sink.close()


def test_what_the_target_has_is_not_written_again(tmp_path: Path) -> None:
    target = Target()
    target.rows = [(number(4), [4])]
    output = Output(tmp_path, lambda: Committing(target)).run(ResumedOutput(2, number(2)))
    # Replayed from the journal of run 1; then a step of run 2, which has the number of one that was lost.
    output.put(part(3), part(4), part(5), part(5, 55, epoch=2))
    output.until_empty()
    assert target.rows == [(number(4), [4]), (number(5), [5]), (number(5, 2), [55])]
    output.sink.close()


def test_what_was_lost_is_taken_back_where_the_target_can(tmp_path: Path) -> None:
    class Both(Committing):
        def rewind(self, step: int) -> None:
            self.target.rewound.append(step)
            self.target.rows = [row for row in self.target.rows if row[0] <= step]

    target = Target()
    target.rows = [(number(step), [step]) for step in range(1, 7)]
    output = Output(tmp_path, lambda: Both(target))
    output.put(part(4), part(3, 33, epoch=2))
    output.queue.delivered = number(2)
    output.run(ResumedOutput(4, number(2), output.queue.known_before(2)))
    output.until_empty()
    assert target.rewound == [number(4)], "steps 5 and 6 of run 1 are in no journal"
    assert [rows for _, rows in target.rows] == [[1], [2], [3], [4], [33]]
    output.sink.close()
    again = Output(tmp_path, lambda: Both(target)).run(ResumedOutput(4, number(4), number(3, 2)))
    again.put(part(5, epoch=3))
    again.until_empty()
    assert target.rewound == [number(4)]
    again.sink.close()


def test_steps_of_another_run_are_no_steps_of_this_one(tmp_path: Path) -> None:
    # Run 1 delivered until step 9, which no journal has; run 2 computes steps 3 to 5 in another way.
    target = Target()
    target.rows = [(number(9), [9])]
    output = Output(tmp_path, lambda: Committing(target)).run(ResumedOutput(2, number(2)))
    output.put(part(3, epoch=2))
    output.until_empty()
    assert target.rows[-1] == (number(3, 2), [3])
    assert output.sink.unknown_until == number(9), "those steps stay, which the output says"
    output.sink.close()


@pytest.mark.parametrize(("has", "shown"), [([], "nothing of this output"), ([(10**12 + 1, [1])], "step 1 of run 1")])
def test_a_target_that_is_behind_is_not_written(tmp_path: Path, has: list[Any], shown: str) -> None:
    target = Target()
    target.rows = list(has)
    output = Output(tmp_path, lambda: Committing(target)).run(ResumedOutput(3, number(3)))
    output.put(part(4))
    output.until(lambda: bool(output.failures))
    message = output.failures[0]
    assert f"the target has {shown}, but step 3 of run 1 had been delivered" in message
    assert "'send_snapshot': true" in message
    assert target.rows == has
    assert output.queue.batches == 1, "it waits for a start with the right target"
    output.sink.close()


class Forgetting(Committing):
    """Its target keeps no number for long."""

    renewal_s = 0.01

    def __init__(self, target: Target, renewed: list[int], *, written: bool = True) -> None:
        super().__init__(target)
        self._renewed = renewed
        self._written = written

    def committed_step(self) -> int | None:
        return self._renewed[-1] if self._renewed else None

    def renew(self, step: int) -> None:
        if not self.target.is_there:
            raise TransientConnectorFailure("the target is gone")
        self._renewed.append(step)

    def was_written(self) -> bool:
        return self._written


def test_a_target_that_forgets_its_number_is_told_it_again(tmp_path: Path) -> None:
    target = Target()
    renewed: list[int] = []
    output = Output(tmp_path, lambda: Forgetting(target, renewed)).run()
    time.sleep(0.05)
    assert renewed == [], "it has none yet"
    output.put(part(1))
    output.until(lambda: len(renewed) >= 2)
    target.is_there = False
    output.until(lambda: "the target is gone" in output.troubles)
    target.is_there = True
    output.put(part(2))
    output.until(lambda: renewed[-1] == number(2))
    assert set(renewed) == {number(1), number(2)}
    assert target.values == [1, 2]
    output.sink.close()


def test_a_target_that_has_forgotten_its_number_goes_on_where_all_was_delivered(tmp_path: Path) -> None:
    target = Target()
    renewed: list[int] = []
    output = Output(tmp_path, lambda: Forgetting(target, renewed))
    output.queue.delivered = number(3)
    output.put(part(4, epoch=2))
    output.run(ResumedOutput(3, number(3), output.queue.known_before(2)))
    output.until_empty()
    assert renewed[0] == number(3), "a kill before the next step finds it"
    assert target.values == [4]
    assert not output.failures
    output.sink.close()


@pytest.mark.parametrize(
    ("written", "known", "expected"),
    [
        (True, number(5), "no longer says which steps it has.* all until step 3 of run 1; those until step 5 of run 1 were on"),
        (False, number(3), "the target has nothing of this output, but step 3 of run 1 had been delivered"),
    ],
)
def test_a_target_without_a_number_is_not_written_on_a_guess(tmp_path: Path, written: bool, known: int, expected: str) -> None:
    target = Target()
    output = Output(tmp_path, lambda: Forgetting(target, [], written=written)).run(ResumedOutput(3, number(3), known))
    output.put(part(4), part(5))
    output.until(lambda: bool(output.failures))
    assert re.search(expected, output.failures[0])
    assert target.rows == []
    assert output.queue.batches == 2
    output.sink.close()


def test_what_can_be_taken_back_is_taken_back_to_the_first_step_that_waits(tmp_path: Path) -> None:
    target = Target()
    output = Output(tmp_path, lambda: Rewinding(target))
    output.put(part(7), part(8))
    output.run(ResumedOutput(8))
    output.until_empty()
    assert target.rewound == [6]
    target.is_there = False
    output.put(part(9))
    output.until(lambda: bool(output.troubles) and output.troubles[-1] is not None)
    target.is_there = True
    output.until_empty()
    assert target.rewound == [6], "another connection goes on where the first one broke off"
    output.sink.close()
    other = Target()
    output = Output(tmp_path, lambda: Rewinding(other)).run(ResumedOutput(8))
    output.put(part(9))
    output.until_empty()
    assert other.rewound == [8]
    output.sink.close()


def test_a_checkpoint_keeps_what_was_not_delivered(tmp_path: Path) -> None:
    target = Target()
    target.is_there = False
    output = Output(tmp_path, lambda: Plain(target)).run()
    output.queue.delivered = number(6)
    output.put(part(7, 1, 2), part(8))
    delivered, kept = output.queue.kept()
    assert delivered == number(6)
    assert [each.step for each in kept] == [7, 8]
    again = [KeptStep.from_json(each.to_json()) for each in kept]
    assert again == list(kept)
    output.sink.close()
    assert output.queue.batches == 2, "the end of the pipeline loses nothing of a checkpoint"
    target.is_there = True
    store = BatchStore(tmp_path / "batches")
    for each in kept:
        assert each.files
        store.verify(each.files)
    next_run = Output(tmp_path, lambda: Plain(target))
    next_run.put(*(StepChanges.from_kept(each, store) for each in again))
    next_run.run(ResumedOutput(8, delivered))
    next_run.until_empty()
    assert target.rows == [(7, [1, 2]), (8, [8])]
    next_run.sink.close()


def test_files_of_what_waits_stay_while_it_does(tmp_path: Path) -> None:
    target = Target()
    target.is_there = False
    output = Output(tmp_path, lambda: Plain(target)).run()
    output.put(part(7))
    _, kept = output.queue.kept()
    output.store.garbage_collect(set())
    assert output.queue.kept()[1] == kept
    target.is_there = True
    output.until_empty()
    output.sink.close()


def test_much_that_waits_goes_to_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "MEMORY_BYTES", 50)
    target = Target()
    target.is_there = False
    output = Output(tmp_path, lambda: Plain(target), QueueLimits(1000, 100)).run()
    for step in range(1, 20):
        output.put(part(step, *range(step)))
    assert output.queue.memory_bytes <= 50
    assert output.queue.records == sum(range(1, 20))
    assert not output.queue.is_full
    target.is_there = True
    output.until_empty()
    assert [rows for _, rows in target.rows] == [list(range(step)) for step in range(1, 20)]
    output.sink.close()


def test_an_output_that_fails_says_why_and_lets_the_others_go_on(tmp_path: Path) -> None:
    class Refusing(Plain):
        def write(self, step: int, changes: Changes) -> tuple[int, int]:
            raise ConnectorFailure("the table was dropped")

    target = Target()
    output = Output(tmp_path, lambda: Refusing(target)).run()
    output.put(part(1), part(2))
    output.until(output.woken.is_set)
    assert output.failures == ["the table was dropped"]
    assert output.queue.batches == 2, "what is not delivered is kept for a start after which it can be"
    assert output.woken.is_set()
    assert output.sink.failure is None
    output.sink.close()
    assert target.closed == 1


def test_the_end_does_not_wait_for_a_target_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.host.outputs.queued_sink.CLOSE_S", 0.05)

    class Hanging(Plain):
        def close(self) -> None:
            super().close()
            self.target.is_there = False
            self.target.blocked.set()

    target = Target()
    target.blocked.clear()
    output = Output(tmp_path, lambda: Hanging(target)).run()
    output.put(part(1))
    output.until(lambda: bool(target.opened))
    output.sink.close()
    assert target.closed >= 1
    assert output.queue.batches == 1
