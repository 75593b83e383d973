"""Filters of records by their headers."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.connectors.transports.kafka.headers import HeaderFilter

HEADERS = [("kind", b"a"), ("kind", b"b"), ("empty", None), ("name", b"\xff")]


@pytest.mark.parametrize(
    ("wanted", "accepted"),
    [
        ({"kind": "a"}, True),
        ({"kind": "b"}, True),
        ({"kind": "c"}, False),
        ({"kind": ("c", "b")}, True),
        ({"empty": None}, True),
        ({"empty": ""}, False),
        ({"kind": "a", "name": None}, True),
        ({"kind": "a", "other": None}, False),
    ],
)
def test_filters(wanted: dict[str, Any], accepted: bool) -> None:
    assert HeaderFilter(wanted).accepts(HEADERS) is accepted
    assert not HeaderFilter(wanted).accepts([])
