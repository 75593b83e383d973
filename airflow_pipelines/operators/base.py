"""The base classes of all operators: the connection, the translation of errors, and waiting in place or in the triggerer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from airflow_pipelines.common.pins import SetupError
from airflow_pipelines.hooks.conditions import Condition, is_transient
from airflow_pipelines.hooks.configuration import is_deferrable
from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID, PipelineHook
from airflow_pipelines.links.pipeline import PipelineLink
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.dag_test import end_task_of_dag_test
from airflow_pipelines.operators.outlets import tell_outlets
from airflow_pipelines.operators.template_files import TemplateFilesByUrl
from airflow_pipelines.operators.waiting import reached_or_deferred
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineFailedError, ProgramCompilationError, UntrustedServiceError
from airflow_pipelines.triggers.pipeline import result_of

if TYPE_CHECKING:
    from airflow.sdk import Context


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Translate errors so that Airflow retries only those that a retry may cure.

    A program that does not compile, a pipeline that failed, an invalid argument, a connection that does not exist and a request
    that the service refuses fail the task at once. If the service is away, busy or slow, the error stays as it is, so that
    ``retries`` apply.

    :raises AirflowFailException: for errors of the first kind
    """
    try:
        yield
    except (
        ProgramCompilationError,
        PipelineFailedError,
        UntrustedServiceError,
        SetupError,
        AirflowNotFoundException,
        ValueError,
    ) as error:
        raise AirflowFailException(str(error)) from error
    except PipelineAPIError as error:
        if is_transient(error):
            raise
        raise AirflowFailException(str(error)) from error


class PipelineOperator(TemplateFilesByUrl, BaseOperator):
    """The base class of operators that perform one action on one pipeline.

    Killing or clearing the task leaves the pipeline as it is.

    The assets in ``outlets`` get the figures of the XCom as ``extra``.

    :param pipeline_name: the pipeline
    :param pipeline_conn_id: the Airflow connection
    """

    template_fields: Sequence[str] = ("pipeline_name", "pipeline_conn_id")
    operator_extra_links: Collection[BaseOperatorLink] = (PipelineLink(),)
    ui_color = "#cfe3f5"

    def __init__(self, *, pipeline_name: str, pipeline_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_name = pipeline_name
        self.pipeline_conn_id = pipeline_conn_id

    @cached_property
    def hook(self) -> PipelineHook:
        """The hook for the connection."""
        return PipelineHook(self.pipeline_conn_id)

    def check_arguments(self) -> None:
        """Validate the rendered arguments, and replace texts by the values that they stand for. Overriding methods call this one.

        :raises AirflowFailException: if an argument is invalid; the message has its name
        """
        self.pipeline_name = arguments.text("pipeline_name", self.pipeline_name)
        self.pipeline_conn_id = arguments.text("pipeline_conn_id", self.pipeline_conn_id)

    def act(self, context: Context) -> Any:
        """Perform the operator's action, after the arguments were checked.

        :param context: the task's context
        :returns: the XCom
        """
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        """Check the arguments and perform the action, with errors translated for Airflow."""
        with airflow_errors():
            self.check_arguments()
            result = self.act(context)
        tell_outlets(self, context, self.pipeline_name, result)
        return result

    def on_kill(self) -> None:
        """Log that the pipeline is left as it is, because the task was cleared or marked.

        A retry finds it and continues from there.
        """
        self.log.info("The task ends, pipeline %s is left as it is", self.pipeline_name)
        end_task_of_dag_test()


class WaitingPipelineOperator(PipelineOperator):
    """The base class of operators that perform one action on a pipeline and wait until it is done.

    :param deferrable: True to wait in the triggerer; default ``[operators] default_deferrable``
    :param timeout: maximum seconds to wait
    :param poke_interval: seconds between polls
    """

    def __init__(
        self, *, deferrable: bool | None = None, timeout: float = 600.0, poke_interval: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = is_deferrable(deferrable)
        self.timeout = timeout
        self.poke_interval = poke_interval

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> Any:
        """Return the XCom after the wait.

        :param context: the task's context
        :param outcome: the result of the condition
        :param carried: the values that ``act`` passed to :meth:`wait_and_finish`; JSON values, because they travel through a
            deferral
        """
        raise NotImplementedError

    def wait_and_finish(self, context: Context, condition: Condition, **carried: Any) -> Any:
        """Wait for a condition in the worker or in the triggerer, then :meth:`finish`.

        :param context: the task's context
        :param condition: the condition to wait for
        :param carried: the values that :meth:`finish` needs besides; JSON values, because they travel through a deferral
        :returns: the XCom
        :raises TaskDeferred: if the task is deferrable and has to wait
        :raises PipelineFailedError: if the condition cannot be reached any more
        :raises PipelineTimeoutError: if it was not reached in time
        """
        outcome = reached_or_deferred(self, condition, method_name="execute_complete", kwargs={"carried": carried})
        return self.finish(context, outcome, **carried)

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None, carried: dict[str, Any] | None = None) -> Any:
        """Continue after the triggerer's wait.

        :param context: the task's context
        :param event: the event of the trigger
        :param carried: the values that ``act`` passed to :meth:`wait_and_finish`
        :returns: the XCom
        """
        with airflow_errors():
            self.check_arguments()
            try:
                result = self.finish(context, result_of(event), **(carried or {}))
            except KeyError as error:
                if carried is not None:
                    raise
                raise AirflowFailException(
                    f"Airflow did not bring back what {type(self).__name__} knew when it deferred ({error}). dag.test() does so: "
                    "let tasks wait in place there, with deferrable=False"
                ) from error
        tell_outlets(self, context, self.pipeline_name, result)
        return result
