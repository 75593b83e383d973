from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.program.stream_files import (
    MAX_BYTES,
    MAX_FILES,
    MAX_PATH,
    StreamFilesError,
    StreamFilesTooLarge,
    stream_files,
    write_stream_files,
)


def test_files_keep_their_order_because_the_first_is_executed() -> None:
    texts = {"z.py": "import a", "a.py": "", "data/known cards.csv": "1,2\n", "pkg/__init__.py": "", "pkg/ä.py": ""}
    assert stream_files(texts) == tuple(SourceFile(path, text) for path, text in texts.items())
    assert stream_files({}) == ()


@pytest.mark.parametrize(
    "path",
    [
        "", "/etc/passwd.py", "../x.py", "a/../../x.py", "a/./x.py", "./x.py", "a//x.py", "x.py/", "a\\x.py", "C:/x.py", "x\n.py",
        "x\x00.py", " x.py", "x.py ", "a/ /x.py", "\ud800.py",
    ],
)  # fmt: skip
def test_a_path_stays_within_the_folder(path: str) -> None:
    with pytest.raises(StreamFilesError, match="is no path of a stream program's file"):
        stream_files({path: ""})
    with pytest.raises(StreamFilesError, match="is no path of a stream program's file"):
        stream_files({"program.py": "", path: ""})


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["notes.txt", "program.py"], r"the first file .* 'notes.txt' does not end with .py"),
        (["a.py", "A.PY"], "the same name but for upper and lower case"),
        (["program.py", "lib", "lib/x.py"], "'lib' cannot be a file of a stream program and the folder of 'lib/x.py'"),
        (["program.py", "x/y/z.py", "X/y"], "'X/y' cannot be a file of a stream program and the folder of 'x/y/z.py'"),
    ],
)
def test_files_that_cannot_be_together_in_a_folder(paths: list[str], message: str) -> None:
    with pytest.raises(StreamFilesError, match=message):
        stream_files(dict.fromkeys(paths, ""))


def test_both_sides_of_the_limits() -> None:
    assert len(stream_files({f"m{number}.py": "" for number in range(MAX_FILES)})) == MAX_FILES
    with pytest.raises(StreamFilesError, match=f"at most {MAX_FILES} files, this one has {MAX_FILES + 1}"):
        stream_files({f"m{number}.py": "" for number in range(MAX_FILES + 1)})
    longest = "x" * (MAX_PATH - 3) + ".py"
    assert stream_files({longest: ""})
    with pytest.raises(StreamFilesError, match=f"at most {MAX_PATH} characters"):
        stream_files({"x" + longest: ""})
    half = "ä" * (MAX_BYTES // 4)
    assert stream_files({"a.py": half, "b.py": half})
    with pytest.raises(StreamFilesTooLarge, match=f"these have {MAX_BYTES + 1}"):
        stream_files({"a.py": half, "b.py": half, "c.py": "x"})


def test_files_are_written_as_they_were_given(tmp_path: Path) -> None:
    texts = {"main.py": "one\r\ntwo\n", "pkg/ä.py": "ü"}
    write_stream_files(stream_files(texts), tmp_path / "program")
    assert {path: (tmp_path / "program" / path).read_bytes() for path in texts} == {
        path: text.encode() for path, text in texts.items()
    }
    write_stream_files((), tmp_path / "empty")
    assert (tmp_path / "empty").is_dir()


@pytest.mark.parametrize("path", ["", "../x.py", "a/../../x.py", "/x.py"])
def test_no_file_is_written_out_of_the_folder(path: str, tmp_path: Path) -> None:
    with pytest.raises(StreamFilesError, match="leads out of the program's folder"):
        write_stream_files([SourceFile(path, "x")], tmp_path / "program")
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
