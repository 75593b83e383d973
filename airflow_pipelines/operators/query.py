"""The base class of operators that query a pipeline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_pipelines.hooks.configuration import first_delay_s, outage_budget_s
from airflow_pipelines.operators.base import WaitingPipelineOperator
from airflow_pipelines.triggers.pipeline import backstop
from airflow_pipelines.triggers.query import PipelineQueryTrigger, first_rows

if TYPE_CHECKING:
    from airflow.sdk import Context


class QueryingOperator(WaitingPipelineOperator):
    """The base class of operators that run an ad-hoc query on a running or paused pipeline, in the worker or in the triggerer."""

    def ask(self, context: Context, query: str, limit: int) -> Any:
        """Run the query, then ``finish`` with ``{"rows", "truncated"}``.

        :param context: the task's context
        :param query: a SELECT
        :param limit: the maximum number of rows
        :returns: the XCom
        :raises TaskDeferred: if the task is deferrable
        """
        if not self.deferrable:
            rows = self.hook.query(self.pipeline_name, query, limit + 1)
            return self.finish(context, first_rows(rows, limit))
        return self.defer(
            trigger=PipelineQueryTrigger(
                pipeline_name=self.pipeline_name,
                query=query,
                limit=limit,
                pipeline_conn_id=self.pipeline_conn_id,
                poll_interval_s=self.poke_interval,
                first_delay_s=first_delay_s(),
                deadline=time.time() + self.timeout,
                outage_budget_s=outage_budget_s(),
            ),
            method_name="execute_complete",
            timeout=backstop(self.timeout),
        )
