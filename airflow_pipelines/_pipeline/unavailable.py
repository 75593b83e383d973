"""The methods of the reference that this release does not have yet. Each says so by its name."""

# ruff: noqa: ARG002 - the signatures are the reference's

from __future__ import annotations

from typing import Any, NoReturn

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
    ) -> None:
        """Not available in this release: start the pipeline in STANDBY."""
        _not_available("start_standby")

    def start_transaction(self) -> int:
        """Not available in this release: start a transaction."""
        _not_available("start_transaction")

    def commit_transaction(self, transaction_id: int | None = None, wait: bool = True, timeout_s: float | None = None) -> None:
        """Not available in this release: commit the current transaction."""
        _not_available("commit_transaction")

    def rebalance(self) -> None:
        """Not available in this release: rebalance joined relations."""
        _not_available("rebalance")

    def start_compaction(self) -> None:
        """Not available in this release: merge the batches of traces now."""
        _not_available("start_compaction")

    def start_samply_profile(self, duration: int = 30) -> None:
        """Not available in this release: profile the pipeline for ``duration`` seconds."""
        _not_available("start_samply_profile")

    def get_samply_profile(self, output_path: str | None = None) -> bytes:
        """Not available in this release: the profile that was taken."""
        _not_available("get_samply_profile")

    def support_bundle(
        self,
        output_path: str | None = None,
        *,
        circuit_profile: bool = True,
        heap_profile: bool = True,
        metrics: bool = True,
        logs: bool = True,
        stats: bool = True,
        pipeline_config: bool = True,
        system_config: bool = True,
        dataflow_graph: bool = True,
    ) -> bytes:
        """Not available in this release: a ZIP file of diagnostic information."""
        _not_available("support_bundle")

    def testing_force_update_platform_version(self, platform_version: str) -> None:
        """Not available in this release: pretend that the program was compiled by another version."""
        _not_available("testing_force_update_platform_version")

    def update_runtime(self) -> None:
        """Not available in this release: compile the program again with the current version."""
        _not_available("update_runtime")

    def metrics(self, format: str = "prometheus") -> Any:
        """Not available in this release: metrics in exposition format."""
        _not_available("metrics")

    def query_arrow(self, query: str) -> Any:
        """Not available in this release: a query's result as Arrow batches."""
        _not_available("query_arrow")

    def query_arrow_dicts(self, query: str) -> Any:
        """Not available in this release: a query's result as dictionaries, by way of Arrow."""
        _not_available("query_arrow_dicts")

    def remote_checkpoints(self) -> list[Any]:
        """Not available in this release: the checkpoints in the object store."""
        _not_available("remote_checkpoints")
