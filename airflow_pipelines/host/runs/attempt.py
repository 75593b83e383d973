"""An attempt to run an incarnation. Its parts are created anew, so that nothing of a failed attempt gets into the next."""

from __future__ import annotations

from uuid import UUID, uuid5

from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.storage.errors import within_storage
from airflow_pipelines.host.inputs.intake import Intake
from airflow_pipelines.host.metrics.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.queries.first_queries import FirstQueries
from airflow_pipelines.host.runs.checkpointer import Checkpointer
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.runs.opening import Opening
from airflow_pipelines.host.runs.pipeline_requests import PipelineRequests
from airflow_pipelines.host.runs.step_loop import StepLoop
from airflow_pipelines.host.steps.transactions import IncarnationTransactions
from airflow_pipelines.program.streams import StreamProgram


class Attempt:
    """The parts of an incarnation between their opening and their end.

    ``requests`` answers requests to the running pipeline, ``opening`` has the opened parts.
    """

    def __init__(self, incarnation: Incarnation, number: int) -> None:
        """Create the parts; nothing is opened yet.

        :param incarnation: the incarnation
        :param number: the number of the attempt, from 1
        """
        self._incarnation = incarnation
        self._state = state = incarnation.state
        self._has_ended = False
        deployment_id = incarnation.deployment.deployment_id
        self._metrics = PipelineMetrics(run_id(deployment_id, number), incarnation.storage)
        self._intake = Intake(state.condition, self._count_received)
        self.opening = opening = Opening(incarnation, self._metrics, self._note_arrival, number)
        self._transactions = IncarnationTransactions(state.condition, self._intake, lambda: self._metrics.counters().transactions)
        self._checkpointer = Checkpointer(incarnation, opening, self._intake, self._transactions)
        self.requests = PipelineRequests(incarnation, opening, self._intake, self._transactions, self._checkpointer, self._metrics)
        group = f"{deployment_id}-first-queries"
        self._first_queries = FirstQueries(incarnation.sessions.small.sparkContext, group, incarnation.log)

    @property
    def stream_program(self) -> StreamProgram | None:
        """The stream program that runs, or None without one or before it could be opened."""
        return None if self.opening.live is None else self.opening.live.program.streams

    def run(self) -> None:
        """Open the parts, and run steps until the pipeline is suspended.

        :raises Exception: if it ends in another way
        """
        with within_storage(self._incarnation.storage):
            live = self.opening.open()
            self.requests.begin_activity(live)
            StepLoop(self._incarnation, live, self._intake, self._transactions, self._checkpointer, self._first_queries).run()

    def keep_last_step(self) -> None:
        """Save the steps before one that failed, if no journal has them."""
        self._checkpointer.keep_last_step()

    def end(self, reason: Problem) -> None:
        """Release waiting requests, connectors and processes, but keep the storage folder. Calling it again does no harm.

        :param reason: the problem for waiting requests
        """
        if self._has_ended:
            return
        self._has_ended = True
        self._intake.close(reason)
        self._checkpointer.give_up(reason)
        self._first_queries.close()
        self.opening.close_parts()

    def close(self) -> None:
        """Release the storage folder."""
        self.opening.close_storage()

    def _count_received(self, records: int, size_bytes: int) -> None:
        self._metrics.add(input_records=records, input_bytes=size_bytes)

    def _note_arrival(self, records: int, size_bytes: int) -> None:
        self._count_received(records, size_bytes)
        self._state.notify()


def run_id(incarnation: UUID, attempt: int) -> UUID:
    """Return the id under which the counters of an attempt are kept: those of two attempts cannot be compared.

    :param incarnation: the incarnation
    :param attempt: the number of the attempt, from 1
    """
    return incarnation if attempt == 1 else uuid5(incarnation, str(attempt))
