from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.program.stream_files import StreamFilesError
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, collect_stream_files


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / (name.replace("__slash__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_modules_that_a_program_imports_come_along_and_nothing_else(tmp_path: Path) -> None:
    write(
        tmp_path,
        fraud="import os, rules.limits\nfrom shared import cards\nimport airflow_pipelines\ndef late():\n    import only_here\n",
        shared="import deep",
        deep="import fraud, shared",
        only_here="",
        another_dag="import secrets_of_others",
        secrets_of_others="",
        airflow_pipelines="not ours",
    )
    write(tmp_path, rules__slash__limits="from . import cards", rules__slash__cards="import deeper", deeper="")
    found = collect_stream_files(tmp_path / "fraud.py")
    assert next(iter(found)) == "fraud.py"
    assert found.keys() == {
        "fraud.py", "shared.py", "deep.py", "only_here.py", "rules/limits.py", "rules/cards.py", "deeper.py"
    }  # fmt: skip
    assert found["deep.py"] == "import fraud, shared"


def test_paths_are_relative_to_the_folder_that_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "dags", fraud="import rules", rules="")
    assert list(collect_stream_files("fraud.py", folder=tmp_path / "dags")) == ["fraud.py", "rules.py"]
    monkeypatch.chdir(tmp_path)
    assert list(collect_stream_files("dags/fraud.py")) == ["fraud.py", "rules.py"]
    assert list(collect_stream_files(Path("dags") / "fraud.py")) == ["fraud.py", "rules.py"]


def test_a_folder_is_run_by_its_main_file_and_comes_whole(tmp_path: Path) -> None:
    write(tmp_path / "app", __main__="import a", z="", a="", sub__slash__m="", __pycache____slash__x="", hidden="")
    (tmp_path / "app" / ".cache").mkdir()
    (tmp_path / "app" / ".cache" / "y.py").write_text("")
    (tmp_path / "app" / "notes.txt").write_text("")
    assert list(collect_stream_files(tmp_path / "app")) == ["__main__.py", "a.py", "hidden.py", "sub/m.py", "z.py"]
    with pytest.raises(StreamFilesError, match=r"has no __main__\.py, which is what is executed"):
        collect_stream_files(tmp_path)


def test_other_files_are_named(tmp_path: Path) -> None:
    write(tmp_path, fraud="import rules", rules="", plugins__slash__one="", plugins__slash__two="")
    (tmp_path / "requirements.txt").write_bytes(b"tinydb\r\n")
    found = collect_stream_files(tmp_path / "fraud.py", ["requirements.txt", "plugins", tmp_path / "rules.py"])
    assert list(found) == ["fraud.py", "rules.py", "requirements.txt", "plugins/one.py", "plugins/two.py"]
    assert found["requirements.txt"] == "tinydb\r\n", "what is in a file stays as it is"
    with pytest.raises(StreamFilesError, match=r"there is no file or folder .*missing\.txt"):
        collect_stream_files(tmp_path / "fraud.py", ["missing.txt"])
    with pytest.raises(StreamFilesError, match="is not in the program's folder"):
        collect_stream_files(tmp_path / "plugins" / "one.py", ["../rules.py"])
    (tmp_path / "model.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StreamFilesError, match=r"model\.bin is no text in UTF-8 \(byte 0\)"):
        collect_stream_files(tmp_path / "fraud.py", ["model.bin"])


def test_a_text_is_told_from_a_path_by_its_line_breaks(tmp_path: Path) -> None:
    assert collect_stream_files("import os\n") == {"program.py": "import os\n"}
    with pytest.raises(StreamFilesError, match=r"there is no stream program .*/fraud\.py"):
        collect_stream_files("fraud.py", folder=tmp_path)


def test_texts_are_taken_as_they_are(tmp_path: Path) -> None:
    texts = {"z.py": "import a", "a.py": ""}
    assert list(collect_stream_files(texts).items()) == list(texts.items())
    assert collect_stream_files({}) == {}, "no stream program any more"
    with pytest.raises(StreamFilesError, match="is no path"):
        collect_stream_files({"../a.py": ""})


def test_a_program_that_is_no_python_is_left_to_the_compiler(tmp_path: Path) -> None:
    write(tmp_path, broken="import rules\ndef f(:\n", rules="")
    assert list(collect_stream_files(tmp_path / "broken.py")) == ["broken.py"]


def test_what_is_not_given_is_not_sent(tmp_path: Path) -> None:
    assert StreamProgramArguments.collect(None).to_wire() == {}
    assert StreamProgramArguments.collect({}, (), []).to_wire() == {"stream_files": {}, "stream_arguments": []}
    sent = StreamProgramArguments.collect("x = 1\n", (), ["--day", "1"]).to_wire()
    assert sent == {"stream_files": {"program.py": "x = 1\n"}, "stream_arguments": ["--day", "1"]}
    with pytest.raises(StreamFilesError, match="give stream_program as well"):
        StreamProgramArguments.collect(None, ["a.py"])
    with pytest.raises(StreamFilesError, match="give a list with one text for each argument"):
        StreamProgramArguments.collect("x = 1\n", (), "--day 1")
