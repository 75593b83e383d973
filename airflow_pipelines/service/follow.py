"""Follows a pipeline's log from its beginning until the pipeline is deleted."""

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

from airflow_pipelines.contract.log_files import replaced
from airflow_pipelines.service.control_plane import ControlPlane

logger = logging.getLogger(__name__)

POLL_S: Final = 0.2
EXISTS_S: Final = 2.0
CHUNK: Final = 65_536
BEGINNING: Final = b"Fresh start of pipeline log\n"
"""The first line that whoever follows a log gets. Clients know by it that no line before is missing but for those long gone."""


async def follow_log(control_plane: ControlPlane, pipeline_id: UUID, path: Path, *, from_end: bool = False) -> AsyncIterator[bytes]:
    """A line that says that the log begins, what is in the log, then what is added to it.

    With ``from_end`` what is in the log when the first line comes is left out.

    A log that became shorter was replaced: what is left to read of the old one comes first, then the new one from its beginning.
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
        rest = _chunk(replaced(path), position)
        if rest:
            return rest, position + len(rest)
        position = 0
    chunk = _chunk(path, position)
    return chunk, position + len(chunk)


def _chunk(path: Path, position: int) -> bytes:
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
