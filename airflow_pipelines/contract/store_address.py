"""The hand-over of the store's address to a host, in a file that only this user can read.

The URL may hold a password. In the environment it would be visible to everything that the host starts, including the Python
functions of programs, and on a cluster it would be a property of the application.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from airflow_pipelines.common.private_files import make_private_folder, private_opener
from airflow_pipelines.common.settings import Settings


def hand_over(settings: Settings, host_id: UUID) -> None:
    """Write the store's address to a file for a host that is about to be started.

    :raises OSError: when the file cannot be written
    """
    path = _path(settings, host_id)
    make_private_folder(path.parent)
    with open(path, "w", encoding="utf-8", opener=private_opener) as file:
        file.write(settings.database_url)


def database_url(settings: Settings, host_id: UUID) -> str:
    """Return the URL of the store's database that was handed over, else that of the settings.

    The file is kept as long as the host may be started again, as clusters do.
    """
    try:
        return _path(settings, host_id).read_text(encoding="utf-8")
    except FileNotFoundError:
        return settings.database_url


def withdraw(settings: Settings, host_id: UUID) -> None:
    """Remove the file of a host that has ended."""
    _path(settings, host_id).unlink(missing_ok=True)


def _path(settings: Settings, host_id: UUID) -> Path:
    return settings.home / "hosts" / f"{host_id}.url"
