from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.operators.lifecycle import StartPipelineOperator
from airflow_pipelines.operators.standby import ActivatePipelineOperator
from tests.fixtures.airflow import ScriptedService
from tests.operators.test_approval import CHANGE, PROGRAMS, waits_with

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "timeout": 2, "poke_interval": 0.01}


def test_a_pipeline_in_standby_takes_over(scripted: ScriptedService) -> None:
    scripted.up("Standby")
    scripted.answers["POST", "activate"] = lambda: scripted.up("Paused") and (202, "activating")
    result = ActivatePipelineOperator(**COMMON, initial="paused").execute({})
    assert (result["status"], result["diff"]) == ("PAUSED", None)
    assert scripted.calls[1][:3] == ("POST", "activate", {"initial": "Paused"})


def test_a_retry_activates_nothing_twice(scripted: ScriptedService) -> None:
    scripted.up("Running")
    assert ActivatePipelineOperator(**COMMON).execute({})["status"] == "RUNNING"
    assert scripted.asked("POST") == []


def test_a_change_that_waits_is_told(scripted: ScriptedService) -> None:
    waits_with(scripted, CHANGE)
    result = ActivatePipelineOperator(**COMMON).execute({})
    assert (result["status"], result["diff"], result["programs"]) == ("AWAITINGAPPROVAL", CHANGE, PROGRAMS)


def test_a_pipeline_that_stands_by_for_nobody_is_refused(scripted: ScriptedService) -> None:
    scripted.pipeline()
    with pytest.raises(AirflowFailException, match=r"'p' is STOPPED, so there is nothing to activate: start it with"):
        ActivatePipelineOperator(**COMMON).execute({})
    with pytest.raises(AirflowFailException, match="'gone' is NOT_FOUND"):
        ActivatePipelineOperator(**COMMON | {"pipeline_name": "gone"}).execute({})
    assert scripted.asked("POST") == []


@pytest.mark.parametrize("status", ["Standby", "Running"])
def test_starting_in_standby_ends_there_or_where_an_earlier_activation_left_it(scripted: ScriptedService, status: str) -> None:
    scripted.pipeline()
    scripted.answers["POST", "start"] = lambda: scripted.up(status) and (202, "starting")
    assert StartPipelineOperator(**COMMON, initial="standby").execute({})["status"] == status.upper()
    assert scripted.calls[1][2]["initial"] == "standby"
