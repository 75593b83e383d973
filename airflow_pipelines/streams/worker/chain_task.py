"""Execution of one task of a chain in any process, without leaving traces there."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

from airflow_pipelines.streams.call_watch import CallWatch
from airflow_pipelines.streams.chain_by_chain import Given, Packed, RoundOutput, elements_of, run_round
from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.local import collect_garbage_rarely, task_of_plan
from airflow_pipelines.streams.loop import ChainTask
from airflow_pipelines.streams.state.description import describe_state
from airflow_pipelines.streams.worker.bound import BoundProgram
from airflow_pipelines.streams.worker.chain_jobs import ChainDone, ChainJob, JobReply, MustStay
from airflow_pipelines.streams.worker.failure import failure_of
from airflow_pipelines.streams.worker.intake import FeedIntake
from airflow_pipelines.streams.worker.job_place import in_place
from airflow_pipelines.streams.worker.messages import OutputRows
from airflow_pipelines.streams.worker.remote_plan import RemotePlan, remote_plan


def run_chain_job(data: bytes) -> bytes:
    """Run a task.

    Errors of functions are part of the reply and not raised: whoever starts tasks would otherwise start the task again.

    :param data: a :class:`ChainJob` as bytes
    :returns: a :class:`JobReply` as bytes
    """
    job: ChainJob = pickle.loads(data)  # noqa: S301 (made by the process of the program)
    outcome: Any
    with in_place(job.program.place) as printed:
        folders = job.program.place.folders
        try:
            bound = BoundProgram.from_bytes(job.program.program)
            folders = (*folders, bound.folder)
            outcome = _Run(job, bound).run()
            if outcome.bytes > job.most_bytes:
                outcome = MustStay(f"it gives more than {job.most_bytes >> 20} MiB")
        except _CannotTravelError as error:
            outcome = MustStay(str(error))
        except BaseException as error:  # noqa: BLE001 (whatever a function raises ends the program)
            outcome = failure_of(error, folders)
    return pickle.dumps(JobReply(outcome, printed.stdout.getvalue(), printed.stderr.getvalue()), 5)


class _CannotTravelError(Exception):
    """An error raised for an element that cannot be pickled."""


class _Run:
    def __init__(self, job: ChainJob, bound: BoundProgram) -> None:
        self._job = job
        self._bound = bound
        self._fed: RemotePlan = remote_plan(bound.plan, job.program.schemas)
        chain = self._fed.plan.chains[job.chain]
        settings = replace(bound.settings, attempt=job.program.attempt)
        self._task: ChainTask = task_of_plan(self._fed.plan, chain, job.index, settings, StepClock(job.rounds.now))
        self._given: list[list[tuple[int, int, Packed]]] = []
        self._outputs: list[list[OutputRows]] = []
        self._read = 0

    def run(self) -> ChainDone:
        try:
            self._task.open(self._job.snapshot, metrics=self._job.metrics)
            calls = CallWatch(self._bound.settings.call_seconds)
            try:
                with calls, collect_garbage_rarely():
                    self._run_rounds()
            finally:
                calls.close()
            done = self._make_done()
        except BaseException:
            self._close_quietly()
            raise
        self._task.close()
        return done

    def _run_rounds(self) -> None:
        source = self._task.source
        if source is not None:
            intake = FeedIntake(self._fed, lambda _: [source])
            intake.take(self._job.feeds)
        for number in range(self._job.rounds.number):
            read, output = run_round(self._task, self._job.inputs[number], self._job.rounds)
            self._read += read
            self._given.append(self._pack_output(output))
            self._outputs.append([] if self._fed.ports is None else self._fed.ports.take())

    def _pack_output(self, output: RoundOutput) -> list[tuple[int, int, Packed]]:
        positions = {link: position for position, link in enumerate(self._task.exchanges)}
        return [(positions[link], target, _pack(given)) for link, target, given in output]

    def _make_done(self) -> ChainDone:
        parts = list(self._task.parts())
        return ChainDone(
            self._given,
            self._outputs,
            self._task.changes(),
            {part.uid: part.metrics.without_gauges() for part in parts},
            {part.uid: tuple(map(describe_state, part.store.declared.values())) for part in parts if part.store is not None},
            self._task.has_ended,
            self._read,
        )

    def _close_quietly(self) -> None:
        try:
            self._task.close()
        except Exception:  # noqa: BLE001 (the error that ended the task is the one to tell)
            return


def _pack(given: Given) -> Packed:
    try:
        return Packed.of(elements_of(given))
    except Exception as error:  # noqa: BLE001 (pickling runs code of users, which may raise anything)
        raise _CannotTravelError(f"its elements cannot be brought to another process ({type(error).__name__}: {error})") from None
