"""The operator that fails if a view has rows that violate a condition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.query import QueryingOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class OffendingRowsError(AirflowException):
    """The error for a view with rows that it should not have."""


class CheckPipelineOperator(QueryingOperator):
    """The operator that fails if a running or paused pipeline has offending rows.

    It shows them in the error and in the XCom ``offending_rows``.

    Either every row of a ``view`` has to satisfy a ``condition``, where a condition that is NULL is not satisfied; or a ``query``
    has to return no row. All data is read as of one step. A retry checks again, because the next step may correct the rows.

    XCom: ``{"pipeline", "checked", "offending_rows"}``: the check, and an empty list.

    :param view: the materialized view, or table
    :param condition: a SQL condition over its columns
    :param query: a SELECT of offending rows, instead of both; or the path of a ``.sql`` file, which may be a URL that fsspec
        supports
    :param limit: the maximum number of offending rows to show
    """

    template_fields: Sequence[str] = (*QueryingOperator.template_fields, "view", "condition", "query", "limit")
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers = {"query": "sql", "condition": "sql"}

    def __init__(
        self,
        *,
        view: str | None = None,
        condition: str | None = None,
        query: str | None = None,
        limit: int | str = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.given = arguments.collect_given(view=view, condition=condition, query=query)
        if self.given not in ({"query"}, {"view", "condition"}):
            raise ValueError(f"give view and condition, or query; given: {', '.join(sorted(self.given)) or 'nothing'}")
        self.view = view
        self.condition = condition
        self.query = query
        self.limit = limit

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        for name in self.given:
            setattr(self, name, arguments.text(name, getattr(self, name)))
        self.limit = arguments.whole_number("limit", self.limit, least=1)

    def act(self, context: Context) -> Any:
        """Query the offending rows."""
        return self.ask(context, self._text(), int(self.limit))

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Fail if there are offending rows."""
        rows = outcome["rows"]
        what = f"{self.view}: {self.condition}" if self.query is None else self.query
        if not rows:
            self.log.info("Pipeline %s holds: %s", self.pipeline_name, what)
            return {"pipeline": self.pipeline_name, "checked": what, "offending_rows": []}
        if "ti" in context:
            context["ti"].xcom_push(key="offending_rows", value=rows)
        shown = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        count = (
            f"more than {len(rows)} rows, such as" if outcome["truncated"] else f"{len(rows)} row{'s' if len(rows) != 1 else ''}"
        )
        raise OffendingRowsError(f"Pipeline {self.pipeline_name!r} does not hold: {what}\nIt has {count}:\n{shown}")

    def _text(self) -> str:
        if self.query is not None:
            return self.query
        return f"select * from {self.view} where ({self.condition}) is not true"
