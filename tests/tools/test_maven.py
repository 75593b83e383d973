"""The jars that tests need, where they cannot be had."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools import maven
from tools.maven import NoJarsError, jars


@pytest.mark.parametrize("missing", ["java", "mvn"])
def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/bin/{name}")
    with pytest.raises(NoJarsError, match=rf"^{missing} is not installed \(Debian: apt-get install "):
        jars("kafka")


@pytest.mark.core
@pytest.mark.processes
def test_a_failed_download_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho '[ERROR] nobody answers'\nexit 1\n")
    program.chmod(0o755)
    (program.parent / "java").symlink_to(program)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoJarsError, match=r"kafka\.xml: \[ERROR\] nobody answers"):
        jars("kafka")
    assert not [path for path in (tmp_path / "airflow-pipelines" / "jars").iterdir() if path.is_dir()]


def test_sets_that_cannot_be_had_are_told_and_the_others_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fetched(name: str) -> Path:
        asked.append(name)
        if name == "kafka":
            raise NoJarsError("nobody answers")
        return tmp_path

    asked: list[str] = []
    monkeypatch.setattr(maven, "jars", fetched)
    assert maven.main(["kafka", "delta"]) == 1
    assert asked == ["kafka", "delta"]
    assert capsys.readouterr().err == "nobody answers\n"
    assert maven.main(["delta"]) == 0
