"""The decorator ``@task.pipeline`` for a function that returns a program, which its task deploys."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import DecoratedOperator, context_merge, determine_kwargs, task_decorator_factory
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import airflow_errors
from airflow_pipelines.operators.change import DeployPipelineOperator
from airflow_pipelines.operators.stream_program import kept_from_templates

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.decorator import TaskDecorator

_LATER = "-- what the function returns"
"""The placeholder for the program until the function was called."""


class PipelineDecoratedOperator(DecoratedOperator, DeployPipelineOperator):
    """The operator that calls a function and deploys the program that it returns.

    It takes the other arguments of DeployPipelineOperator.

    The function returns SQL as a text; or a stream program, as a mapping from the paths of its files to their texts, or as the path
    of its file or folder (a ``pathlib.Path``). It is called on a worker when the task runs, and its result is no template.

    :param python_callable: the function
    :param op_args: its arguments
    :param op_kwargs: its arguments by name
    """

    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *DeployPipelineOperator.template_fields)
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        **DeployPipelineOperator.template_fields_renderers,
    }
    custom_operator_name = "@task.pipeline"
    # Makes the page of rendered templates show the program.
    overwrite_rtif_after_execution = True

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        for name in ("sql", "stream_program"):
            if name in kwargs:
                raise TypeError(f"@task.pipeline takes no {name}: the function returns the program")
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, sql=_LATER, **kwargs)

    def execute(self, context: Context) -> Any:
        """Call the function, then deploy."""
        context_merge(context, self.op_kwargs)
        program = self.python_callable(*self.op_args, **determine_kwargs(self.python_callable, self.op_args, context))
        with airflow_errors():
            self._take(program)
        return DeployPipelineOperator.execute(self, context)

    def _take(self, program: Any) -> None:
        """Set the result of the function as the program to deploy."""
        what = f"what {self.python_callable.__name__} returned"
        if arguments.is_lost(program) or program == {}:
            raise AirflowFailException(f"{what} is empty ({program!r}): it has to be a program")
        if isinstance(program, str):
            self.sql = program
        elif isinstance(program, (Mapping, os.PathLike)):
            self.sql = None
            self.stream_program = kept_from_templates(program)
            self.given = (self.given - {"sql"}) | {"stream_program"}
        else:
            raise AirflowFailException(
                f"{what} is of type {type(program).__name__}, which is no program: return SQL as a text, or a stream program as "
                "a mapping from the paths of its files to their texts or as a pathlib.Path"
            )


def pipeline_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> TaskDecorator:
    """Make a task that deploys the program that the function returns: ``@task.pipeline``.

    :param python_callable: the function
    :param kwargs: the arguments of PipelineDecoratedOperator, ``pipeline_name`` first of all
    """
    return task_decorator_factory(python_callable=python_callable, decorated_operator_class=PipelineDecoratedOperator, **kwargs)
