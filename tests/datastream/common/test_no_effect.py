from __future__ import annotations

import logging

import pytest

from airflow_pipelines.datastream.common.no_effect import no_effect, why_no_effect


class _Knob:
    @no_effect("there is nothing to turn")
    def turn(self, value: int) -> int:
        """Turn it."""
        return value

    def press(self) -> None:
        """Press it."""


def test_says_once_that_a_setting_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert _Knob().turn(3) == 3
        assert _Knob().turn(value=4) == 4
    assert [record.getMessage() for record in caplog.records] == ["_Knob.turn has no effect here: there is nothing to turn"]
    assert why_no_effect(_Knob.turn) == "there is nothing to turn"
    assert why_no_effect(_Knob.press) is None
    assert _Knob.turn.__doc__ == "Turn it."
