"""Follows a pipeline's log from its beginning until the pipeline is deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from uuid import UUID

from starlette.concurrency import run_in_threadpool

from airflow_pipelines.service.control import Control

POLL_S: Final = 0.2
EXISTS_S: Final = 2.0
CHUNK: Final = 65_536


async def follow_log(control: Control, pipeline_id: UUID, path: Path) -> AsyncIterator[bytes]:
    """What is in the log, then what is added to it. A log that became shorter was replaced and is read from its beginning."""
    position = 0
    checked = time.monotonic()
    while True:
        chunk, position = await run_in_threadpool(_read, path, position)
        if chunk:
            yield chunk
            continue
        if time.monotonic() - checked > EXISTS_S:
            if not await run_in_threadpool(control.exists, pipeline_id):
                return
            checked = time.monotonic()
        await asyncio.sleep(POLL_S)


def _read(path: Path, position: int) -> tuple[bytes, int]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            position = 0 if size < position else position
            file.seek(position)
            chunk = file.read(CHUNK)
    except FileNotFoundError:
        return b"", 0
    return chunk, position + len(chunk)
