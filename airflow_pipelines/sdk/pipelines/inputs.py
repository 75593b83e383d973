"""The input of rows into a pipeline, and waits for their processing."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow_pipelines.contract.enums import CompletionTokenStatus, PipelineStatus, TransactionStatus
from airflow_pipelines.contract.push_keys import IDEMPOTENCY_KEY_HEADER, check_push_key
from airflow_pipelines.contract.stats import (
    GlobalPipelineMetrics,
    InputEndpointStatus,
    OutputEndpointStatus,
    PipelineStatistics,
    StepFigures,
)
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineFailedError
from airflow_pipelines.sdk.pipelines.base import STATUS_POLL_S
from airflow_pipelines.sdk.pipelines.getters import PipelineGetters
from airflow_pipelines.sdk.pipelines.lifecycle import PipelineLifecycle
from airflow_pipelines.sdk.pipelines.waiting import wait_until
from airflow_pipelines.sdk.wire import is_ending

if TYPE_CHECKING:
    import pandas

UPDATE_FORMATS = ("raw", "insert_delete")
_log = logging.getLogger(__name__)
PANDAS_CHUNK_ROWS = 50_000
COMPLETION_POLL_S = 1.0

_PROCESSING = frozenset(
    {
        PipelineStatus.PROVISIONING,
        PipelineStatus.UNAVAILABLE,
        PipelineStatus.INITIALIZING,
        PipelineStatus.REPLAYING,
        PipelineStatus.BOOTSTRAPPING,
        PipelineStatus.CONCURRENTBOOTSTRAPPING,
        PipelineStatus.SYNCHRONIZING,
        PipelineStatus.RUNNING,
    }
)
"""The statuses in which input is processed, or soon will be."""
_ENDING = frozenset({PipelineStatus.SUSPENDED, PipelineStatus.STOPPING})
"""The statuses that end soon; the reason is known only afterwards."""


class PipelineInputs(PipelineLifecycle, PipelineGetters):
    """The methods for input, input connectors and statistics, and the waits for input that was sent."""

    def input_json(
        self,
        table_name: str,
        data: Mapping[str, Any] | Sequence[Any],
        update_format: str = "raw",
        force: bool = False,
        wait: bool = True,
        **kwargs: Any,
    ) -> str:
        """Send rows to a table.

        :param table_name: the table; unquoted names fold to lower case, ``'"Name"'`` is taken as it is
        :param data: one row or a list of rows, as mappings by column name. Decimals, dates, times, UUIDs and bytes are encoded in
            the service's format.
        :param update_format: ``raw`` for rows to insert; ``insert_delete`` for ``{"insert": row}`` and ``{"delete": row}``
        :param force: True to send even when the pipeline is paused; it processes these rows nevertheless
        :param wait: True to wait until the rows are processed and delivered
        :param kwargs: ``json_flavor`` (the encoding of values, default ``default``), ``timeout_s`` (of the wait, in seconds),
            ``checkpoint`` (of the wait, see :meth:`wait_for_token`) and ``idempotency_key``: a text of your choice for these rows.
            If the table has received rows with this key before, they are not added again, which is logged
        :returns: the completion token of these rows, for :meth:`completion_token_status`
        :raises ValueError: when the update format is unknown, or a value has no JSON form (NaN, infinity)
        :raises RuntimeError: when the pipeline is paused and ``force`` is not set
        :raises PipelineAPIError: when the pipeline is not up, the table unknown, or rows are malformed (code ``ParseErrors``; the
            valid rows are processed nevertheless)
        """
        if update_format not in UPDATE_FORMATS:
            raise ValueError(f"unknown update_format {update_format!r}; known: {', '.join(UPDATE_FORMATS)}")
        if not force:
            self._refuse_when_paused()
        is_list = not isinstance(data, Mapping)
        body = json.dumps(list(data) if is_list else data, default=_encode, allow_nan=False)
        return self._push(table_name, body, is_list, update_format, force, wait, **kwargs)

    def input_pandas(
        self,
        table_name: str,
        df: pandas.DataFrame,
        force: bool = False,
        *,
        checkpoint: bool = False,
        idempotency_key: str | None = None,
    ) -> None:
        """Send the rows of a pandas DataFrame to a table, and wait until they are processed.

        :param table_name: the table
        :param df: the rows; its columns are the table's
        :param force: True to send even when the pipeline is paused; it processes these rows nevertheless
        :param checkpoint: see :meth:`wait_for_token`
        :param idempotency_key: see :meth:`input_json`
        :raises ValueError: when the pipeline has no such table
        :raises RuntimeError: when the pipeline is neither running nor paused, or is paused and ``force`` is not set
        :raises PipelineAPIError: when rows are malformed
        """
        wanted = table_name[1:-1].replace('""', '"') if table_name.startswith('"') else table_name.lower()
        tables = [table.name for table in self.tables()]
        if wanted not in tables:
            raise ValueError(f"pipeline {self.name!r} has no table {table_name!r}; it has: {', '.join(tables) or 'none'}")
        status = self.status()
        if status not in (PipelineStatus.RUNNING, PipelineStatus.PAUSED):
            raise PipelineFailedError(
                f"cannot send rows to pipeline {self.name!r} in status {status}: it must be RUNNING or PAUSED"
            )
        if not force:
            self._refuse_when_paused(status)
        token = ""
        for start in range(0, len(df), PANDAS_CHUNK_ROWS):
            chunk = df.iloc[start : start + PANDAS_CHUNK_ROWS]
            body = chunk.to_json(orient="records", date_format="epoch")
            key = None if idempotency_key is None else f"{idempotency_key}/{start}"
            token = self._push(table_name, body, True, "raw", force, False, json_flavor="pandas", idempotency_key=key)
        if token:
            self.wait_for_token(token, checkpoint=checkpoint)

    def generate_completion_token(self, table_name: str, connector_name: str) -> str:
        """Return a token that stands for everything that an input connector has received so far.

        :param table_name: the connector's table
        :param connector_name: the connector's name within the table
        :returns: the token, for :meth:`completion_token_status` and :meth:`wait_for_token`
        :raises PipelineAPIError: when there is no such connector, or the pipeline has no host
        """
        answer = self.client.get(self._path("tables", table_name, "connectors", connector_name, "completion_token"))
        return str(answer["token"])

    def completion_token_status(self, token: str) -> CompletionTokenStatus:
        """Return the status of a token: complete once all its input is processed and the resulting output delivered.

        :param token: a completion token
        :returns: ``COMPLETE`` or ``IN_PROGRESS``
        :raises PipelineAPIError: when the token is malformed, or is from before the pipeline's last restart; with the code
            ``OutputFailed`` when an output failed that had to deliver a part of it
        """
        return self._token_status(token, idempotent=True)

    def wait_for_token(self, token: str, timeout_s: float | None = None, *, checkpoint: bool = False) -> None:
        """Wait until everything a token stands for is processed and delivered.

        With the fault tolerance ``exactly_once`` no kill can lose it then. With ``none`` and ``at_least_once`` pushed rows are lost
        if the pipeline is killed before its next checkpoint, unless ``checkpoint`` is set.

        :param token: a completion token
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :param checkpoint: True to wait until no kill can lose it, with a checkpoint if one is needed
        :raises PipelineAPIError: when the token is malformed, or is from before the pipeline's last restart; with the code
            ``CheckpointFailed`` when the checkpoint could not be written, and with ``OutputFailed`` when an output failed that had
            to deliver a part of it; the message names it and the reason. The rows are in the pipeline then
        :raises PipelineFailedError: when the pipeline stops meanwhile; with its error
        :raises PipelineTimeoutError: when time is up
        """
        last = "nothing"

        def complete() -> bool | None:
            nonlocal last
            try:
                status = self._token_status(token, idempotent=False, checkpoint=checkpoint)
            except PipelineAPIError as error:
                if error.status_code not in (410, 503, 502, 504):
                    raise
                last = self._raise_if_down("a completion token")
                if error.status_code == 410 and not is_ending(error):
                    raise
                return None
            last = f"token {status.value}"
            return True if status is CompletionTokenStatus.COMPLETE else None

        what = f"pipeline {self.name!r} to process everything behind a completion token"
        wait_until(complete, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STATUS_POLL_S)

    def stats(self) -> PipelineStatistics:
        """Return the pipeline's statistics.

        :returns: its global metrics and those of its connectors
        :raises PipelineAPIError: when the pipeline has no host, or is not ready
        """
        return PipelineStatistics.from_dict(self.client.get(self._path("stats")))

    def steps(self) -> list[StepFigures]:
        """Return the metrics of the most recent steps: their durations, and the cost of each view.

        :returns: oldest first
        :raises PipelineAPIError: when the pipeline has no host, or is not ready
        """
        answer = self.client.get(self._path("steps"))
        entries = answer["steps"] if isinstance(answer, dict) else answer
        return [StepFigures.from_dict(entry) for entry in entries]

    def input_connector_stats(self, table_name: str, connector_name: str) -> InputEndpointStatus:
        """Return the status of an input connector, with its most recent errors.

        :param table_name: the connector's table
        :param connector_name: the connector's name within the table
        :returns: its status
        :raises PipelineAPIError: when there is no such connector, or the pipeline has no host
        """
        return InputEndpointStatus.from_dict(
            self.client.get(self._path("tables", table_name, "connectors", connector_name, "stats"))
        )

    def output_connector_stats(self, view_name: str, connector_name: str) -> OutputEndpointStatus:
        """Return the status of an output connector, with its most recent errors.

        :param view_name: the connector's view
        :param connector_name: the connector's name within the view
        :returns: its status
        :raises PipelineAPIError: when there is no such connector, or the pipeline has no host
        """
        return OutputEndpointStatus.from_dict(
            self.client.get(self._path("views", view_name, "connectors", connector_name, "stats"))
        )

    def pause_connector(self, table_name: str, connector_name: str) -> None:
        """Pause the reading of an input connector until :meth:`resume_connector`, across restarts too.

        :param table_name: the connector's table
        :param connector_name: the connector's name within the table
        :raises PipelineAPIError: when there is no such connector, or the pipeline has no host
        """
        self.client.post(self._path("tables", table_name, "connectors", connector_name, "pause"))

    def resume_connector(self, table_name: str, connector_name: str) -> None:
        """Resume the reading of an input connector.

        :param table_name: the connector's table
        :param connector_name: the connector's name within the table
        :raises PipelineAPIError: when there is no such connector, or the pipeline has no host
        """
        self.client.post(self._path("tables", table_name, "connectors", connector_name, "start"))

    def is_complete(self) -> bool:
        """Return True if every input has ended and everything received is processed and delivered.

        :returns: True if complete. Rows sent with :meth:`input_json` or INSERT count as received; they do not keep the pipeline
            incomplete for ever.
        :raises PipelineAPIError: when the pipeline has no host
        :raises RuntimeError: when the service gives no such metric
        """
        return self._is_complete(self._metrics())

    def wait_for_completion(self, force_stop: bool = False, timeout_s: float | None = None) -> None:
        """Wait until every input has ended and everything received is processed and delivered.

        An input that follows its source never ends; then this waits until the timeout.

        :param force_stop: True to stop the pipeline by force afterwards, without a checkpoint
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :raises RuntimeError: when the pipeline is paused or stopped, so that it processes nothing, stops with an error meanwhile,
            or has a failed output, which delivers nothing more
        :raises PipelineTimeoutError: when time is up
        """
        last = "nothing"

        def complete() -> bool | None:
            nonlocal last
            last = self._raise_if_down("completion")
            status = PipelineStatus.from_str(self._descriptor["deployment_status"])
            if status in _ENDING:
                return None
            if status not in _PROCESSING:
                raise PipelineFailedError(f"pipeline {self.name!r} cannot come to completion in status {status}")
            statistics = self._statistics_when_ready()
            if statistics is None:
                return None
            metrics = self._global_metrics(statistics)
            last = f"{_progress(metrics)}, {last}"
            if self._is_complete(metrics):
                return True
            if failed := statistics.failed_outputs:
                reasons = "; ".join(f"output {name} has failed: {reason}" for name, reason in failed.items())
                raise PipelineFailedError(f"pipeline {self.name!r} cannot come to completion: {reasons}")
            return None

        what = f"pipeline {self.name!r} to complete its inputs"
        wait_until(complete, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=COMPLETION_POLL_S)
        if force_stop:
            self.stop(force=True)

    def wait_for_idle(self, idle_interval_s: float = 5.0, timeout_s: float | None = None, poll_interval_s: float = 0.2) -> None:
        """Wait until the pipeline is idle: everything received is processed, and no new input has arrived for a while.

        :param idle_interval_s: the number of seconds without a change after which the pipeline is idle
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :param poll_interval_s: the number of seconds between two polls
        :raises ValueError: when the idle interval or the poll interval exceeds the timeout, or the poll interval the idle interval
        :raises RuntimeError: when metrics are missing, the pipeline stops, or time is up (``PipelineTimeoutError``)
        """
        if timeout_s is not None and idle_interval_s > timeout_s:
            raise ValueError(f"idle_interval_s ({idle_interval_s}) is larger than timeout_s ({timeout_s})")
        if timeout_s is not None and poll_interval_s > timeout_s:
            raise ValueError(f"poll_interval_s ({poll_interval_s}) is larger than timeout_s ({timeout_s})")
        if poll_interval_s > idle_interval_s:
            raise ValueError(f"poll_interval_s ({poll_interval_s}) is larger than idle_interval_s ({idle_interval_s})")
        counters: tuple[int, int] | None = None
        since = time.monotonic()
        last = "nothing"

        def idle() -> bool | None:
            nonlocal counters, since, last
            try:
                metrics = self._metrics(idempotent=False)
            except PipelineAPIError as error:
                if error.status_code != 503:
                    raise
                last = self._raise_if_down("idleness")
                counters = None
                return None
            if metrics.total_input_records is None or metrics.total_processed_records is None:
                raise PipelineFailedError(f"the statistics of pipeline {self.name!r} have no record counters")
            now = (metrics.total_input_records, metrics.total_processed_records)
            last = _progress(metrics)
            if now != counters:
                counters, since = now, time.monotonic()
                return None
            return True if now[0] == now[1] and time.monotonic() - since >= idle_interval_s else None

        what = f"pipeline {self.name!r} to be idle for {idle_interval_s:g} s"
        wait_until(idle, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=poll_interval_s)

    def _wait_for_counted_input(self, timeout_s: float | None) -> None:
        """Wait until all input that has been counted by now is completed or, in a transaction, collected by it."""
        metrics = self._metrics()
        goal = (metrics.total_input_records or 0) - (metrics.buffered_input_records or 0)
        last = _progress(metrics)

        def check_completed() -> bool | None:
            nonlocal metrics, last
            if _is_taken(metrics, goal):
                return True
            last = self._raise_if_down("an INSERT or DELETE")
            metrics = self._metrics(idempotent=False)
            last = f"{_progress(metrics)}, {last}"
            return True if _is_taken(metrics, goal) else None

        what = f"pipeline {self.name!r} to complete {goal} input records"
        wait_until(check_completed, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STATUS_POLL_S)

    def _push(
        self,
        table_name: str,
        body: str,
        is_list: bool,
        update_format: str,
        force: bool,
        wait: bool,
        *,
        json_flavor: str = "default",
        timeout_s: float | None = None,
        checkpoint: bool = False,
        idempotency_key: str | None = None,
    ) -> str:
        params = {"format": "json", "array": is_list, "update_format": update_format, "json_flavor": json_flavor, "force": force}
        headers = {"Content-Type": "application/json"}
        if idempotency_key is not None:
            headers[IDEMPOTENCY_KEY_HEADER] = check_push_key(idempotency_key)
        path, repeatable = self._path("ingress", table_name), idempotency_key is not None
        answer = self.client.post(path, params=params, content=body, headers=headers, idempotent=repeatable)
        if answer.get("already_there"):
            _log.info("table %s of pipeline %s has the rows with the key %r already", table_name, self.name, idempotency_key)
        token = str(answer["token"])
        if wait:
            self.wait_for_token(token, timeout_s, checkpoint=checkpoint)
        return token

    def _refuse_when_paused(self, status: PipelineStatus | None = None) -> None:
        if (status or self.status()) is PipelineStatus.PAUSED:
            raise PipelineFailedError(f"pipeline {self.name!r} is PAUSED: resume it, or send rows with force=True")

    def _token_status(self, token: str, *, idempotent: bool, checkpoint: bool = False) -> CompletionTokenStatus:
        params: dict[str, Any] = {"token": token, **({"checkpoint": True} if checkpoint else {})}
        answer = self.client.get(self._path("completion_status"), params=params, idempotent=idempotent)
        return CompletionTokenStatus(answer["status"])

    def _statistics(self, *, idempotent: bool = True) -> PipelineStatistics:
        return PipelineStatistics.from_dict(self.client.get(self._path("stats"), idempotent=idempotent))

    def _global_metrics(self, statistics: PipelineStatistics) -> GlobalPipelineMetrics:
        if statistics.global_metrics is None:
            raise PipelineFailedError(f"pipeline {self.name!r} gives no global metrics")
        return statistics.global_metrics

    def _metrics(self, *, idempotent: bool = True) -> GlobalPipelineMetrics:
        return self._global_metrics(self._statistics(idempotent=idempotent))

    def _statistics_when_ready(self) -> PipelineStatistics | None:
        try:
            return self._statistics(idempotent=False)
        except PipelineAPIError as error:
            # It may just have gone down or not be up yet: the next read of its status shows which.
            if error.status_code == 503:
                return None
            raise

    def _is_complete(self, metrics: GlobalPipelineMetrics) -> bool:
        if metrics.pipeline_complete is None:
            raise PipelineFailedError(f"the statistics of pipeline {self.name!r} do not say whether it is complete")
        return metrics.pipeline_complete


def _is_taken(metrics: GlobalPipelineMetrics, goal: int) -> bool:
    """Return True if the number of completed records has reached the goal.

    In a transaction processed records suffice, since the waiting caller may be the one who has to commit.
    """
    if (metrics.total_completed_records or 0) >= goal:
        return True
    is_collecting = metrics.transaction_status is TransactionStatus.TransactionInProgress
    return is_collecting and (metrics.total_processed_records or 0) >= goal


def _progress(metrics: GlobalPipelineMetrics) -> str:
    return (
        f"{metrics.total_input_records} records received, {metrics.total_processed_records} processed, "
        f"{metrics.total_completed_records} completed"
    )


def _encode(value: Any) -> Any:
    """Encode a value that JSON does not support in the service's format."""
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ") if value.tzinfo is None else value.isoformat()
    if isinstance(value, date) or hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return list(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form: {value!r}")
