"""The compilation of pipelines' programs on the shared host."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.service.compiling import COMPILE_ATTEMPTS, compile_on, is_lost_compiler
from airflow_pipelines.service.deployers.base import SubmitError
from airflow_pipelines.service.deployers.shared import SharedDeployer
from airflow_pipelines.service.hosts import Hosts, HostUnreachable
from airflow_pipelines.service.lifecycle import compilation
from airflow_pipelines.service.reconcile.commits import Commits
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.store import Conflict

RENEW_S = 30.0
"""The number of seconds after which a process that waits for a compiler renews its claim."""
CLAIM_LIMIT_S = 4 * RENEW_S
"""The number of seconds after which a compilation whose claim was not renewed counts as abandoned by a process that died."""

logger = logging.getLogger(__name__)


class Compilations:
    """The compilations of one store: claims them, and writes their results.

    :param commits: the writer of the results
    :param hosts: the hosts of the store
    :param shared: the deployer of the shared host, which compiles
    """

    def __init__(self, commits: Commits, hosts: Hosts, shared: SharedDeployer) -> None:
        self._commits = commits
        self._hosts = hosts
        self._shared = shared
        self._lost: Counter[tuple[UUID, int]] = Counter()
        """The number of compilers that were lost with a version of a pipeline's program."""

    def wants(self, record: PipelineRecord, now: datetime) -> bool:
        """Return True if the program waits for a compiler, also because the process that had claimed it died."""
        if record.program_status is CompilationStatus.PENDING:
            return True
        unfinished = record.program_status in {
            CompilationStatus.COMPILING_SQL,
            CompilationStatus.SQL_COMPILED,
            CompilationStatus.COMPILING_RUST,
        }
        claimed = record.compile_claimed_at
        return unfinished and (claimed is None or (now - claimed).total_seconds() > CLAIM_LIMIT_S)

    def compile(self, record: PipelineRecord) -> PipelineRecord:
        """Compile a pipeline's program, once there is a host for it.

        :param record: the pipeline
        :returns: the pipeline after the compilation; unchanged while the host starts
        :raises Conflict: when another process was quicker
        """
        # The claim is made once the host is up, so that nobody holds one while a host starts.
        try:
            host = self._shared.host()
        except SubmitError as error:
            return self._commits.commit(record, [compilation.compiler_failed(record, str(error), datetime.now(UTC))])
        if host is None:
            return record
        claim = _Claim(self._commits, self._commits.commit(record, [compilation.claim_compilation(record, datetime.now(UTC))]))
        try:
            result = compile_on(self._hosts, host, claim.record, claim.renew)
            record = claim.record
        except HostUnreachable as error:
            record = claim.record
            logger.warning("The compiler of pipeline %s went away: %s", record.name, error)
            program = (record.id, record.program_version)
            self._lost[program] += 1
            if is_lost_compiler(error) and self._lost[program] < COMPILE_ATTEMPTS:
                return self._finish(record, lambda current: [compilation.reset_program(current, datetime.now(UTC))])
            del self._lost[program]
            fate = "was lost" if is_lost_compiler(error) else "lives and does not come to an end with the program"
            return self._compiler_failed(record, f"The compiling host {fate}: {error}. Its log is {host.log_path}")
        except Problem as error:
            return self._compiler_failed(claim.record, f"{error.code}: {error.message}")
        self._lost.pop((record.id, record.program_version), None)
        info = result.program_info
        if info is None:
            return self._finish(record, lambda r: [compilation.sql_failed(r, result.messages, datetime.now(UTC))])
        return self._finish(record, lambda current: compilation.remaining_steps(current, info, result.messages, datetime.now(UTC)))

    def _compiler_failed(self, record: PipelineRecord, message: str) -> PipelineRecord:
        return self._finish(record, lambda current: [compilation.compiler_failed(current, message, datetime.now(UTC))])

    def _finish(self, claimed: PipelineRecord, steps: Callable[[PipelineRecord], list[PipelineRecord]]) -> PipelineRecord:
        """Write a compilation's result, unless the program has changed or another process took over."""
        record = claimed
        while True:
            same = (record.program_version, record.compile_claimed_at) == (claimed.program_version, claimed.compile_claimed_at)
            if not same or record.program_status is not CompilationStatus.COMPILING_SQL:
                return record
            try:
                return self._commits.commit(record, steps(record))
            except Conflict:
                newest = self._commits.newest(record)
                if newest is None:
                    # It was deleted meanwhile, and its program with it.
                    return record
                record = newest


class _Claim:
    """The claim of a compilation, which is renewed as long as its host is at work.

    :param commits: the writer of the claim
    :param record: the pipeline with the claim
    """

    def __init__(self, commits: Commits, record: PipelineRecord) -> None:
        self._commits = commits
        self.record = record
        """The pipeline, with the claim as it was last written."""

    def renew(self) -> None:
        """Renew the claim if it is old; leave a program alone that another process has changed or taken over."""
        now = datetime.now(UTC)
        claimed = self.record.compile_claimed_at
        if claimed is None or (now - claimed).total_seconds() < RENEW_S:
            return
        newest = self._commits.newest(self.record)
        if newest is None or _claim_of(newest) != _claim_of(self.record):
            return
        # Another process has changed something else, or the next renewal notices its change.
        with suppress(Conflict):
            self.record = self._commits.commit(newest, [replace(newest, compile_claimed_at=now)])


def _claim_of(record: PipelineRecord) -> tuple[object, ...]:
    return record.program_version, record.program_status, record.compile_claimed_at
