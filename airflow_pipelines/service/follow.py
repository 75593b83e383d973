"""The following of a pipeline's log, from its beginning until the pipeline is deleted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from airflow_pipelines.contract.log_files import get_rotated_path
from airflow_pipelines.service.control_plane import ControlPlane

logger = logging.getLogger(__name__)

POLL_S: Final = 0.2
EXISTS_S: Final = 2.0
CHUNK: Final = 65_536
BEGINNING: Final = b"Fresh start of pipeline log\n"
"""The first line that a follower of a log gets. It tells clients that only lines that were rotated away long ago are missing."""


async def follow_log(control_plane: ControlPlane, pipeline_id: UUID, path: Path, *, from_end: bool = False) -> AsyncIterator[bytes]:
    """Yield a line that marks the beginning, the contents of the log, and then the lines that are added to it.

    With ``from_end`` the contents at the time of the first line are left out. A log that became shorter was rotated: the unread
    rest of the old file comes first, then the new file from its beginning.
    """
    position = await run_in_threadpool(_size, path) if from_end else 0
    yield BEGINNING
    checked = time.monotonic()
    while True:
        chunk, position = await run_in_threadpool(_read, path, position)
        if chunk:
            yield chunk
            continue
        if time.monotonic() - checked > EXISTS_S:
            try:
                if not await run_in_threadpool(control_plane.exists, pipeline_id):
                    return
            except SQLAlchemyError as error:
                logger.warning("The store does not say whether pipeline %s is there: %s", pipeline_id, type(error).__name__)
            checked = time.monotonic()
        await asyncio.sleep(POLL_S)


def _read(path: Path, position: int) -> tuple[bytes, int]:
    if _size(path) < position:
        rest = _read_chunk(get_rotated_path(path), position)
        if rest:
            return rest, position + len(rest)
        position = 0
    chunk = _read_chunk(path, position)
    return chunk, position + len(chunk)


def _read_chunk(path: Path, position: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(position)
            return file.read(CHUNK)
    except FileNotFoundError:
        return b""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
