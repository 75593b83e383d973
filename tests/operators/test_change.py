from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import croniter  # noqa: F401  Airflow imports it for the first DAG, and it starts a program then
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.operators.change import DeployPipelineOperator, ModifyPipelineOperator
from airflow_pipelines.sdk.errors import PipelinesError
from tests.fixtures.airflow import DESCRIPTOR, ScriptedService

OLD = DESCRIPTOR["program_code"]
NEW = "create table t (a int, b int);"
COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p"}


def patches(scripted: ScriptedService) -> list[Any]:
    return [body for method, _, _, body in scripted.calls if method == "PATCH"]


def accepts(scripted: ScriptedService, **fields: Any) -> None:
    """The service takes modifications and compiles at once."""
    scripted.answers["PATCH", ""] = lambda: scripted.pipeline(version=2, program_version=2, **fields)


def test_deploy_creates_what_is_not_there(scripted: ScriptedService) -> None:
    scripted.answers["POST", ""] = lambda: (201, scripted.pipeline())
    result = DeployPipelineOperator(**COMMON, sql=OLD, description="d", runtime_config={"workers": 2}).execute({})
    assert result == {
        "pipeline": "p",
        "id": DESCRIPTOR["id"],
        "version": 1,
        "program_version": 1,
        "changed": [],
        "action": "created",
    }
    ((_, _, _, body),) = [call for call in scripted.calls if call[0] == "POST"]
    assert (body["name"], body["program_code"], body["description"]) == ("p", OLD, "d")
    assert body["runtime_config"]["workers"] == 2


def test_functions_in_python_go_with_the_program(scripted: ScriptedService) -> None:
    module = "def double(x: int) -> int:\n    return 2 * x\n"
    scripted.answers["POST", ""] = lambda: (201, scripted.pipeline())
    DeployPipelineOperator(**COMMON, sql=OLD, udf_python=module).execute({})
    ((_, _, _, body),) = [call for call in scripted.calls if call[0] == "POST"]
    assert body["udf_python"] == module
    scripted.answers["GET", "udf_python"] = lambda: {"udf_python": module}
    assert DeployPipelineOperator(**COMMON, sql=OLD, udf_python=module).execute({})["action"] == "unchanged"
    changed = module.replace("2", "3")
    accepts(scripted)
    assert ModifyPipelineOperator(**COMMON, udf_python=changed).execute({})["changed"] == ["udf_python"]
    assert patches(scripted) == [{"udf_python": changed}]


def test_deploying_the_same_again_changes_nothing_even_while_it_runs(scripted: ScriptedService) -> None:
    scripted.up("Running")
    config = {"storage": {"backend": {"name": "default"}}}
    result = DeployPipelineOperator(**COMMON, sql=OLD, runtime_config=config).execute({})
    assert result["action"] == "unchanged"
    assert patches(scripted) == []


def test_deploying_something_else_modifies_and_keeps_the_state(scripted: ScriptedService) -> None:
    scripted.pipeline(storage_status="InUse")
    accepts(scripted, program_code=NEW)
    result = DeployPipelineOperator(**COMMON, sql=NEW).execute({})
    assert (result["action"], result["changed"], result["program_version"]) == ("modified", ["program_code"], 2)
    assert patches(scripted) == [{"program_code": NEW}]
    assert scripted.asked("POST") == scripted.asked("PUT") == scripted.asked("DELETE") == []


def test_keep_leaves_it_as_it_is(scripted: ScriptedService) -> None:
    scripted.up("Running")
    assert DeployPipelineOperator(**COMMON, sql=NEW, if_exists="keep").execute({})["action"] == "kept"
    assert {call[0] for call in scripted.calls} == {"GET"}


def test_replace_starts_afresh(scripted: ScriptedService) -> None:
    scripted.up("Running", storage_status="InUse")
    scripted.answers["POST", "stop"] = lambda: scripted.pipeline(storage_status="InUse") and "ok"
    scripted.answers["POST", "clear"] = lambda: scripted.pipeline() and "ok"
    scripted.answers["PUT", ""] = lambda: scripted.pipeline(program_code=NEW)
    assert DeployPipelineOperator(**COMMON, sql=NEW, if_exists="replace").execute({})["action"] == "replaced"
    assert scripted.asked("POST")[:3] == ["validate", "stop", "clear"]


def test_a_running_pipeline_that_differs_is_not_touched(scripted: ScriptedService) -> None:
    scripted.up("Running")
    with pytest.raises(AirflowFailException, match=r"is Running and differs in program_code.*StopPipelineOperator"):
        DeployPipelineOperator(**COMMON, sql=NEW).execute({})
    assert patches(scripted) == []


def test_modify_sends_only_what_differs(scripted: ScriptedService) -> None:
    scripted.pipeline()
    accepts(scripted)
    sync = {"bucket": "/store"}
    config = {"workers": 8, "storage": {"backend": {"config": {"sync": sync}}}}
    result = ModifyPipelineOperator(**COMMON, sql=OLD, description="new", runtime_config=config).execute({})
    assert result["changed"] == ["description", "runtime_config"]
    merged = {"workers": 8, "storage": {"backend": {"name": "default", "config": {"sync": sync}}}}
    assert patches(scripted) == [{"description": "new", "runtime_config": merged}]


def test_secrets_are_compared_by_the_service_alone(scripted: ScriptedService) -> None:
    def program(password: str) -> str:
        return f"""create table t (a int) with ('connectors' = '[{{"config": {{"password": "{password}"}}}}]');"""

    stored = {"env": {"A": "${secret:pipelines/p/1}", "B": "${secret:mine}"}}
    kept = {"program_code": program("${secret:pipelines/p/2}"), "runtime_config": stored}
    scripted.up("Running", **kept)
    given: dict[str, Any] = {"sql": program("hush"), "runtime_config": {"env": {"A": "hush"}}}
    scripted.answers["PATCH", ""] = lambda: scripted.up("Running", **kept)
    assert DeployPipelineOperator(**COMMON, **given).execute({})["action"] == "unchanged"
    assert patches(scripted) == [{"program_code": given["sql"], "runtime_config": {"env": {"A": "hush", "B": "${secret:mine}"}}}]
    # The same references are no question.
    assert DeployPipelineOperator(**COMMON, sql=kept["program_code"], runtime_config=stored).execute({})["action"] == "unchanged"
    assert len(patches(scripted)) == 1
    accepts(scripted, **kept)
    assert DeployPipelineOperator(**COMMON, **given).execute({})["changed"] == ["program_code", "runtime_config"]
    scripted.answers["PATCH", ""] = (400, {"error_code": "UpdateRestrictedToStopped", "message": "stop it first", "details": {}})
    with pytest.raises(AirflowFailException, match="stop it first"):
        DeployPipelineOperator(**COMMON, **given).execute({})
    scripted.up("Running", **kept)
    for other in ({"sql": given["sql"] + " "}, {"sql": OLD}, {"sql": given["sql"], "runtime_config": {"env": {"B": "hush"}}}):
        with pytest.raises(AirflowFailException, match="StopPipelineOperator"):
            DeployPipelineOperator(**COMMON, **other).execute({})


def test_connections_are_handed_over_as_secrets(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"region": "eu", "nested": {"a": 1}, "bad name": "x", "retries": 3}
    fields = {"conn_type": "aws", "login": "AKIA", "password": "hush-hush", "port": 9000, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(fields))
    scripted.pipeline()
    for part in ("login", "password", "port", "region", "retries"):
        scripted.answers["PUT", f"store/{part}"] = lambda: (200, {})
    assert DeployPipelineOperator(**COMMON, sql=OLD, secret_conn_ids=["store"]).execute({})["action"] == "unchanged"
    told = {tail: body["value"] for method, tail, _, body in scripted.calls if method == "PUT"}
    expected = {"login": "AKIA", "password": "hush-hush", "port": "9000", "region": "eu", "retries": "3"}
    assert told == {f"store/{part}": value for part, value in expected.items()}


MESSAGE = {"start_line_number": 1, "start_column": 7, "error_type": "Error", "message": "Object 'x' not found", "snippet": "s"}
REFUSED = {"SqlError": {"info": {"exit_code": 1, "messages": [MESSAGE]}}}


def test_a_program_that_does_not_compile_leaves_no_pipeline_behind(scripted: ScriptedService) -> None:
    scripted.validation = REFUSED
    with pytest.raises(AirflowFailException, match=r"(?s)does not compile, so nothing was done:\n1:7: Error: Object 'x' not found"):
        DeployPipelineOperator(**COMMON, sql=NEW, stream_program={"a.py": "x"}, udf_python="y").execute({})
    assert {call[0] for call in scripted.calls} == {"GET"}
    (program,) = scripted.validated
    expected = {"program_code": NEW, "udf_python": "y", "stream_files": {"a.py": "x"}, "stream_arguments": []}
    assert {name: program[name] for name in expected} == expected


def test_that_a_program_does_not_compile_is_said_before_anyone_stops_the_pipeline(scripted: ScriptedService) -> None:
    scripted.up("Running", stream_files={"a.py": "x"}, stream_arguments=["z"])
    scripted.answers["GET", "udf_python"] = {"udf_python": "def f(): ..."}
    with pytest.raises(AirflowFailException, match="StopPipelineOperator"):
        ModifyPipelineOperator(**COMMON, sql=NEW).execute({})
    (program,) = scripted.validated
    kept = {"udf_python": "def f(): ...", "stream_files": {"a.py": "x"}, "stream_arguments": ["z"]}
    assert {name: program[name] for name in ("program_code", *kept)} == {"program_code": NEW, **kept}, "what is not given is kept"
    scripted.validation = REFUSED
    with pytest.raises(AirflowFailException, match="1:7: Error: Object 'x' not found"):
        ModifyPipelineOperator(**COMMON, sql=NEW).execute({})


def test_a_compiler_that_fails_is_worth_a_retry(scripted: ScriptedService) -> None:
    scripted.validation = {"SystemError": {"error": "The compiler failed on this program (KeyError)."}}
    with pytest.raises(PipelinesError, match="could not be validated: The compiler failed"):
        DeployPipelineOperator(**COMMON, sql=NEW).execute({})


COMMENTED = f"-- what it is for\n{OLD}  /* and why */\n"


def test_a_change_of_comments_needs_no_stop(scripted: ScriptedService) -> None:
    scripted.up("Running")
    assert DeployPipelineOperator(**COMMON, sql=COMMENTED).execute({})["action"] == "unchanged"
    assert (patches(scripted), scripted.validated) == ([], [])
    scripted.answers["PATCH", ""] = lambda: scripted.up("Running", description="new")
    assert ModifyPipelineOperator(**COMMON, sql=COMMENTED, description="new").execute({})["changed"] == ["description"]
    assert patches(scripted) == [{"description": "new"}]


def test_changed_comments_are_kept_once_it_is_stopped(scripted: ScriptedService) -> None:
    scripted.pipeline()
    accepts(scripted)
    assert ModifyPipelineOperator(**COMMON, sql=COMMENTED).execute({})["changed"] == ["program_code"]
    assert patches(scripted) == [{"program_code": COMMENTED}]


def test_a_description_may_change_while_it_runs(scripted: ScriptedService) -> None:
    scripted.up("Running")
    scripted.answers["PATCH", ""] = lambda: scripted.up("Running", description="new")
    assert ModifyPipelineOperator(**COMMON, description="new").execute({})["changed"] == ["description"]


def test_a_program_that_does_not_compile_fails_the_task_with_its_place(scripted: ScriptedService) -> None:
    message = {"start_line_number": 1, "start_column": 7, "error_type": "Error", "message": "Object 'x' not found", "snippet": "s"}
    program_error = {"sql_compilation": {"exit_code": 1, "messages": [message]}}
    scripted.pipeline()
    accepts(scripted, program_status="SqlError", program_error=program_error)
    with pytest.raises(AirflowFailException, match="1:7: Error: Object 'x' not found"):
        ModifyPipelineOperator(**COMMON, sql=NEW).execute({})


def test_modifying_what_is_not_there_says_what_to_do(scripted: ScriptedService) -> None:
    with pytest.raises(AirflowFailException, match="no pipeline 'p' to modify: deploy it"):
        ModifyPipelineOperator(**COMMON, sql=NEW).execute({})


def test_refusals_of_the_service_are_passed_on(scripted: ScriptedService) -> None:
    scripted.pipeline(storage_status="InUse")
    refusal = {"error_code": "EditRestrictedToClearedStorage", "message": "clear the storage first", "details": {}}
    scripted.answers["PATCH", ""] = (400, refusal)
    with pytest.raises(AirflowFailException, match="clear the storage first"):
        ModifyPipelineOperator(**COMMON, runtime_config={"workers": 3}).execute({})


def test_a_program_may_be_a_file_with_templates(tmp_path: Path) -> None:
    from airflow.sdk import DAG

    (tmp_path / "program.sql").write_text("-- {{ params.what }}\ncreate table t (a int);")
    with DAG("d", template_searchpath=str(tmp_path)) as dag:
        operator = DeployPipelineOperator(**COMMON, sql="program.sql")
    operator.render_template_fields({"params": {"what": "rendered"}}, dag.get_template_env())
    assert operator.sql == "-- rendered\ncreate table t (a int);"


def test_it_refuses_words_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="known: modify, replace, keep"):
        DeployPipelineOperator(**COMMON, sql=OLD, if_exists="fail")


@pytest.fixture
def dag(tmp_path: Path) -> DAG:
    """A DAG in a folder with a stream program and other DAGs."""
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "fraud_v1.py").write_text("import rules\nprint(f'{{not a template}}')\n")
    (tmp_path / "streams" / "rules.py").write_text("LIMIT = 1\n")
    (tmp_path / "streams" / "another_dag.py").write_text("")
    dag = DAG("d", schedule=None)
    dag.fileloc = str(tmp_path / "dag.py")
    return dag


def rendered(operator: Any, **context: Any) -> dict[str, Any]:
    operator.render_template_fields(context)
    result: dict[str, Any] = operator.execute(context)
    return result


def test_a_stream_program_is_read_from_the_folder_of_the_dag_when_the_task_runs(scripted: ScriptedService, dag: DAG) -> None:
    scripted.answers["POST", ""] = lambda: (201, scripted.pipeline())
    operator = DeployPipelineOperator(
        **COMMON, dag=dag, stream_program="streams/fraud_{{ version }}.py", stream_arguments=["--day", "{{ ds }}"]
    )
    assert rendered(operator, version="v1", ds="2026-01-02")["action"] == "created"
    ((_, _, _, body),) = [call for call in scripted.calls if call[0] == "POST"]
    assert list(body["stream_files"]) == ["fraud_v1.py", "rules.py"]
    assert "{{not a template}}" in body["stream_files"]["fraud_v1.py"], "braces of Python are left alone"
    assert (body["program_code"], body["stream_arguments"]) == ("", ["--day", "2026-01-02"])


def test_a_stream_program_may_lie_where_templates_are_searched(scripted: ScriptedService, dag: DAG, tmp_path: Path) -> None:
    scripted.answers["POST", ""] = lambda: (201, scripted.pipeline())
    dag.template_searchpath = [str(tmp_path / "nowhere"), str(tmp_path / "streams")]
    rendered(DeployPipelineOperator(**COMMON, dag=dag, stream_program="fraud_v1.py", stream_files=["another_dag.py"]))
    ((_, _, _, body),) = [call for call in scripted.calls if call[0] == "POST"]
    assert list(body["stream_files"]) == ["fraud_v1.py", "rules.py", "another_dag.py"]


def test_texts_are_no_templates(scripted: ScriptedService, dag: DAG) -> None:
    scripted.answers["POST", ""] = lambda: (201, scripted.pipeline())
    operator = DeployPipelineOperator(**COMMON, dag=dag, stream_program={"a.py": "f'{{x}}{% y %}'", "b.py": ""})
    rendered(copy.deepcopy(operator))
    ((_, _, _, body),) = [call for call in scripted.calls if call[0] == "POST"]
    assert body["stream_files"] == {"a.py": "f'{{x}}{% y %}'", "b.py": ""}
    assert repr(operator.stream_program) == "<stream program of a.py, b.py>"


def test_only_a_stream_program_that_differs_is_sent(scripted: ScriptedService) -> None:
    files = {"fraud.py": "import rules", "rules.py": ""}
    scripted.up("Running", stream_files=files, stream_arguments=["x"])
    same = DeployPipelineOperator(**COMMON, stream_program=files, stream_arguments=["x"])
    assert same.execute({})["action"] == "unchanged"
    assert patches(scripted) == []
    with pytest.raises(AirflowFailException, match="is Running and differs in stream_files: it can be modified when it is stopped"):
        ModifyPipelineOperator(**COMMON, stream_program={"fraud.py": "import rules"}).execute({})
    scripted.pipeline(stream_files=files, stream_arguments=["x"])
    accepts(scripted)
    changed = ModifyPipelineOperator(**COMMON, stream_program=dict(reversed(files.items())), stream_arguments=[]).execute({})
    assert changed["changed"] == ["stream_arguments", "stream_files"]
    assert patches(scripted) == [{"stream_files": files, "stream_arguments": []}]
    assert list(patches(scripted)[0]["stream_files"]) == ["rules.py", "fraud.py"]


def test_a_deployment_needs_a_program_that_is_there(scripted: ScriptedService, dag: DAG) -> None:
    with pytest.raises(ValueError, match="give sql, stream_program, or both"):
        DeployPipelineOperator(**COMMON)
    with pytest.raises(AirflowFailException, match=r"there is no stream program .*/missing\.py"):
        DeployPipelineOperator(**COMMON, dag=dag, stream_program="missing.py").execute({})


STORE_EXTRA = {"endpoint_url": "https://store", "region_name": "eu", "bucket": "backups"}


def store_connection(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    known = {"conn_type": "aws", "login": "key", "password": "hush-hush", "extra": STORE_EXTRA}
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(known | fields))


def sync(**fields: Any) -> dict[str, Any]:
    return {"storage": {"backend": {"name": "file", "config": {"sync": fields}}}}


REFERENCES = {"access_key": "${conn:store.login}", "secret_key": "${conn:store.password}"}


def test_an_object_store_is_named_by_its_connection_and_no_key_is_sent_in_the_configuration(
    scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_connection(monkeypatch)
    told: dict[str, str] = {}
    monkeypatch.setattr(PipelineHook, "set_secret", lambda _hook, name, value: told.__setitem__(name, value))
    scripted.answers["POST", ""] = lambda: (201, scripted.pipeline())
    given = {"workers": 2, **sync(bucket="mine/orders")}
    DeployPipelineOperator(**COMMON, sql=OLD, runtime_config=given, object_store_conn_id="store").execute({})
    ((_, _, _, body),) = [call for call in scripted.calls if call[0] == "POST"]
    expected = sync(bucket="mine/orders", endpoint="https://store", region="eu", **REFERENCES)
    assert body["runtime_config"]["storage"] == expected["storage"]
    assert body["runtime_config"]["workers"] == 2
    assert "hush" not in json.dumps(body)
    assert (told["airflow/store/login"], told["airflow/store/password"]) == ("key", "hush-hush")
    # The same again is the same.
    scripted.up("Running", runtime_config=given | expected)
    again = DeployPipelineOperator(**COMMON, sql=OLD, runtime_config=given, object_store_conn_id="store").execute({})
    assert again["action"] == "unchanged"


@pytest.mark.parametrize(
    ("fields", "config", "message"),
    [
        ({"conn_type": "postgres"}, sync(bucket="b"), "is a connection of type 'postgres'; known: aws"),
        ({}, sync(bucket="b", access_key="k"), "runtime_config has access_key as well"),
        ({"extra": {}}, None, "nothing says which bucket"),
        ({"extra": {"role_arn": "r"}}, sync(bucket="b"), "has role_arn"),
    ],
)
def test_what_an_object_store_cannot_be_is_said(
    scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch, fields: Any, config: Any, message: str
) -> None:
    store_connection(monkeypatch, **fields)
    with pytest.raises(AirflowFailException, match=message):
        DeployPipelineOperator(**COMMON, sql=OLD, runtime_config=config, object_store_conn_id="store").execute({})
    assert scripted.calls == []


def test_an_object_store_without_a_key_is_used_with_the_rights_of_the_machine(
    scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_connection(monkeypatch, login=None, password=None)
    monkeypatch.setattr(PipelineHook, "set_secret", lambda _hook, _name, _value: None)
    scripted.pipeline()
    accepts(scripted)
    ModifyPipelineOperator(**COMMON, object_store_conn_id="store").execute({})
    (patch,) = patches(scripted)
    sent = patch["runtime_config"]["storage"]["backend"]["config"]["sync"]
    assert sent == {"endpoint": "https://store", "region": "eu", "bucket": "backups"}
