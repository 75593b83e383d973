"""The methods of the reference that this release does not have yet. Each says so by its name."""

# ruff: noqa: ARG002 - the signatures are the reference's

from __future__ import annotations

from typing import NoReturn

from airflow_pipelines._pipeline.base import PipelineBase


def _not_available(name: str) -> NoReturn:
    raise NotImplementedError(f"Pipeline.{name} is not available in this release")


class PipelineUnavailable(PipelineBase):
    """Methods that raise ``NotImplementedError``."""

    def start_transaction(self) -> int:
        """Not available in this release: start a transaction."""
        _not_available("start_transaction")

    def commit_transaction(self, transaction_id: int | None = None, wait: bool = True, timeout_s: float | None = None) -> None:
        """Not available in this release: commit the current transaction."""
        _not_available("commit_transaction")
