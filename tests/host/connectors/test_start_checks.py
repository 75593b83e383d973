"""Inputs that wait for the end of others."""

from __future__ import annotations

import pytest

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.connectors.start_checks import check_start_after


def test_inputs_that_wait_for_each_other_are_refused() -> None:
    first, second = ConnectorOptions(labels=("a",), start_after=("b",)), ConnectorOptions(labels=("b",))
    check_start_after({"t.x": first, "t.y": second})
    with pytest.raises(Problem, match=r"t\.x, t\.y wait for each other") as refused:
        check_start_after({"t.x": first, "t.y": second.model_copy(update={"start_after": ("a",)})})
    assert refused.value.code is ErrorCode.CYCLIC_DEPENDENCY
    with pytest.raises(Problem, match=r"'start_after' of t\.x is an empty list") as refused:
        check_start_after({"t.x": ConnectorOptions(start_after=())})
    assert refused.value.code is ErrorCode.EMPTY_START_AFTER
    with pytest.raises(Problem, match=r"t\.x wait"):
        check_start_after({"t.x": ConnectorOptions(labels=("a",), start_after=("a",))})
