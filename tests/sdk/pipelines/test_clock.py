"""The clock that is driven from outside."""

from __future__ import annotations

import pytest

from tests.scripted import Scripted, pipeline_of, up


def test_a_clock_that_is_driven_from_outside(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/clock/advance", {"now_ms": 1500, "now": "1970-01-01T00:00:01.500Z"})
    assert pipeline.advance_clock(500)["now_ms"] == 1500
    pipeline.advance_clock()
    assert [body for _, body in service.asked("POST pipelines/p/clock/advance")] == [{"delta_ms": 500}, {"delta_ms": None}]
    with pytest.raises(ValueError, match="go back"):
        pipeline.advance_clock(-1)
