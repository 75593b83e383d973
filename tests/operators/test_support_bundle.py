from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.notifications.support_bundle import SupportBundleNotifier
from airflow_pipelines.operators.support_bundle import CollectSupportBundleOperator
from tests.fixtures.airflow import ScriptedService

BUNDLE = b"PK\x05\x06" + bytes(18)


@pytest.fixture
def bundled(scripted: ScriptedService) -> ScriptedService:
    """A service with a pipeline that has a support bundle."""
    scripted.pipeline()
    scripted.answers["GET", "support_bundle"] = BUNDLE
    return scripted


def test_the_bundle_is_in_the_file(bundled: ScriptedService, tmp_path: Path) -> None:
    path = tmp_path / "bundles" / "p.zip"
    result = CollectSupportBundleOperator(task_id="x", pipeline_name="p", path=str(path)).execute({})
    assert result == {"pipeline": "p", "path": str(path), "bytes": len(BUNDLE)}
    assert path.read_bytes() == BUNDLE


def test_the_notifier_is_about_the_pipeline_of_the_task_that_failed(bundled: ScriptedService, tmp_path: Path) -> None:
    notifier = SupportBundleNotifier(path=f"{tmp_path}/{{{{ run_id }}}}-{{{{ ti.try_number }}}}.zip")
    task = SimpleNamespace(pipeline_name="p", pipeline_conn_id="c", dag=None)
    context: Any = {"task": task, "run_id": "manual", "ti": SimpleNamespace(try_number=2, task=task), "dag": None}
    notifier(context)
    assert (tmp_path / "manual-2.zip").read_bytes() == BUNDLE
    notifier(context | {"run_id": "other"})
    assert (tmp_path / "other-2.zip").exists(), "the notifier of default_args is that of many tasks"
    with pytest.raises(AirflowFailException, match="pipeline_name is empty"):
        SupportBundleNotifier(path=str(tmp_path / "x.zip")).notify({})
    SupportBundleNotifier(path=str(tmp_path / "x.zip"), pipeline_name="p").notify({})
    assert (tmp_path / "x.zip").read_bytes() == BUNDLE
