"""The checks before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.common import pins
from airflow_pipelines.common.pins import SetupError, check_spark_packages, find_java

pytestmark = pytest.mark.core


def fake_java(folder: Path, version: str, modules: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\nif [ \"$1\" = -version ]; then echo '{version}' >&2; else echo '{modules}'; fi\n")
    java.chmod(0o755)
    return java


def test_the_installed_pair_is_right() -> None:
    check_spark_packages()


@pytest.mark.parametrize("client", ["4.1.0", None])
def test_a_wrong_pair_names_both_and_the_fix(monkeypatch: pytest.MonkeyPatch, client: str | None) -> None:
    monkeypatch.setattr(pins, "_version", {"pyspark": "4.2.0", "pyspark-client": client}.get)
    with pytest.raises(SetupError) as caught:
        check_spark_packages()
    text = str(caught.value)
    assert "pyspark 4.2.0" in text
    assert f"pyspark-client {client or '(not installed)'}" in text
    assert "pip install pyspark==4.2.0 pyspark-client==4.2.0" in text


@pytest.mark.processes
def test_java_home_wins_over_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path / "home", 'openjdk version "17.0.9" 2023-10-17', "jdk.incubator.vector@17.0.9")
    fake_java(tmp_path / "path", 'openjdk version "11.0.1"', "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path' / 'bin'}:/usr/bin:/bin")
    assert find_java() == java
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(SetupError, match=r"is Java 11.*needs Java 17 or 21"):
        find_java()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("version", "modules", "expected"),
    [
        ('java version "1.8.0_392"', "", "is Java 8"),
        ('openjdk version "25"', "jdk.incubator.vector", "is Java 25"),
        ('openjdk version "21.0.1"', "java.base@21.0.1", "lacks the module jdk.incubator.vector"),
        ("no idea", "", "did not say a version"),
    ],
)
def test_a_java_that_does_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, modules: str, expected: str
) -> None:
    fake_java(tmp_path, version, modules)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=expected) as caught:
        find_java()
    assert "apt-get install openjdk-17-jre-headless" in str(caught.value)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="JAVA_HOME is"):
        find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"There is no Java.*apt-get install"):
        find_java()
