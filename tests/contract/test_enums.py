"""Enums: members, wire forms, and errors that belong to one answer."""

from __future__ import annotations

import pickle
from enum import Enum

import pytest

from airflow_pipelines.contract import enums
from airflow_pipelines.contract.enums import (
    BootstrapPolicy,
    CheckpointStatus,
    CompilationProfile,
    FaultToleranceModel,
    PipelineStatus,
    ProgramStatus,
    StorageStatus,
)

MEMBERS = {
    "BootstrapPolicy": "ALLOW AWAIT_APPROVAL REJECT",
    "BuildMode": "CREATE GET GET_OR_CREATE",
    "CheckpointStatus": "Failure InProgress Success Unknown",
    "CompilationProfile": "DEV OPTIMIZED OPTIMIZED_SYMBOLS SERVER_DEFAULT UNOPTIMIZED",
    "CompletionTokenStatus": "COMPLETE IN_PROGRESS",
    "DeploymentDesiredStatus": "PAUSED RUNNING STANDBY STOPPED SUSPENDED UNAVAILABLE",
    "DeploymentResourcesDesiredStatus": "PROVISIONED STOPPED",
    "DeploymentResourcesStatus": "PROVISIONED PROVISIONING STOPPED STOPPING",
    "DeploymentRuntimeDesiredStatus": "PAUSED RUNNING STANDBY SUSPENDED UNAVAILABLE",
    "DeploymentRuntimeStatus": (
        "AWAITINGAPPROVAL BOOTSTRAPPING CONCURRENTBOOTSTRAPPING INITIALIZING PAUSED REPLAYING RUNNING STANDBY SUSPENDED "
        "SYNCHRONIZING UNAVAILABLE"
    ),
    "FaultToleranceModel": "AtLeastOnce ExactlyOnce",
    "PipelineFieldSelector": "ALL STATUS",
    "PipelineStatus": (
        "AWAITINGAPPROVAL BOOTSTRAPPING CONCURRENTBOOTSTRAPPING INITIALIZING NOT_FOUND PAUSED PROVISIONING REPLAYING RUNNING "
        "STANDBY STOPPED STOPPING SUSPENDED SYNCHRONIZING UNAVAILABLE"
    ),
    "ProgramStatus": "CompilingRust CompilingSql Pending RustError SqlCompiled SqlError Success SystemError",
    "StorageStatus": "CLEARED CLEARING INUSE",
    "TransactionStatus": "CommitInProgress NoTransaction TransactionInProgress",
}


@pytest.mark.parametrize("name", MEMBERS)
def test_the_members_are_the_contracts(name: str) -> None:
    enum: type[Enum] = getattr(enums, name)
    assert sorted(member.name for member in enum) == MEMBERS[name].split()


@pytest.mark.parametrize("text", ["AwaitingApproval", "AWAITINGAPPROVAL", "awaitingapproval"])
def test_statuses_parse_whatever_their_case(text: str) -> None:
    assert PipelineStatus.from_str(text) is PipelineStatus.AWAITINGAPPROVAL


def test_names_and_wire_forms_both_parse() -> None:
    assert StorageStatus.from_str("InUse") is StorageStatus.INUSE
    assert BootstrapPolicy.from_str("await_approval") is BootstrapPolicy.AWAIT_APPROVAL
    assert FaultToleranceModel.from_str("at_least_once") is FaultToleranceModel.AtLeastOnce
    assert FaultToleranceModel.from_str("ExactlyOnce") is FaultToleranceModel.ExactlyOnce
    assert CompilationProfile.SERVER_DEFAULT.value is None


def test_an_unknown_status_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown StorageStatus 'full'; known: CLEARED, CLEARING, INUSE"):
        StorageStatus.from_str("full")


def test_an_error_stays_with_its_answer() -> None:
    failed = ProgramStatus.from_value({"SqlError": {"exit_code": 1}})
    other = ProgramStatus.from_value("SqlError")
    assert failed == other == ProgramStatus.SqlError
    assert hash(failed) == hash(ProgramStatus.SqlError)
    assert failed.get_error() == {"exit_code": 1}
    assert other.get_error() is None
    assert failed != ProgramStatus.RustError
    assert failed.is_error
    assert failed.is_final
    assert not ProgramStatus.CompilingSql.is_final
    assert str(CheckpointStatus.Failure._with_error("disk full")) == "Failure: disk full"


def test_errors_and_statuses_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(PipelineStatus.RUNNING)) is PipelineStatus.RUNNING
    assert pickle.loads(pickle.dumps(CheckpointStatus.Success)) == CheckpointStatus.Success
