"""The methods of the reference that this release does not have yet. Each says so by its name."""

# ruff: noqa: ARG002 - the signatures are the reference's

from __future__ import annotations

from typing import NoReturn

from airflow_pipelines._pipeline.base import PipelineBase
from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineStatus


def _not_available(name: str) -> NoReturn:
    raise NotImplementedError(f"Pipeline.{name} is not available in this release")


class PipelineUnavailable(PipelineBase):
    """Methods that raise ``NotImplementedError``."""

    def activate(self, wait: bool = True, timeout_s: float | None = None) -> PipelineStatus | None:
        """Not available in this release: activate a pipeline in STANDBY."""
        _not_available("activate")

    def start_standby(
        self,
        bootstrap_policy: BootstrapPolicy | None = None,
        wait: bool = True,
        timeout_s: float | None = None,
        dismiss_error: bool = True,
        *,
        silent_bootstrap: bool | None = None,
        concurrent_bootstrap: bool | None = None,
    ) -> None:
        """Not available in this release: start the pipeline in STANDBY."""
        _not_available("start_standby")

    def start_transaction(self) -> int:
        """Not available in this release: start a transaction."""
        _not_available("start_transaction")

    def commit_transaction(self, transaction_id: int | None = None, wait: bool = True, timeout_s: float | None = None) -> None:
        """Not available in this release: commit the current transaction."""
        _not_available("commit_transaction")
