"""Programs of every kind, deployed as one pipeline: stopped, killed and started again in the middle, they give what one run in one
step gives.
"""

from __future__ import annotations

import inspect
import os
import random
import re
import signal
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import tests.datastream.any_cut_programs
import tests.datastream.programs
from airflow_pipelines import Pipeline, PipelineBuilder, PipelineClient, PipelineFailedError, PipelineStatus
from tests.datastream.any_cut_programs import PROGRAMS
from tests.datastream.test_any_cut import Run
from tests.fixtures.sdk import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

MAIN = """
import sys
import time
from ast import literal_eval
from pathlib import Path

from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.datastream.functions import SourceFunction
from tests.datastream.any_cut_programs import PROGRAMS

FOLDER, NAMES = Path(sys.argv[1]), sys.argv[2:]


class Pieces(SourceFunction):
    '''Elements of files that appear one after the other; an empty one is the end.'''

    is_bounded = True

    def __init__(self, name):
        self.name = name
        self.place = (0, 0)

    def run(self, ctx):
        while True:
            number, first = self.place
            path = FOLDER / f"{self.name}-{number}"
            if not path.exists():
                time.sleep(0.01)
                yield None
                continue
            lines = path.read_text().splitlines()
            if not lines:
                return
            for at, line in enumerate(lines[first:], first + 1):
                self.place = (number, at) if at < len(lines) else (number + 1, 0)
                yield literal_eval(line)

    def snapshot_state(self):
        return self.place

    def restore_state(self, state):
        self.place = state


class Given:
    '''An environment whose collections are streams that are there already.'''

    @staticmethod
    def from_collection(stream):
        return stream


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
one, two = (env.add_source(Pieces(name), name).uid(name) for name in ("one", "two"))
one.union(two).map(repr).to_relation("seen", {"text": "STRING"}).uid("seen")
for number, name in enumerate(NAMES):
    PROGRAMS[name](Given, one, two).map(repr).to_relation(f"output_{number}", {"text": "STRING"}).uid(f"output_{number}")
env.execute()
"""
Element = tuple[str, int, int]


class Deployed:
    """A pipeline of all programs, and the files that it reads."""

    def __init__(self, client: PipelineClient, name: str, folder: Path) -> None:
        self._folder = folder
        self._numbers = Counter[str]()
        modules = {f"{'/'.join(module.__name__.split('.'))}.py": _text(module) for module in _MODULES}
        packages = {"tests/__init__.py": "", "tests/datastream/__init__.py": ""}
        builder = PipelineBuilder(
            client, name, stream_program={"main.py": MAIN, **packages, **modules}, stream_arguments=[str(folder), *PROGRAMS]
        )
        self.pipeline: Pipeline = builder.create(timeout_s=120)
        self.pipeline.start(timeout_s=120)

    def give(self, name: str, elements: list[Element]) -> None:
        """Show another file of a source; none are its end."""
        path = self._folder / f"{name}-{self._numbers[name]}"
        self._numbers[name] += 1
        hidden = path.with_suffix(".hidden")
        hidden.write_text("".join(f"{element!r}\n" for element in elements))
        hidden.rename(path)

    def wait_for(self, elements: int) -> None:
        """Wait until so many elements have passed through the program."""
        eventually(lambda: list(self.pipeline.query("select count(*) as n from seen")) == [{"n": elements}], 60)

    def outputs(self) -> dict[str, Counter[str]]:
        """What each program has given."""
        parts = (f"select {number} as program, text from output_{number}" for number in range(len(PROGRAMS)))
        found: dict[str, Counter[str]] = {name: Counter() for name in PROGRAMS}
        names = list(PROGRAMS)
        for row in self.pipeline.query(" union all ".join(parts)):
            found[names[row["program"]]][row["text"]] += 1
        return found

    def kill_worker(self) -> None:
        """Kill the process that runs the program, and have something come in for it."""
        log: list[str] = []
        for line in self.pipeline.logs():
            log += re.findall(r"process (\d+) runs it", line)
            if "now Running" in line:
                break
        os.kill(int(log[-1]), signal.SIGKILL)
        with pytest.raises(PipelineFailedError, match="SIGKILL"):
            self.pipeline.wait_for_completion(force_stop=False, timeout_s=60)
        assert self.pipeline.status() is PipelineStatus.STOPPED


_MODULES = (tests.datastream.any_cut_programs, tests.datastream.programs)


def _text(module: ModuleType) -> str:
    return inspect.getsource(module)


@pytest.mark.parametrize("middle", ["nothing", "graceful", "forced", "killed"])
def test_a_pipeline_gives_what_one_step_gives(
    embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path, middle: str
) -> None:
    dice = random.Random(middle)
    inputs = {name: [(dice.choice("abcd"), dice.randint(0, 60), dice.randint(0, 9)) for _ in range(60)] for name in ("one", "two")}
    deployed = Deployed(embedded_client, pipeline_name, tmp_path)
    pipeline = deployed.pipeline

    def give(start: int, end: int) -> None:
        while start < end:
            size = dice.randint(1, 7)
            for name, elements in inputs.items():
                deployed.give(name, elements[start : min(start + size, end)])
            start += size

    give(0, 20)
    deployed.wait_for(40)
    if middle == "forced":
        pipeline.checkpoint(wait=True, timeout_s=60)
    give(20, 40)
    deployed.wait_for(80)
    if middle == "graceful":
        pipeline.stop(force=False, timeout_s=60)
    elif middle == "forced":
        pipeline.stop(force=True, timeout_s=60)
    elif middle == "killed":
        give(40, 45)
        deployed.kill_worker()
    if middle != "nothing":
        pipeline.start(timeout_s=120)
    give(45 if middle == "killed" else 40, 60)
    for name in inputs:
        deployed.give(name, [])
    pipeline.wait_for_completion(force_stop=False, timeout_s=60)

    found = deployed.outputs()
    for name, build in PROGRAMS.items():
        expected = Counter(map(repr, Run(build, tuple(inputs.values()), 1).to_the_end([])))
        assert expected, f"{name}: it would be no difference if it did nothing"
        assert found[name] == expected, name
