"""What every output has to do: the target has each change, and after crashes as often as the connector promises."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from airflow_pipelines.common.references import NO_REFERENCES, References
from airflow_pipelines.connectors.base import CommitsSteps, OutputTransport, Rewindable, TransientConnectorFailure
from airflow_pipelines.connectors.definition import Delivery, Guarantee, OutputDefinition, PipelineReference
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.opening import open_output
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.host.outputs.delivery_queue import DeliveryQueue, QueueLimits
from airflow_pipelines.host.outputs.queued_sink import QueuedSink
from airflow_pipelines.host.outputs.sinks import ResumedOutput
from airflow_pipelines.host.outputs.step_changes import StepChanges
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from tests.connectors.conformance.declarations import check_definition, check_references, check_refusals, definition_of
from tests.connectors.odd_texts import texts
from tests.connectors.relations import col, relation
from tests.connectors.waits import set_waits

VIEW = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="v")
PATIENCE_S = 30.0
Change = tuple[int, str | bytes, int]
"""The values of a row, and its weight."""
_PIPELINE = PipelineReference("0194f2a0-0000-7000-8000-000000000000", "conformance", begun=1.0)
_SCHEMA = weighted(StructType([StructField("id", LongType()), StructField("name", StringType())]))


class OutputCase:
    """A target. A case of a connector gives the fields, and what it can do of the methods.

    :param transport: the name of the transport
    :param config: its options
    :param format: the name of the format; None for a transport that needs none
    :param format_config: its options
    :param key: the columns of the index; empty for an output without one
    """

    transport = ""
    config: dict[str, Any] = {}
    format: str | None = None
    format_config: dict[str, Any] = {}
    key: tuple[str, ...] = ()
    can_be_away = False
    """Whether :meth:`take_away` takes the target away."""
    positions: Path | None = None
    """A folder in which it keeps how far it is, where it needs one."""
    takes_texts_that_are_none = False
    """True if its target takes texts that are not UTF-8, as a cast of bytes may give them."""

    def contents(self) -> Counter[tuple[int, str]]:
        """The rows of the view, as whoever reads the target makes them out: a log is summed up."""
        raise NotImplementedError

    def take_away(self) -> None:
        """Make the target unreachable."""
        raise NotImplementedError

    def bring_back(self) -> None:
        """Make it reachable again."""
        raise NotImplementedError

    @property
    def connector(self) -> Connector:
        """The declaration."""
        options = {"index": "by_key"} if self.key else {}
        return Connector(
            "v", "out", ConnectorDirection.OUTPUT, self.transport, self.config, self.format, self.format_config, options
        )

    def new(self, references: References = NO_REFERENCES, left_out: LeftOutRows | None = None) -> OutputTransport:
        """A transport that is not open."""
        return open_output(self.connector, VIEW, references, _PIPELINE, self.key, self.positions, left_out=left_out)

    @property
    def definition(self) -> OutputDefinition:
        """The connector's definition."""
        found = definition_of(self.connector)
        assert isinstance(found, OutputDefinition)
        return found


def part(step: int, *changes: Change, epoch: int = 1) -> StepChanges:
    """Changes of a step."""
    ids, names, weights = (list(values) for values in zip(*changes, strict=True))
    table = pa.table({"id": pa.array(ids, pa.int64()), "name": texts(names), "__weight": pa.array(weights, pa.int64())})
    return StepChanges(step, epoch, Batch.in_memory(_SCHEMA, table), ("id", "name"))


def total(parts: Iterable[StepChanges]) -> Counter[tuple[int, str]]:
    """The rows that are left after some steps."""
    left: Counter[tuple[int, str]] = Counter()
    for each in parts:
        for row in each.delta.to_arrow().to_pylist():
            left[row["id"], row["name"]] += row["__weight"]
    assert min(left.values(), default=0) >= 0
    return +left


STEPS: Sequence[StepChanges] = (
    part(1, (1, "a", 1), (2, "b", 1), (3, "ü\n\"'\\", 1)),
    part(2, (1, "a", -1), (1, "A", 1)),
    part(5, (2, "b", -1), (4, "d", 1)),
    part(6, (4, "d", -1), (4, "D", 1), (5, "e", 1)),
)
"""Steps with an insert, an update, a delete and a gap in their numbers."""
ODD_STEPS: Sequence[StepChanges] = (
    part(1, (1, "a", 1), (2, b"\xff", 1), (3, "c", 1)),
    part(2, (1, "a", -1), (1, b"b\xfe", 1), (2, b"\xff", -1), (2, "B", 1), (4, "d", 1)),
    part(3, (1, b"b\xfe", -1)),
)
"""Steps with texts that are not UTF-8: in a new row, in one that changes, and in rows that become good or go."""


def write(transport: OutputTransport, changes: StepChanges, key: tuple[str, ...]) -> None:
    """Write a step as a sink gets it that commits its number."""
    transport.write(changes.number, changes.in_order(cast(SparkSession, None), key))


class Run:
    """One run of a pipeline over the target, as the host does it."""

    def __init__(self, case: OutputCase, folder: Path) -> None:
        self.queue = DeliveryQueue(QueueLimits(10_000, 1_000_000), BatchStore(folder / "batches"))
        self.failures: list[Exception] = []
        self.troubles: list[str] = []
        self.written = Counter[str]()
        self.sink = QueuedSink("v.out", case.key, self.queue, cast(SparkSession, None), case.new, self)

    def inherit_properties(self) -> Callable[[], None]:
        return lambda: None

    def note_opened(self) -> None:
        pass

    def fail(self, error: Exception) -> None:
        self.failures.append(error)

    def note_trouble(self, failure: TransientConnectorFailure | None, wait_s: float) -> None:
        if failure is not None:
            self.troubles.append(str(failure))

    def wake(self) -> None:
        pass

    def start(self, *parts: StepChanges, resumed: ResumedOutput | None = None) -> Run:
        for each in parts:
            self.queue.put(each)
        self.sink.open(resumed)
        self.sink.start()
        return self

    def until_delivered(self) -> Run:
        self.until(lambda: not self.queue.batches or bool(self.failures), "all was delivered")
        assert self.failures == []
        return self

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"it took too long until {what}: {self.troubles[-1:]}"
            time.sleep(0.01)

    def end(self) -> None:
        self.sink.close()

    def count_written(self, records: int, size_bytes: int) -> None:
        self.written.update(records=records, bytes=size_bytes)


class OutputConformance:
    """The suite. A test class of a connector has a fixture ``case``."""

    def test_what_it_says_of_itself(self, case: OutputCase) -> None:
        check_definition(case.connector)
        transport = case.new()
        if case.definition.guarantee is Guarantee.EXACTLY_ONCE:
            assert isinstance(transport, CommitsSteps | Rewindable), "it has no way to have each step once"
        transport.close()

    def test_wrong_declarations_are_refused(self, case: OutputCase) -> None:
        check_refusals(case.connector, VIEW)

    def test_options_may_be_references(self, case: OutputCase) -> None:
        references = check_references(case.connector, VIEW)
        hidden = {name: f"${{env:{name}}}" for name in references.env}
        declared = replace(case.connector, transport_config={**case.config, **hidden})
        given = open_output(declared, VIEW, references, _PIPELINE, case.key, case.positions)
        given.open(False)
        given.close()

    def test_an_index_is_asked_for_where_it_is_needed(self, case: OutputCase) -> None:
        if not case.definition.needs_index:
            pytest.skip("it needs none")
        with pytest.raises(InvalidOptionError, match="needs an 'index'"):
            validate(replace(case.connector, options={}), VIEW)

    def test_the_target_has_what_the_view_has(self, case: OutputCase, tmp_path: Path) -> None:
        run = Run(case, tmp_path).start(*STEPS).until_delivered()
        run.end()
        assert case.contents() == total(STEPS)
        assert run.written["records"] > 0
        assert run.written["bytes"] > 0 or case.transport == "null_output"

    def test_it_goes_on_after_a_stop(self, case: OutputCase, tmp_path: Path) -> None:
        Run(case, tmp_path).start(*STEPS[:2]).until_delivered().end()
        resumed = ResumedOutput(STEPS[1].step, STEPS[1].number, STEPS[1].number)
        Run(case, tmp_path).start(*STEPS[2:], resumed=resumed).until_delivered().end()
        assert case.contents() == total(STEPS)

    def test_steps_that_come_again_after_a_crash(self, case: OutputCase, tmp_path: Path) -> None:
        Run(case, tmp_path).start(*STEPS[:3]).until_delivered().end()
        # The checkpoint is that after the first step; the others are in the journal.
        resumed = ResumedOutput(STEPS[0].step, STEPS[0].number, STEPS[2].number)
        Run(case, tmp_path).start(*STEPS[1:], resumed=resumed).until_delivered().end()
        if case.definition.guarantee is Guarantee.EXACTLY_ONCE:
            assert case.contents() == total(STEPS)
        else:
            assert case.contents() >= total(STEPS)

    def test_a_text_that_is_none_costs_no_other_row(self, case: OutputCase) -> None:
        if case.takes_texts_that_are_none:
            pytest.skip("its target takes any bytes")
        left_out = LeftOutRows(case.key)
        transport = case.new(left_out=left_out)
        transport.open(False)
        left = []
        for each in ODD_STEPS:
            write(transport, each, case.key)
            left.append(left_out.take()[1])
        transport.close()
        # A log may count once more that a row goes which it does not have.
        assert left[0] == 1
        assert 1 <= left[1] <= 2
        assert left[2] <= 1
        assert case.contents() == Counter([(2, "B"), (3, "c"), (4, "d")])

    def test_what_a_target_commits_is_found_again(self, case: OutputCase) -> None:
        transport = case.new()
        if not isinstance(transport, CommitsSteps):
            transport.close()
            pytest.skip("its target keeps no numbers of steps")
        transport.open(False)
        assert transport.committed_step() is None
        for each in STEPS[:2]:
            write(transport, each, case.key)
        assert transport.committed_step() in {None, STEPS[1].number}, "it may be known after opening only"
        transport.close()
        again = case.new()
        again.open(True)
        assert isinstance(again, CommitsSteps)
        assert again.committed_step() == STEPS[1].number
        later = part(2, (9, "z", 1), epoch=2)
        write(again, later, case.key)
        again.close()
        third = case.new()
        third.open(True)
        assert isinstance(third, CommitsSteps)
        assert third.committed_step() == later.number
        third.close()

    def test_a_target_that_goes_and_comes_back(self, case: OutputCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        if not case.can_be_away:
            pytest.skip("its target is always there")
        assert case.definition.delivery is Delivery.QUEUED, "steps would wait for it"
        set_waits(monkeypatch, first_s=0.02, longest_s=0.2)
        case.take_away()
        try:
            with pytest.raises(TransientConnectorFailure):
                self._write_one(case)
            run = Run(case, tmp_path).start(*STEPS[:2])
            run.until(lambda: bool(run.troubles), "the output says that its target is away")
        finally:
            case.bring_back()
        run.until_delivered()
        told = len(run.troubles)
        case.take_away()
        try:
            for each in STEPS[2:]:
                run.queue.put(each)
            run.until(lambda: len(run.troubles) > told, "the output says again that its target is away")
        finally:
            case.bring_back()
        run.until_delivered().end()
        if case.definition.guarantee is Guarantee.EXACTLY_ONCE:
            assert case.contents() == total(STEPS)
        else:
            assert case.contents() >= total(STEPS)

    def test_closing_may_be_repeated(self, case: OutputCase) -> None:
        case.new().close()
        transport = case.new()
        transport.open(False)
        transport.close()
        transport.close()

    @staticmethod
    def _write_one(case: OutputCase) -> None:
        transport = case.new()
        try:
            transport.open(False)
            write(transport, STEPS[0], case.key)
        finally:
            transport.close()
