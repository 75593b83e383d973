from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.streams.python_environment.needs import Archive, PythonEnvironmentError, PythonNeeds, Requirements


def test_files_that_a_file_of_requirements_names_are_read_with_it(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "requirements.txt").write_text(
        "first==1\n-r more/a.txt  # more\n-c more/limits.txt\n--requirement=more/b.txt\n-r https://host/c.txt\n--index-url https://host\n"
    )
    (tmp_path / "more" / "a.txt").write_text("second\n-r b.txt")
    (tmp_path / "more" / "b.txt").write_text("third")
    (tmp_path / "more" / "limits.txt").write_text("first<2\n")
    read = Requirements.read(tmp_path / "requirements.txt")
    assert read.text == "first==1\nsecond\nthird\nthird\n-r https://host/c.txt\n--index-url https://host\n"
    assert read.constraints == "first<2\n"


def test_a_named_file_that_is_not_there_or_names_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-r b.txt\n")
    with pytest.raises(PythonEnvironmentError, match=r"b.txt', which '.*a.txt' names, cannot be read: .*No such file"):
        Requirements.read(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("-r a.txt\n")
    with pytest.raises(PythonEnvironmentError, match=r"a.txt' names itself"):
        Requirements.read(tmp_path / "a.txt")


def test_two_archives_have_two_targets(tmp_path: Path) -> None:
    with pytest.raises(PythonEnvironmentError, match="Two archives are unpacked to 'data'"):
        PythonNeeds(archives=(Archive(tmp_path / "a.zip", "data"), Archive(tmp_path / "b.zip", "data")))


def test_needs_are_written_as_json_and_read_with_paths_from_the_folder_of_the_program(tmp_path: Path) -> None:
    assert PythonNeeds.from_json({}, tmp_path) == PythonNeeds()
    assert PythonNeeds().to_json(tmp_path) == {}
    parts = {
        "requirements": {"text": "a==1\n", "constraints": "b<2\n", "cached_packages": "wheels"},
        "archives": [["a.zip", "data"], ["/elsewhere/b.zip", "more"]],
        "files": ["helper.py", "/elsewhere/c.py"],
        "executable": "python3",
    }
    needs = PythonNeeds.from_json(parts, tmp_path)
    assert needs.to_json(tmp_path) == parts
    assert needs == PythonNeeds(
        Requirements("a==1\n", "b<2\n", tmp_path / "wheels"),
        (Archive(tmp_path / "a.zip", "data"), Archive(Path("/elsewhere/b.zip"), "more")),
        (tmp_path / "helper.py", Path("/elsewhere/c.py")),
        "python3",
    )
