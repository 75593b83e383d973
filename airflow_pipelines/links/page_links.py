"""The addresses at which the page shows a pipeline.

The part after ``#`` stays in the browser, so no server writes names to its log.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit

PLUGIN_PATH: Final = "/airflow_pipelines"
"""The path of the page itself in Airflow, below the path of ``[api] base_url``."""
FRAME_ROUTE: Final = "pipelines"
"""The name of Airflow's own page that shows it in a frame."""


def page_link(page: str, pipeline: str, connection: str | None = None) -> str:
    """Return the address at which the page shows a pipeline.

    :param page: the address of the page: that of a service, or of Airflow with :data:`PLUGIN_PATH`
    :param pipeline: the pipeline's name
    :param connection: in Airflow, the id of the connection; None in a service, which has none
    """
    query = "" if connection is None else f"?connection={quote(connection, safe='')}"
    return f"{page.rstrip('/')}/#/pipelines/{quote(pipeline, safe='')}{query}"


def airflow_page_link(base_url: str, pipeline: str, connection: str) -> str:
    """Return the address at which Airflow shows a pipeline, with its navigation around the page.

    :param base_url: ``[api] base_url``
    :param pipeline: the pipeline's name
    :param connection: the id of the connection
    """
    base = base_url.rstrip("/")
    # Airflow shows in its frame the path after its own part.
    frame = f"{base}/plugin/{FRAME_ROUTE}{urlsplit(base).path}{PLUGIN_PATH}"
    return page_link(frame, pipeline, connection)
