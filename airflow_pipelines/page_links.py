"""Where the page shows a pipeline. What comes after ``#`` stays in the browser, so that no server writes names into its log."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

PLUGIN_PATH: Final = "/airflow_pipelines"
"""The path of the page in Airflow, behind the path of ``[api] base_url``."""


def page_link(page: str, pipeline: str, connection: str | None = None) -> str:
    """The address at which the page shows a pipeline.

    :param page: the address of the page: that of a service, or of Airflow with :data:`PLUGIN_PATH`
    :param pipeline: the pipeline's name
    :param connection: in Airflow, the id of the connection; None in a service, which has none
    """
    query = "" if connection is None else f"?connection={quote(connection, safe='')}"
    return f"{page.rstrip('/')}/#/pipelines/{quote(pipeline, safe='')}{query}"
