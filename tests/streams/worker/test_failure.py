"""What is told of an error: places in the program's own files, and nothing of this package."""

import json

from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.values import isolate
from airflow_pipelines.streams.worker.failure import failure_of


def _failure(body, folders, filename, call="f()"):
    space = {"json": json, "isolate": isolate}
    exec(compile(body, filename, "exec"), space)
    try:
        eval(call, space)
    except Exception as error:  # noqa: BLE001 (the test looks at it)
        return failure_of(error, folders)
    raise AssertionError("it did not fail")


def test_files_of_the_program_are_shown_as_its_author_knows_them(tmp_path):
    body = "def f():\n    return g()\n\ndef g():\n    raise ValueError('no')\n"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "program.py").write_text(body)
    failure = _failure(body, ("/elsewhere", str(tmp_path)), str(tmp_path / "lib" / "program.py"))
    assert (failure.type, failure.message, failure.place) == ("ValueError", "no", "lib/program.py:5")
    assert 'File "lib/program.py", line 2, in f\n    return g()\n' in failure.traceback
    assert str(tmp_path) not in failure.traceback


def test_lines_are_found_where_the_files_are_now(tmp_path):
    body = "def f():\n    raise ValueError('no')\n"
    (tmp_path / "program.py").write_text(body)
    failure = _failure(body, (str(tmp_path), "/where/it/was/bound"), "/where/it/was/bound/program.py")
    assert "File \"program.py\", line 2, in f\n    raise ValueError('no')\n" in failure.traceback


def test_the_place_is_in_the_program_and_not_in_a_library(tmp_path):
    failure = _failure("def f():\n    json.loads('{')\n", (str(tmp_path),), str(tmp_path / "program.py"))
    assert failure.type == "json.decoder.JSONDecodeError"
    assert failure.place == "program.py:2"
    assert "decoder.py" in failure.traceback


def test_frames_of_this_package_are_left_out_also_of_causes(tmp_path):
    body = """
class Bad:
    def __reduce__(self):
        raise ValueError("inner")

def f():
    try:
        isolate([Bad()])
    except ValueError as error:
        raise KeyError("outer") from error
"""
    failure = _failure(body, (str(tmp_path),), str(tmp_path / "program.py"))
    assert "direct cause" in failure.traceback
    assert "in __reduce__" in failure.traceback
    assert "airflow_pipelines" not in failure.traceback.replace("tests", "")


def test_notes_operator_and_a_text_that_cannot_be_made():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError

    error = Silent()
    note_element(error, "call", 5)
    failure = failure_of(error, ())
    assert (failure.operator, failure.notes) == ("call", ("in operator 'call', element: 5",))
    assert failure.message == "<its str() raised RuntimeError>"
    assert failure.place == ""
