"""A service that gives prepared answers, for each test of the parts of a pipeline."""

from __future__ import annotations

import pytest

from tests.scripted import Scripted


@pytest.fixture
def service() -> Scripted:
    return Scripted()
