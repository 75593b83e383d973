"""Slashes within segments of a path."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_pipelines.serving.path_segments import EncodedSlashes, segment


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/tables/a/stats", "a"),
        ("/tables/a%2Fb/stats", "a/b"),
        ("/tables/%22a%2fb%23%C3%A9%22/stats", '"a/b#é"'),
        ("/tables/a/b/stats", None),
    ],
)
def test_an_encoded_slash_separates_nothing(path: str, wanted: str | None) -> None:
    app = FastAPI()
    app.add_middleware(EncodedSlashes)

    @app.get("/tables/{name}/stats")
    def name(name: str) -> Any:
        return segment(name)

    answer = TestClient(app).get(path)
    assert (answer.json() if answer.is_success else None) == wanted
