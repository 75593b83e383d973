"""What Pipeline itself does; its methods are tested in tests/_pipeline, their signatures in test_sdk_surface.py."""

from __future__ import annotations

import pytest

from airflow_pipelines import (
    Pipeline,
)
from tests.scripted import Scripted


@pytest.fixture
def service() -> Scripted:
    return Scripted()


NOT_AVAILABLE = ["start_transaction", "commit_transaction"]


@pytest.mark.parametrize("name", NOT_AVAILABLE)
def test_a_method_outside_this_release_says_so_by_its_name(name: str, service: Scripted) -> None:
    pipeline = Pipeline(service.client)
    with pytest.raises(NotImplementedError, match=rf"^Pipeline\.{name} is not available in this release$"):
        getattr(pipeline, name)()
