"""The step loop: it takes input, runs a step over it, and between steps does the work that is due."""

from __future__ import annotations

from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.inputs.intake import Intake
from airflow_pipelines.host.inputs.step_input import StepInput
from airflow_pipelines.host.queries.first_queries import FirstQueries
from airflow_pipelines.host.runs.checkpointer import Checkpointer
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.host.steps.transactions import IncarnationTransactions, Transaction


class StepLoop:
    """The loop that runs an open pipeline until it is to end. Only the pipeline's thread uses it."""

    def __init__(
        self,
        incarnation: Incarnation,
        live: LivePipeline,
        intake: Intake,
        transactions: IncarnationTransactions,
        checkpointer: Checkpointer,
        first_queries: FirstQueries,
    ) -> None:
        self._live = live
        self._state = incarnation.state
        self._intake = intake
        self._transactions = transactions
        self._checkpointer = checkpointer
        self._fence = incarnation.fence
        self._first_queries = first_queries

    def run(self) -> None:
        """Run steps until the pipeline is suspended.

        :raises TakenDown: if it is to end at once
        :raises Exception: if a step or the last checkpoint fails, a connector fails without which the pipeline cannot go on, or a
            later run uses the storage
        """
        self._checkpointer.begin()
        while True:
            self._state.wait(self._has_work, self._until_due())
            desired = self._state.desired
            self._state.check()
            if desired is RuntimeStatus.SUSPENDED:
                # The stop waits for the end of an open transaction, which goes on meanwhile.
                if self._transactions.current is None:
                    self._checkpointer.take_last(self._live)
                    return
            elif desired is not self._state.status:
                self._switch(desired)
            for task in self._intake.take_tasks():
                task()
            self._state.check()
            if (failure := self._live.endpoints.failure) is not None:
                raise failure
            self._step_or_maintain()
            self._state.tell_news()
            self._live.flush_outputs()
            self._checkpointer.show_end_of_streams(self._live)
            self._fence.look()
            self._checkpointer.take_if_due(self._live)
            if not self._has_work():
                self._first_queries.look(self._live.circuit)

    def _has_work(self) -> bool:
        state, transaction = self._state, self._transactions.current
        waits = transaction is not None and state.desired is RuntimeStatus.SUSPENDED and not state.taken_down
        if (state.has_to_change and not waits) or state.has_news:
            return True
        if self._intake.has_tasks or self._live.endpoints.failure is not None or self._live.endpoints.outputs.has_delivered:
            return True
        if self._live.endpoints.outputs.is_held_up:
            # Backpressure: input waits until outputs have delivered some changes.
            return False
        if transaction is None:
            return self._intake.has_before(None) or (state.is_running and self._live.endpoints.inputs.have_work())
        if transaction.has_all or self._intake.has_before(transaction.last_push):
            return True
        return state.is_running and self._live.endpoints.inputs.have_work(transaction.takes_from)

    def _until_due(self) -> float | None:
        """Return the seconds until work is due even if no input comes: a tick, a full buffer, a checkpoint or a fence check."""
        live = self._live
        ticks = self._state.is_running and self._transactions.current is None and not live.endpoints.outputs.is_held_up
        tick = live.until_tick() if ticks else None
        waits = (tick, live.endpoints.outputs.until_flush, self._checkpointer.until_due, self._fence.until_due)
        return min((wait for wait in waits if wait is not None), default=None)

    def _switch(self, desired: RuntimeStatus) -> None:
        """Start to take inputs, or stop taking them."""
        live, running = self._live, desired is RuntimeStatus.RUNNING
        live.endpoints.inputs.release_labels()
        live.endpoints.inputs.set_active(running)
        if running:
            live.endpoints.outputs.forget_first()
        self._state.record(desired)
        self._intake.set_open(running)

    def _step_or_maintain(self) -> None:
        """Run a step over the input that has come, or with the next tick of the clock; without input, merge traces that need it."""
        if self._live.endpoints.outputs.is_held_up:
            return
        transaction = self._transactions.current
        if transaction is not None and not self._intake.has_before(transaction.first_push):
            self._collect_or_commit(transaction)
            return
        live, running = self._live, self._state.is_running
        if transaction is not None:
            # These rows were accepted before the transaction was started.
            taken = StepInput(self._intake.take(transaction.first_push), {})
        else:
            taken = StepInput(self._intake.take(), live.endpoints.inputs.take() if running else {})
            transaction = self._transactions.opened_by(taken)
            if transaction is not None:
                live.collect(taken, transaction)
                live.endpoints.inputs.release_labels()
                return
        clock = live.tick() if running else None
        if not taken.is_empty or clock is not None:
            live.step(taken, clock)
        if taken.is_empty:
            live.circuit.maintain()
        if not taken.is_empty or clock is not None:
            live.endpoints.inputs.release_labels()
            self._checkpointer.shorten_journal(live)

    def _collect_or_commit(self, transaction: Transaction) -> None:
        """Add the input that has come to the transaction, or commit it if its participants have nothing to add."""
        live = self._live
        taken = self._take_for(transaction)
        if not taken.is_empty:
            self._transactions.note(transaction, taken)
            live.collect(taken, transaction)
            live.endpoints.inputs.release_labels()
            return
        if not transaction.has_all:
            live.circuit.maintain()
            return
        live.commit(transaction, self._find_clock(transaction))
        self._transactions.close()
        live.endpoints.inputs.release_labels()
        self._checkpointer.take_delayed(live)
        self._checkpointer.shorten_journal(live)

    def _take_for(self, transaction: Transaction) -> StepInput:
        """Take the input for a transaction. Input that came after the request to commit belongs to later steps."""
        if transaction.by_api is None and transaction.has_all:
            return StepInput([], {})
        pushes = self._intake.take(transaction.last_push)
        endpoints = self._live.endpoints
        if not self._state.is_running:
            return StepInput(pushes, {})
        if transaction.last_push is None or transaction.drained:
            return StepInput(pushes, endpoints.inputs.take(transaction.takes_from))
        chunks = endpoints.inputs.take_all(transaction.takes_from)
        transaction.drained = True
        return StepInput(pushes, chunks)

    def _find_clock(self, transaction: Transaction) -> int | None:
        """Return the time of the tick that a commit includes, or None."""
        tick = self._live.tick() if self._state.is_running else None
        times = [time for time in (tick, transaction.clock) if time is not None]
        return max(times, default=None)
