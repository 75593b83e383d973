"""A real host with a stream program that reads and writes files, killed in each way once: each line is written exactly once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tools.chaos.streams import Kill, StreamRounds

pytestmark = pytest.mark.integration


@pytest.mark.timeout(600)
def test_kills_lose_no_line_and_repeat_none(tmp_path: Path) -> None:
    # Any moment may be the one of the kill.
    rounds = StreamRounds(tmp_path, random.Random())
    try:
        for kill in (Kill.HOST, Kill.RENAME, Kill.READING):
            rounds.one(kill)
        rounds.last()
    except AssertionError as error:
        error.add_note((tmp_path / "pipeline.log").read_text(errors="replace")[-5000:])
        raise
    finally:
        rounds.host.kill()
