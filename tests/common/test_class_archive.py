"""Why the archive of Spark's classes cannot be written. That it can, each run of the suite shows, which begins with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.common import class_archive
from airflow_pipelines.common.class_archive import java_options, write_archive
from airflow_pipelines.common.pins import SetupError

pytestmark = pytest.mark.core


@pytest.mark.processes
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "ARCHIVE", tmp_path / "missing" / "classes.jsa")
    with pytest.raises(SetupError, match=rf"cannot be written to {tmp_path}/missing \(No such file or directory\): do it as"):
        write_archive()


@pytest.mark.processes
def test_what_spark_says_is_told_and_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "ARCHIVE", tmp_path / "classes.jsa")
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:NoSuchOption")
    monkeypatch.setattr(class_archive, "find_java", lambda: None)
    with pytest.raises(SetupError, match=r"Spark does not start(?s:.*)NoSuchOption"):
        write_archive()
    assert list(tmp_path.iterdir()) == []
    assert java_options() == ""
