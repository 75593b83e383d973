"""Releases of the engine that plan, or store, in another way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.engine import normalise
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.storage.journal import Journal, JournalHeader
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.plan.blocks.accumulators import AccumulatedValue, Accumulators


@contextmanager
def another_release() -> Iterator[None]:
    """A planner that numbers a sum's accumulators the other way around: names, types and the view's text are the same.

    Programs are compiled once in a process, so that one that was compiled before needs another text, such as with a comment.
    """
    sum_of = Accumulators._sum

    def total_first(self: Accumulators, call: Any, kind: ColumnType, result_type: str) -> AccumulatedValue | None:
        value = f"CAST(({call.arguments[0]}) AS BIGINT)"
        self._add("BIGINT", f"{value} * __weight", value)
        return sum_of(self, call, kind, result_type)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Accumulators, "_sum", total_first)
        yield


@contextmanager
def release_without_canonical_form() -> Iterator[None]:
    """A release that stores values as they come, and notes no layouts."""
    to_manifest, create = Snapshot.to_manifest, Journal.create

    def manifest(self: Snapshot) -> dict[str, Any]:
        return {key: value for key, value in to_manifest(self).items() if key not in ("layouts", "canonical_form")}

    def created(folder: Path, header: JournalHeader) -> Journal:
        return create(folder, replace(header, layouts={}, canonical_form=0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalise, "in_canonical_form", lambda column: column)
        patch.setattr(Snapshot, "to_manifest", manifest)
        patch.setattr(Journal, "create", created)
        yield
