"""Addresses of pipelines on the page."""

from __future__ import annotations

from airflow_pipelines.page_links import PLUGIN_PATH, page_link


def test_a_link_names_the_pipeline_and_in_airflow_its_connection() -> None:
    assert page_link("http://localhost:8080", "shop") == "http://localhost:8080/#/pipelines/shop"
    in_airflow = page_link(f"https://airflow.example.com/team{PLUGIN_PATH}/", "a b/c", "x?&y")
    assert in_airflow == "https://airflow.example.com/team/airflow_pipelines/#/pipelines/a%20b%2Fc?connection=x%3F%26y"
