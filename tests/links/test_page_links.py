"""Addresses of pipelines on the page."""

from __future__ import annotations

from airflow_pipelines.links.page_links import PLUGIN_PATH, airflow_page_link, page_link


def test_a_link_names_the_pipeline_and_in_airflow_its_connection() -> None:
    assert page_link("http://localhost:8080", "shop") == "http://localhost:8080/#/pipelines/shop"
    in_airflow = page_link(f"https://airflow.example.com/team{PLUGIN_PATH}/", "a b/c", "x?&y")
    assert in_airflow == "https://airflow.example.com/team/airflow_pipelines/#/pipelines/a%20b%2Fc?connection=x%3F%26y"


def test_airflow_shows_it_with_its_navigation() -> None:
    assert airflow_page_link("http://localhost:8080/", "shop", "c") == (
        "http://localhost:8080/plugin/pipelines/airflow_pipelines/#/pipelines/shop?connection=c"
    )
    assert airflow_page_link("https://a.example.com/team/one", "shop", "c") == (
        "https://a.example.com/team/one/plugin/pipelines/team/one/airflow_pipelines/#/pipelines/shop?connection=c"
    )
