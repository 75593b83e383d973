"""Says which changes the engine has left out, and counts them with the input that they came from."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_pipelines.connectors.base import ConnectorError
from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.host.inputs.step_input import StepInput
from airflow_pipelines.host.state.pipeline_log import PipelineLog


def report_rejected(log: PipelineLog, found: Iterable[Rejected], taken: StepInput) -> None:
    """Count what the engine left out with the input that it came from, and say which row was the first.

    :param log: the pipeline's log
    :param found: what was left out
    :param taken: what the step was made of
    """
    for rejected in found:
        sources = taken.origins(rejected.table)
        for part in rejected.parts:
            source, before = sources[part.change]
            text = f"{part.count} changes of table {rejected.table} were left out: {rejected.reason}, for example {part.first}"
            if source is None:
                log.limited(f"rejected {rejected.table}", "an ad-hoc statement: %s", text)
                continue
            row = source.metrics.processed_records + source.metrics.collected_records + before + part.first_row
            log.limited(f"rejected {source.name}", "connector %s: row %d: %s", source.name, row, text)
            source.metrics.parse_errors.extend([ConnectorError("rejected", f"row {row}: {text}", row)], part.count)
