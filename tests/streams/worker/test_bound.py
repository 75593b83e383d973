"""Programs as bytes, and what is said of those that cannot be bytes."""

import sys
import threading
from dataclasses import dataclass
from types import ModuleType

import pytest

from airflow_pipelines.datastream import MapFunction
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.worker.bound import BoundProgram
from airflow_pipelines.streams.worker.culprits import unpicklable
from tests.datastream.programs import environment
from tests.streams.worker.programs import begin, elements, program, rows, source, splits

LOCK = threading.Lock()


class Locked(MapFunction):
    def __init__(self):
        self.parts = {"lock": [1, threading.Lock()]}

    def map(self, value):
        return value


def _refusal(stream, **settings):
    with pytest.raises(StreamProgramError) as refused:
        program(stream, **settings).to_bytes()
    return str(refused.value)


def test_what_a_function_object_holds_is_named_by_its_path():
    text = _refusal(source(environment()).map(Locked()).name("lock up"))
    assert text.startswith("The function of the operator 'lock up'.parts['lock'][1] (of type lock) cannot be brought")
    assert "Make connections, locks and open files in open()" in text


def test_what_a_function_uses_is_named():
    lock = threading.Lock()

    def locked(value):
        with lock:
            return value

    text = _refusal(source(environment()).map(locked).name("lock up"))
    assert "'lock', which locked() of the function of the operator 'lock up'" in text


def test_what_a_key_selector_uses_is_named():
    lock = threading.Lock()
    text = _refusal(source(environment()).key_by(lambda value: (lock, value)).reduce(max).name("keyed"))
    assert "'lock', which <lambda>() of what the operator 'keyed' is partitioned by" in text


def test_job_parameters_are_named():
    text = _refusal(source(environment()).map(str), job_parameters={"lock": LOCK})
    assert text.startswith("What the program sets for all operators.job_parameters['lock'] (of type lock)")


@pytest.mark.parametrize("value", [1, [LOCK.__class__], {"a": (str, len)}, lambda: 1])
def test_nothing_is_found_in_what_can_travel(value):
    assert unpicklable(value, "it") is None


def test_a_path_through_a_circle_ends():
    value = {"lock": LOCK}
    value["self"] = value
    assert unpicklable(value, "it") == "it['lock'] (of type lock)"


def test_classes_of_the_executed_file_come_along_and_are_found_by_name(monkeypatch):
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    body = """
import threading
from dataclasses import dataclass

@dataclass
class Point:
    x: int

class Unused:
    lock = threading.Lock()

def double(point):
    return Point(2 * point.x)
"""
    exec(compile(body, "program.py", "exec"), vars(main))
    bound = program(source(environment()).map(lambda value: main_double(value)))
    assert set(bound.main) == {"Point"}
    data = bound.to_bytes()
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    read = BoundProgram.from_bytes(data)
    assert sys.modules["__main__"].Point is read.main["Point"]
    assert read.main["Point"].__module__ == "__main__"


def test_functions_see_the_command_line_of_the_program(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", ["program.py", "--limit", "7"])
    data = program(source(environment()).map(lambda value: [value, *sys.argv])).to_bytes()
    monkeypatch.setattr(sys, "argv", ["process", "24", "31838"])
    run, _ = begin(BoundProgram.from_bytes(data), now_ms=0)
    assert rows(run.step(1, [splits(1), elements([1])])) == [("[1, 'program.py', '--limit', '7']",)]


def main_double(value):
    return value * 2


def test_a_program_that_travelled_runs():
    data = program(source(environment()).map(lambda value: Pair(value, value))).to_bytes()
    before = sys.modules["__main__"]
    try:
        run, _ = begin(BoundProgram.from_bytes(data), now_ms=0)
        assert rows(run.step(1, [splits(1), elements([1])])) == [("Pair(one=1, other=1)",)]
    finally:
        sys.modules["__main__"] = before


@dataclass
class Pair:
    one: int
    other: int
