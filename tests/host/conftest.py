"""Fixtures of the host's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.driver import PROGRAM, Pipeline
from tests.inprocess_host import InProcessHost


@pytest.fixture
def make(warm_host: InProcessHost, tmp_path: Path) -> Iterator[Callable[..., Pipeline]]:
    """Makes pipelines that are gone after the test."""
    made: list[Pipeline] = []

    def pipeline(program: str = PROGRAM, **runtime_config: Any) -> Pipeline:
        made.append(Pipeline(warm_host, tmp_path / f"pipeline{len(made)}", program, **runtime_config))
        made[-1].folder.mkdir()
        return made[-1]

    yield pipeline
    for one in made:
        one.close()


@pytest.fixture
def running(make: Callable[..., Pipeline]) -> Pipeline:
    """A running pipeline over the standard program."""
    pipeline = make()
    pipeline.start()
    return pipeline
