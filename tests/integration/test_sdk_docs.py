"""The snippets of docs/sdk.md run as they are printed, one after the other, and so do the examples of its tables of methods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pandas
import pytest

from airflow_pipelines import PipelinesError
from airflow_pipelines.sdk.errors import PipelineAPIError

pytestmark = pytest.mark.integration

DOCS: Final = Path(__file__).resolve().parents[2] / "docs" / "sdk.md"
STOPPED: Final = [
    "pipeline.stop(force=False, timeout_s=60)",
    'pipeline.modify(description="what customers spend")',
    "pipeline.dismiss_error()",
    "pipeline.update_runtime()",
]
"""The examples of a stopped pipeline, after all others."""
REFUSED: Final = {
    "pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW)": "cannot start pipeline 'shop'",
    "pipeline.activate(timeout_s=60)": "InvalidTransition",
    "pipeline.delete(clear_storage=True)": "StorageStatusImmutableUnlessStopped",
    'pipeline.testing_force_update_platform_version("0.0.1")': "UnsupportedPipelineAction",
    'pipeline.stream_picture("graph.svg")': "InvalidParam",
    'pipeline.pause_connector("orders", "file")': "UnknownInputEndpoint",
    'pipeline.output_connector_stats("revenue", "out").metrics': "UnknownOutputEndpoint",
    "pipeline.completion_token_status(token)": "PipelineRestarted",
    "pipeline.advance_clock(60_000)": "InvalidParam",
    "pipeline.start_samply_profile(30)": "NotSupported",
    "pipeline.commit_transaction(number, wait=False)": "pipeline 'shop' has no transaction to commit",
}
"""The examples that need something that the pipeline of the page does not have, with the error that says so."""


def test_the_snippets_run(
    warm_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(warm_home))
    monkeypatch.delenv("AIRFLOW_PIPELINES_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    text = DOCS.read_text()
    refused: dict[str, str] = {}
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        # Blank lines in front, so that an error shows the line of the page.
        padding = "\n" * text[: block.start(1)].count("\n")
        if "pipeline.delete(" in block[1]:
            refused = refused_examples(text, namespace)
        exec(compile(padding + block[1], str(DOCS), "exec"), namespace)
    printed = capsys.readouterr().out
    assert "[{'customer': 'Bob', 'total': Decimal('5.00'), 'orders': 1}]" in printed
    assert "{'customer': 'Alice', 'total': Decimal('42.50'), 'orders': 2}" in printed
    assert "[{'customer': 'Carol', 'total': Decimal('1.00'), 'orders': 1, 'insert_delete': 1}]" in printed
    assert "[{'n': 2}]" in printed
    assert "400 AdHocQueryError" in printed
    assert refused == REFUSED


def refused_examples(text: str, namespace: dict[str, Any]) -> dict[str, str]:
    """Run the examples of the tables, and return the errors of those that fail."""
    exec("from airflow_pipelines import *", namespace)
    namespace["frame"] = pandas.DataFrame({"id": [20], "customer": ["Eve"], "amount": [1]})
    table = text.partition("## Every method of `Pipeline`")[2]
    examples = re.findall(r"^\| `.*\| `([^`]+)` \|$", table, re.MULTILINE)
    assert len(examples) > 40
    refused = {}
    for example in [*(each for each in examples if each not in {*STOPPED, "client.close()"}), *STOPPED]:
        try:
            exec(compile(example, str(DOCS), "exec"), namespace)
        except (PipelinesError, RuntimeError) as error:
            refused[example] = error.error_code if isinstance(error, PipelineAPIError) else re.split(" now|: ", str(error))[0]
        finally:
            # With a key in its store, every other service of the store wants one, in all tests after this one.
            for key in namespace["client"].api_keys():
                namespace["client"].delete_api_key(key["name"])
    # The rest of the page goes on with a running pipeline.
    exec("pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW)", namespace)
    return refused
