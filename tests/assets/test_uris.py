from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.assets.uris import PipelineIdentity, sanitize_uri

TEXT = st.text(min_size=1).filter(lambda text: text.strip() and "{{" not in text and "{%" not in text and "\ud800" not in text)
PARTS = TEXT.filter(lambda text: text.encode("utf-8", "ignore").decode() == text)


def test_a_pipeline_and_its_relation_have_uris() -> None:
    assert PipelineIdentity("team", "orders").uri == "airflow-pipelines://team/orders"
    assert PipelineIdentity("team", "orders", "revenue").uri == "airflow-pipelines://team/orders/revenue"
    assert PipelineIdentity.of("airflow-pipelines://team/orders?event=idle") == PipelineIdentity("team", "orders")


@pytest.mark.rest
@given(PARTS, PARTS, st.none() | PARTS)
def test_whatever_the_names_are_they_come_back(connection: str, pipeline: str, relation: str | None) -> None:
    identity = PipelineIdentity(connection, pipeline, relation)
    assert PipelineIdentity.of(identity.uri) == identity
    assert sanitize_uri(urlsplit(identity.uri)).geturl() == identity.uri


@pytest.mark.parametrize(
    "uri",
    [
        "airflow-pipelines://team",
        "airflow-pipelines:///orders",
        "airflow-pipelines://team/",
        "airflow-pipelines://team/orders/revenue/total",
        "airflow-pipelines://team//revenue",
        "postgres://team/orders",
    ],
)
def test_other_uris_are_refused_with_what_one_looks_like(uri: str) -> None:
    with pytest.raises(ValueError, match="airflow-pipelines://CONNECTION/PIPELINE"):
        sanitize_uri(urlsplit(uri))


@pytest.mark.parametrize(
    "arguments", [("", "p"), ("c", ""), ("c", None), ("c", "p", ""), ("c", "{{ params.p }}"), ("c", "p", "{% v %}")]
)
def test_an_asset_is_the_same_for_all_runs(arguments: Any) -> None:
    with pytest.raises(ValueError, match="of an asset is"):
        PipelineIdentity(*arguments)
