"""Chains with many elements that run elsewhere, and the continuation from their results."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from airflow_pipelines.streams.chain_by_chain import MovedChain, Packed, RoundInput, RoundOutput, Rounds, records_in
from airflow_pipelines.streams.graph.chains import Chain, Plan
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.loop import ChainTask
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.relations import RelationSink
from airflow_pipelines.streams.worker.chain_jobs import ChainDone, ChainJob, JobProgram, JobReply, MustStay
from airflow_pipelines.streams.worker.intake import FeedIntake
from airflow_pipelines.streams.worker.messages import Failure, Feed, FeedKind, OutputRows, SourceFeed
from airflow_pipelines.streams.worker.stored_state import StateChangeLog

_log = logging.getLogger("airflow_pipelines.streams")
RunJobs: TypeAlias = Callable[[Sequence[bytes]], Sequence[bytes]]
"""A function that runs :func:`~airflow_pipelines.streams.worker.chain_task.run_chain_job` for each job, in any place."""
MOST_BYTES = 512 << 20
"""The maximum number of bytes that are sent elsewhere for one chain, and that come back: others have to hold them in memory."""


class FailedElsewhereError(Exception):
    """An error raised because a function of a program has raised one in another process.

    :param failure: the failure
    """

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


class Moving:
    """The decision for each chain of a step where it runs.

    A chain with a sink stays, unless the sink makes rows of a relation: a task that runs elsewhere may run twice, and the output of
    the first attempt would be written again.

    :param plan: the plan of the program
    :param program: the program in the form for jobs
    :param runner: the runner of the chains that stay
    :param intake: the intake of the sources that stay
    :param log: the log that knows the states of the operators
    """

    def __init__(self, plan: Plan, program: JobProgram, runner: LocalRunner, intake: FeedIntake, log: StateChangeLog) -> None:
        self._program = program
        self._runner = runner
        self._intake = intake
        self._log = log
        self._staying = {chain.number for chain in plan.chains if _writes_elsewhere(chain)}
        self._feeds: dict[str, list[Feed]] = {}
        self._run_jobs: RunJobs | None = None
        self._least = 0
        self._outputs: list[OutputRows] = []

    def begin(self, feeds: Iterable[Feed], run_jobs: RunJobs, least: int) -> None:
        """Begin a step.

        :param feeds: the feeds that have arrived
        :param run_jobs: the function that runs tasks elsewhere
        :param least: the minimum number of elements for which a chain runs elsewhere
        """
        self._run_jobs, self._least = run_jobs, least
        for feed in feeds:
            self._feeds.setdefault(feed.uid, []).append(feed)

    def take_outputs(self) -> list[OutputRows]:
        """Remove and return the rows for relations that were made elsewhere.

        :returns: the rows of each relation in order
        """
        taken, self._outputs = self._outputs, []
        return taken

    def run(self, chain: Chain, tasks: list[ChainTask], inputs: list[list[RoundInput]], rounds: Rounds) -> MovedChain | None:
        """Run a chain elsewhere if that is possible and worthwhile.

        See :class:`~airflow_pipelines.streams.chain_by_chain.Elsewhere`.
        """
        feeds = self._feeds.pop(chain.head.uid, [])
        moved = self._move_chain(chain, tasks, inputs, feeds, rounds) if self._may_move(chain, tasks, inputs, feeds) else None
        if moved is None:
            self._intake.take(feeds)
        return moved

    def _may_move(self, chain: Chain, tasks: list[ChainTask], inputs: list[list[RoundInput]], feeds: list[Feed]) -> bool:
        # A single task gains nothing elsewhere, and its elements would have to be sent there and back.
        if len(tasks) == 1 or chain.number in self._staying or any(task.has_ended for task in tasks):
            return False
        records = sum(map(feed_records, feeds))
        records += sum(records_in(given) for rounds in inputs for each in rounds for _, given in each)
        return records >= self._least

    def _move_chain(
        self, chain: Chain, tasks: list[ChainTask], inputs: list[list[RoundInput]], feeds: list[Feed], rounds: Rounds
    ) -> MovedChain | None:
        if sum(task.state_bytes() for task in tasks) + sum(map(_count_feed_bytes, feeds)) > MOST_BYTES:
            return None
        before = [task.snapshot() for task in tasks]
        jobs = []
        for task, snapshot, given in zip(tasks, before, inputs, strict=True):
            packed = _pack_inputs(given)
            if packed is None:
                self._keep_here(chain, "its elements cannot be brought to another process")
                return None
            own = [feed for feed in feeds if _is_for(feed, task.index, chain.parallelism)]
            metrics = {part.uid: part.metrics.without_gauges() for part in task.parts()}
            most = MOST_BYTES // chain.parallelism
            job = ChainJob(self._program, chain.number, task.index, rounds, snapshot, metrics, packed, own, most)
            jobs.append(pickle.dumps(job, 5))
        if sum(map(len, jobs)) > MOST_BYTES:
            return None
        done = self._run(chain, jobs)
        return None if done is None else self._take_over(tasks, done)

    def _run(self, chain: Chain, jobs: list[bytes]) -> list[ChainDone] | None:
        assert self._run_jobs is not None  # noqa: S101 (a step has begun)
        replies: list[JobReply] = [pickle.loads(data) for data in self._run_jobs(jobs)]  # noqa: S301 (made by this program)
        stays = next((reply.outcome for reply in replies if isinstance(reply.outcome, MustStay)), None)
        failure = next((reply.outcome for reply in replies if isinstance(reply.outcome, Failure)), None)
        if stays is not None and failure is None:
            self._keep_here(chain, stays.reason)
            return None
        for reply in replies:
            sys.stdout.write(reply.stdout)
            sys.stderr.write(reply.stderr)
        sys.stdout.flush()
        if failure is not None:
            raise FailedElsewhereError(failure)
        return [reply.outcome for reply in replies if isinstance(reply.outcome, ChainDone)]

    def _keep_here(self, chain: Chain, reason: str) -> None:
        self._staying.add(chain.number)
        _log.info("Large steps of %r run in the process of the program: %s.", chain.name, reason)

    def _take_over(self, tasks: list[ChainTask], done: list[ChainDone]) -> MovedChain:
        """Replace tasks by new ones that resume from the results of their jobs."""
        new = []
        for task, each in zip(tasks, done, strict=True):
            task.close()
            follower = self._runner.new_task(task)
            new.append(follower)
            # The rows of the task are in the database already; those of the snapshot are the ones that changed.
            follower.open(each.snapshot, metrics=each.metrics)
            follower.has_ended = each.has_ended
            self._log.note_states(each.states)
        for number in range(len(done[0].outputs)):
            for each in done:
                self._outputs += each.outputs[number]
        return MovedChain(
            new, [_restore_links(task, each) for task, each in zip(new, done, strict=True)], sum(each.read for each in done)
        )


def _writes_elsewhere(chain: Chain) -> bool:
    operators = [step.node.operator for step in chain.steps]
    return any(isinstance(each, Write) and not isinstance(each.sink, RelationSink) for each in operators)


def _pack_inputs(inputs: list[RoundInput]) -> list[list[tuple[tuple[int, int], Packed]]] | None:
    try:
        return [[(channel, given if isinstance(given, Packed) else Packed.of(given)) for channel, given in each] for each in inputs]
    except Exception:  # noqa: BLE001 (pickling runs code of users, which may raise anything)
        return None


def _restore_links(task: ChainTask, done: ChainDone) -> list[RoundOutput]:
    links = list(task.exchanges)
    return [[(links[position], target, packed) for position, target, packed in each] for each in done.given]


def _is_for(feed: Feed, index: int, parallelism: int) -> bool:
    if not isinstance(feed, SourceFeed):
        return index == 0  # a relation has one split
    return feed.kind is FeedKind.SPLITS or feed.split % parallelism == index


def feed_records(feed: Feed) -> int:
    """Return the number of elements in a feed.

    :param feed: the feed
    """
    return sum(_count_piece_lengths(feed))


def _count_feed_bytes(feed: Feed) -> int:
    return len(feed.payload if isinstance(feed, SourceFeed) else feed.rows)


def _count_piece_lengths(feed: Feed) -> list[int]:
    """Return the number of elements in each piece that a reader gets from a feed."""
    if isinstance(feed, SourceFeed):
        return [feed.records] if feed.kind in (FeedKind.ELEMENTS, FeedKind.ENDED) else []
    import pyarrow as pa  # slow to import, and not needed if no relation is read

    with pa.ipc.open_stream(feed.rows) as reader:
        return [int(abs(batch.column(batch.num_columns - 1).to_numpy()).sum()) for batch in reader]


def rounds_of(feeds: Iterable[Feed], limit: int) -> int:
    """Return the number of rounds that it takes to read everything.

    :param feeds: the feeds
    :param limit: the number of elements after which a reader starts no further piece in the same round
    """
    pieces: dict[tuple[str, int], list[int]] = {}
    for feed in feeds:
        split = feed.split if isinstance(feed, SourceFeed) else 0
        pieces.setdefault((feed.uid, split), []).extend(_count_piece_lengths(feed))
    return max((_count_polls(lengths, limit) for lengths in pieces.values()), default=1) or 1


def _count_polls(lengths: list[int], limit: int) -> int:
    polls, given = 0, limit
    for length in lengths:
        if given >= limit:
            polls, given = polls + 1, 0
        given += length
    return polls
