"""The recovery of a pipeline that was just opened: from its saved state to the point from which it goes on."""

from __future__ import annotations

from collections.abc import Iterable, Set

from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.storage.manifest import CANONICAL_FORM
from airflow_pipelines.host.changes.bootstrap import BootstrapPlan
from airflow_pipelines.host.checkpoints.durability import SavedState
from airflow_pipelines.host.state.front_ends import front_end_for
from airflow_pipelines.host.steps.live import LivePipeline, first_step
from airflow_pipelines.host.steps.merged_steps import RecordedStep, merged_steps


class Recovery:
    """The recovery of one pipeline from its saved state up to its first step."""

    def __init__(self, live: LivePipeline) -> None:
        """Remember the pipeline; nothing is restored yet.

        :param live: the pipeline, whose outputs have been opened
        """
        self._live = live

    def restore(self, saved: SavedState, plan: BootstrapPlan) -> None:
        """Bring the circuit to the last committed step of ``saved``, and keep the parts that ``plan`` keeps."""
        live, base = self._live, saved.base
        batches, limits = live.durability.batches, live.circuit.limits
        snapshot = None if base is None else Snapshot.from_manifest(base.contents.snapshot, batches, limits)
        if plan.diff.is_empty:
            self._replay(live.circuit, snapshot, saved, plan.kept_connectors)
            live.clock.resume(live.circuit.snapshot.clock)
            live.complete()
            return
        if snapshot is None or saved.records:
            # The journal was written by the old program: its steps have to go through the old views, and to their outputs.
            old = front_end_for(saved.program.source, live.sessions).compile(saved.program.source)
            circuit = Circuit(old, live.sessions, batches, limits=limits, streams=live.stream_runtime(old, saved.program.source))
            try:
                self._replay(circuit, snapshot, saved, plan.kept_connectors)
                circuit.save_streams()
                snapshot = circuit.snapshot
            finally:
                circuit.close()
        live.circuit.awaited = plan.evaluated | plan.outdated.keys()
        live.circuit.restore(snapshot.renamed(plan.renamed_relations, live.circuit.layouts).keep(plan.kept))
        live.clock.resume(snapshot.clock)
        if live.circuit.streams is not None:
            live.circuit.streams.dropped = plan.streams.dropped
            live.circuit.streams.fresh_inputs = plan.streams.fresh_inputs
        live.circuit.open_streams(live.clock.now())

    def bootstrap(self, plan: BootstrapPlan, *, silent: bool) -> None:
        """Evaluate the new and changed views and, unless ``silent``, emit their full contents."""
        live = self._live
        if not plan.evaluated and not plan.renamed:
            live.circuit.refresh()
            live.circuit.awaited = frozenset()
            live.complete()
            return
        step = live.circuit.bootstrap(plan.evaluated, live.clock.now(), shown=plan.renamed.keys())
        live.circuit.publish(step)
        live.circuit.awaited = frozenset()
        live.history.add(step.stats)
        live.metrics.add(initiated_steps=1)
        if not silent:
            live.endpoints.outputs.deliver(step.number, step.view_deltas)
        live.complete()
        # The last of a view's operators produces the view itself.
        given = {stats.view: stats.rows_out for stats in step.stats.operators if stats.view in plan.evaluated}
        for view, old in plan.renamed.items():
            live.log.info("view %s took over the contents of %s, which has the same query", view, old)
        if plan.evaluated:
            live.log.info("bootstrapped %s: %d rows", ", ".join(sorted(plan.evaluated)), sum(given.values()))

    def send_snapshots(self, resumed: Set[str], shown: Set[str]) -> None:
        """Give the contents of their views to outputs that begin with them and are new in a pipeline with state.

        :param resumed: the outputs that go on from an earlier incarnation, and got theirs before
        :param shown: the views whose contents all outputs have just got
        """
        live = self._live
        for output in live.endpoints.outputs.declared:
            if output.sends_snapshot and output.name not in resumed and output.view not in shown:
                live.endpoints.outputs.begin_with(output, live.circuit.snapshot.step, live.circuit.materialize(output.view))
                live.log.info("output %s: begins with the contents of %s", output.name, output.view)

    def _replay(self, circuit: Circuit, base: Snapshot | None, saved: SavedState, outputs: Set[str]) -> None:
        """Replay the journal on its base.

        Its steps are delivered again to the ``outputs`` of its program that go on: these were rewound to the base's step, and the
        last of the steps may not have been delivered at all.
        """
        live = self._live
        if base is None:
            # With a clock, the first step is the journal's first record.
            first = None if circuit.follows_clock else first_step(circuit)
            if first is not None:
                live.endpoints.outputs.deliver_again(first.number, saved.epoch, first.view_deltas, circuit.program, outputs)
        else:
            circuit.restore(base)
        circuit.open_streams(None if saved.records else live.clock.now())
        if base is not None:
            # Before the records are applied, because they change these contents.
            circuit.refresh()
        recorded: Iterable[RecordedStep] = (
            (record, live.durability.deltas_of(record, circuit.wiring.schemas)) for record in saved.records
        )
        if saved.canonical_form != CANONICAL_FORM:
            recorded = ((record, circuit.in_canonical_form(deltas)) for record, deltas in recorded)
        # Outputs get the same steps as without the crash. Without outputs, the sum of the steps is as good and far quicker, unless
        # an operator depends on time or on the order of rows.
        for record, deltas in (
            recorded if live.endpoints.outputs.declared or not circuit.steps_add_up else merged_steps(recorded, circuit.limits)
        ):
            step = circuit.apply(deltas, record.clock, record.waterlines)
            circuit.publish(step)
            live.endpoints.outputs.deliver_again(step.number, saved.epoch, step.view_deltas, circuit.program, outputs)
        if saved.records:
            live.log.info("replayed %d committed steps from the journal", len(saved.records))
