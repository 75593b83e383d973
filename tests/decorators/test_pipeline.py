from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.decorators.pipeline import PipelineDecoratedOperator, pipeline_task
from tests.fixtures.airflow import ScriptedService

SQL = "create table {{ not_a_template }} (a int);"


def operator_of(function: Any, *arguments: Any, **options: Any) -> PipelineDecoratedOperator:
    """The operator that a decorated function makes in a DAG."""
    with DAG("decorated", schedule=None):
        made = pipeline_task(**{"pipeline_name": "p", "task_id": "deploy", **options})(function)(*arguments)
    operator = made.operator
    assert isinstance(operator, PipelineDecoratedOperator)
    return operator


def creates(scripted: ScriptedService) -> None:
    """A service that takes new pipelines."""
    scripted.answers["POST", ""] = lambda: scripted.pipeline()


def created(scripted: ScriptedService) -> dict[str, Any]:
    body: dict[str, Any] = next(body for method, tail, _, body in scripted.calls if (method, tail) == ("POST", ""))
    return body


def test_airflow_knows_the_decorator() -> None:
    with DAG("decorated", schedule=None) as dag:

        @task.pipeline(pipeline_name="orders", if_exists="keep")
        def orders() -> str:
            return SQL

        orders()
    made: Any = dag.get_task("orders")
    assert (made.pipeline_name, made.if_exists, made.operator_name) == ("orders", "keep", "@task.pipeline")


def test_sql_that_is_returned_is_deployed_as_it_is(scripted: ScriptedService) -> None:
    creates(scripted)

    def program(columns: str, ds: str | None = None) -> str:
        return f"{SQL} -- {columns} {ds}"

    context: Any = {"ds": "2026-01-02"}
    result = operator_of(program, "a, b").execute(context)
    assert result["action"] == "created"
    assert created(scripted)["program_code"] == f"{SQL} -- a, b 2026-01-02"


def test_a_stream_program_may_be_returned_as_texts_or_as_a_path(scripted: ScriptedService, tmp_path: Path) -> None:
    creates(scripted)
    texts = {"main.py": "print('{{ braces }}')\n"}
    operator_of(lambda: texts).execute({})
    assert created(scripted)["stream_files"] == texts
    assert created(scripted)["program_code"] == ""
    (tmp_path / "main.py").write_text(texts["main.py"])
    scripted.pipelines.clear()
    scripted.calls.clear()
    operator_of(lambda: tmp_path / "main.py").execute({})
    assert created(scripted)["stream_files"] == texts


@pytest.mark.parametrize("program", [None, "", " ", "None", {}])
def test_nothing_is_no_program(scripted: ScriptedService, program: Any) -> None:
    with pytest.raises(AirflowFailException, match=r"what <lambda> returned is empty"):
        operator_of(lambda: program).execute({})
    assert scripted.calls == []


def test_other_values_are_refused(scripted: ScriptedService) -> None:
    with pytest.raises(AirflowFailException, match=r"what <lambda> returned is of type list, which is no program"):
        operator_of(lambda: [SQL]).execute({})
    with pytest.raises(TypeError, match=r"@task\.pipeline takes no sql"):
        operator_of(lambda: SQL, sql=SQL)
