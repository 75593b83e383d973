"""The pipelines of one host."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from contextlib import suppress
from typing import Any
from uuid import UUID

from pyspark.sql import SparkSession

from airflow_pipelines.common.references import NO_REFERENCES, References
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.engine.functions.python_functions import import_module
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.failures import failure_text, full_trace
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.host.metrics.time_series import EVERY_S
from airflow_pipelines.host.queries.queries import DEFAULT_QUERY_LIMITS, Queries, QueryLimits
from airflow_pipelines.host.queries.query_watch import QueryWatch
from airflow_pipelines.host.runs.runner import PipelineRunner
from airflow_pipelines.host.runs.spark_health import spark_problem
from airflow_pipelines.host.state.front_ends import front_end_for
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.sources import ProgramSource

logger = logging.getLogger(__name__)

COMPILE_LIMIT_S = 100.0
"""The seconds of processor time after which no further view of a program is compiled: others wait for the compiler."""
IMPORTS = 4
"""The number of Python modules of programs that may be imported at the same time."""


class Fleet:
    """The deployments that run side by side in one Spark application, each with Spark sessions of its own."""

    def __init__(
        self,
        spark: SparkSession,
        registry: Registry,
        limits: QueryLimits = DEFAULT_QUERY_LIMITS,
        references: References = NO_REFERENCES,
    ) -> None:
        """Run deployments in ``spark``.

        :param limits: the limits of each deployment's ad-hoc requests
        :param references: the values of the host that configurations may refer to
        """
        self._spark = spark
        self._registry = registry
        self._limits = limits
        self._references = references
        self._watch: QueryWatch | None = None
        self._lock = threading.Lock()
        self._importing = threading.BoundedSemaphore(IMPORTS)
        self._compiling = threading.BoundedSemaphore(os.cpu_count() or 1)
        self._runners: dict[UUID, PipelineRunner] = {}
        self._closed = False
        self._ending = threading.Event()
        self._sampler: threading.Thread | None = None
        self._compilations = 0
        self._last_use = time.monotonic()

    @property
    def deployments(self) -> list[UUID]:
        """The deployments that have not been taken down."""
        with self._lock:
            return list(self._runners)

    @property
    def idle(self) -> bool:
        """True if no deployment is up."""
        with self._lock:
            return self._is_idle()

    def retire(self, idle_s: float) -> bool:
        """Close the host to new work if nothing has run or been compiled here for a while.

        :param idle_s: the while, in seconds
        :returns: True if the host takes no new work
        """
        with self._lock:
            if not self._is_idle() or self._compilations:
                self._last_use = time.monotonic()
            elif time.monotonic() - self._last_use >= idle_s:
                self._closed = True
            return self._closed

    def deploy(self, deployment: Deployment) -> PipelineRunner:
        """Start a deployment. If it was started before, return its runner."""
        with self._lock:
            self._check_open()
            known = self._runners.get(deployment.deployment_id)
        if known is not None:
            return known
        # Created without the lock, which every request takes to find its pipeline.
        sessions = self._sessions()
        with self._lock:
            self._check_open()
            known = self._runners.get(deployment.deployment_id)
            if known is not None:
                return known
            queries = self._queries(deployment)
            runner = PipelineRunner(deployment, sessions, self._registry, queries, self._references)
            self._runners[deployment.deployment_id] = runner
            if self._sampler is None:
                self._sampler = threading.Thread(target=self._sample, name="time series", daemon=True)
                self._sampler.start()
        runner.start()
        return runner

    def get(self, deployment_id: UUID) -> PipelineRunner:
        """Return the runner of a deployment.

        :raises Problem: if it is not on this host
        """
        with self._lock:
            runner = self._runners.get(deployment_id)
        if runner is None:
            raise Problem(ErrorCode.UNKNOWN_DEPLOYMENT, f"This host has no deployment {deployment_id}.")
        return runner

    def application(self) -> dict[str, Any]:
        """Return the Spark application: its id, its name, and the address of its own web page, which is None if it has none."""
        context = self._spark.sparkContext
        return {"id": context.applicationId, "name": context.appName, "web_url": context.uiWebUrl}

    def figures(self) -> dict[str, Any]:
        """Return the list's figures of each deployment that can be read now, by its id."""
        with self._lock:
            runners = dict(self._runners)
        figures = {}
        for deployment_id, runner in runners.items():
            try:
                figures[str(deployment_id)] = runner.requests.figures()
            except Problem:
                continue
            except Exception:
                # The list is still useful for the others.
                logger.exception("Pipeline %s has no figures", runner.deployment.pipeline_name)
        return figures

    def take_down(self, deployment_id: UUID) -> None:
        """End a deployment at once and remove it; an unknown one is no error.

        :raises Problem: 503 while it has not certainly ended
        """
        if self._take_down(deployment_id):
            # The Python proxies of Java objects are in cycles. Until they are collected, the JVM keeps the sessions and plans, and
            # an idle host would not collect for hours.
            gc.collect()

    def _take_down(self, deployment_id: UUID) -> bool:
        """End a deployment and remove it; return True if it was here.

        :raises Problem: as :meth:`take_down` does
        """
        with self._lock:
            runner = self._runners.get(deployment_id)
        if runner is None:
            return False
        if not runner.take_down():
            raise Problem(
                ErrorCode.PIPELINE_UNAVAILABLE, f"The deployment {deployment_id} is still ending its last step; ask again."
            )
        with self._lock:
            self._runners.pop(deployment_id, None)
        return True

    def compile(self, source: ProgramSource) -> Program:
        """Compile a program without running it.

        :raises Problem: 410 if the host ends, 400 ``SqlError`` with the messages in its details, and 422 ``CompilerFailed`` for a
            fault of the compiler
        """
        with self._lock:
            self._check_open()
            self._compilations += 1
        try:
            sessions = self._sessions()
            with self._importing:
                import_module(source.python_functions)
            with self._compiling:
                return front_end_for(source, sessions).compile(source, COMPILE_LIMIT_S)
        except ProgramErrors as errors:
            messages = [message.to_wire() for message in errors.messages]
            raise Problem(ErrorCode.SQL_ERROR, str(errors), {"messages": messages}) from errors
        except Problem:
            raise
        except Exception as failure:
            self._check_spark(failure)
            logger.error("Compiling failed:\n%s", full_trace(failure))  # noqa: TRY400  with Java's stacks, without secrets
            raise Problem(
                ErrorCode.COMPILER_FAILED,
                f"The compiler failed on this program ({failure_text(failure)}). That is a fault of the compiler, which another "
                "try does not cure; the host's log has the details.",
            ) from failure
        finally:
            with self._lock:
                self._compilations -= 1
                self._last_use = time.monotonic()

    def close(self) -> None:
        """Take everything down."""
        with self._lock:
            self._closed = True
        self._ending.set()
        for deployment_id in self.deployments:
            with suppress(Problem):
                self.take_down(deployment_id)

    def _sample(self) -> None:
        """Add to the time series of all pipelines, every second."""
        while not self._ending.wait(EVERY_S):
            # In a function of its own, so that no local variable refers to a pipeline during the wait.
            self._sample_all()

    def _sample_all(self) -> None:
        with self._lock:
            runners = list(self._runners.values())
        for runner in runners:
            try:
                runner.requests.sample()
            except OSError as error:
                # The pipeline's own use of its storage reports the error better.
                logger.debug("Pipeline %s could not be measured: %s", runner.deployment.pipeline_name, error)

    def _is_idle(self) -> bool:
        return all(runner.ended for runner in self._runners.values())

    def _sessions(self) -> SparkSessions:
        try:
            return SparkSessions.of(self._spark)
        except Exception as failure:
            self._check_spark(failure)
            raise

    def _queries(self, deployment: Deployment) -> Queries:
        context = self._spark.sparkContext
        self._watch = self._watch or QueryWatch(context, self._limits.heap_share)
        return Queries(context, deployment.pipeline_name, str(deployment.deployment_id), self._limits, self._watch)

    def _check_spark(self, failure: Exception) -> None:
        """Give up if Spark as a whole has failed: another host may be able to serve the request.

        :raises Problem: 410, if Spark has failed
        """
        problem = spark_problem(self._spark)
        if problem is not None:
            raise Problem(ErrorCode.TERMINATING, f"The host cannot go on: {problem}.") from failure

    def _check_open(self) -> None:
        if self._closed:
            raise Problem(ErrorCode.TERMINATING, "The host is shutting down.")
