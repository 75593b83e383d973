"""Stream programs are executed in a process of their own, and whatever goes wrong there is told with its place."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_pipelines.compiler.stream_binding import BoundStreams, bind_streams
from airflow_pipelines.program.messages import ProgramErrors, ProgramMessage
from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.program.spans import Span
from airflow_pipelines.program.streams import (
    RelationInput,
    RelationOutput,
    StreamProgram,
    StreamRestarts,
    StreamRun,
    StreamSource,
    StreamState,
)
from airflow_pipelines.streams.worker.bound import BoundProgram

pytestmark = pytest.mark.processes

BEGIN = """\
from airflow_pipelines.datastream import *
from airflow_pipelines.datastream.functions import *
from airflow_pipelines.datastream.state import *
from airflow_pipelines.datastream.window import *

env = StreamExecutionEnvironment.get_execution_environment()
stream = env.from_collection([1, 2, 3])
"""
END = "stream.print()\nenv.execute()\n"


def bound(text: str, limit_s: float = 60, **modules: str) -> BoundStreams:
    others = (SourceFile(f"{name}.py", module) for name, module in modules.items())
    return bind_streams((SourceFile("program.py", text), *others), limit_s=limit_s)


def program(text: str, **modules: str) -> StreamProgram:
    return bound(text, **modules).program


def error(text: str, limit_s: float = 60, **modules: str) -> ProgramMessage:
    with pytest.raises(ProgramErrors) as caught:
        bound(text, limit_s, **modules)
    (message,) = caught.value.messages
    return message


@pytest.mark.core
def test_what_a_program_consists_of() -> None:
    found = program(
        BEGIN
        + """
class Count(KeyedProcessFunction):
    def open(self, context):
        self.value = context.get_state(ValueStateDescriptor("value", Types.LONG()))
        descriptor = MapStateDescriptor("map", Types.STRING(), Types.LONG())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(5)).build())
        self.map = context.get_map_state(descriptor)

    def process_element(self, value, context):
        yield value

orders = env.from_relation("Orders", changes=True).uid("orders")
counted = stream.key_by(lambda x: x % 2, Types.INT()).process(Count()).uid("count").set_max_parallelism(64)
counted.union(orders.map(lambda row: row.id)).to_relation("Counts", {"n": Types.INT()}, primary_key="n").uid("out")
counted.to_relation('"Log"', "n INT").name("log")
env.execute("counting")
"""
    )
    assert found.name == "counting"
    assert [(each.uid, each.kind, each.inputs, each.is_keyed) for each in found.operators] == [
        ("Source: Collection Source#1", "Data Source", (), False),
        ("orders", "Data Source", (), False),
        ("Map#1", "Map", ("orders",), False),
        ("count", "Keyed Process", ("Source: Collection Source#1",), True),
        ("log#1", "Data Sink", ("count",), False),
        ("out", "Data Sink", ("count", "Map#1"), False),
    ]
    count = found.operators[3]
    assert (count.key_type, count.max_parallelism) == ("Types.INT()", 64)
    assert count.states == (
        StreamState("map", "map", "Types.STRING(), Types.LONG()", "5000 ms"),
        StreamState("value", "value", "Types.LONG()"),
    )
    assert found.sources == (
        StreamSource("Source: Collection Source#1", "Source: Collection Source", "CollectionSource", is_bounded=True),
    )
    assert found.inputs == (RelationInput("orders", "orders", with_changes=True),)
    assert found.outputs == (
        RelationOutput("log#1", "Log", (("n", "INT"),)),
        RelationOutput("out", "counts", (("n", "INTEGER"),), ("n",)),
    )
    assert '"nodes"' in found.execution_plan
    assert len({each.fingerprint for each in found.operators}) == len(found.operators)


def read(plan: bytes, monkeypatch: pytest.MonkeyPatch) -> BoundProgram:
    # A program brings its own main module along.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    return BoundProgram.from_bytes(plan)


@pytest.mark.core
def test_the_plan_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(program(BEGIN + "stream.map(lambda x: 2 * x).print()\nenv.execute()\n").plan, monkeypatch)
    names = [step.name for chain in found.plan.chains for step in chain.steps]
    assert names == ["Source: Collection Source", "Map", "Sink: Print to Std. Out"]


@pytest.mark.core
@pytest.mark.parametrize(
    ("code", "states"),
    [
        ("stream.map(lambda x: x)", ()),
        ("stream.key_by(lambda x: x).map(lambda x: x)", ()),
        ("stream.key_by(lambda x: x).reduce(lambda x, y: x + y)", (StreamState("reduce", "reducing"),)),
        (
            "stream.key_by(lambda x: x).window(TumblingProcessingTimeWindows.of(Time.seconds(1))).reduce(lambda x, y: x)",
            (StreamState("window/contents", "reducing"),),
        ),
        (
            "stream.key_by(lambda x: x).window(ProcessingTimeSessionWindows.with_gap(Time.seconds(1))).apply(Windowed())",
            (
                StreamState("own", "list"),
                StreamState("window/contents", "list", "windows that merge"),
                StreamState("window/merged", "map"),
            ),
        ),
        (
            "stream.key_by(lambda x: x).count_window(3).reduce(lambda x, y: x)",
            (StreamState("trigger/count", "reducing"), StreamState("window/contents", "reducing")),
        ),
        ("stream.key_by(lambda x: x).window(TumblingProcessingTimeWindows.of(Time.seconds(1))).process(PerWindow())", None),
        ("stream.key_by(lambda x: x).process(Lazy())", None),
        ("stream.key_by(lambda x: x).process(Failing())", None),
        ("stream.key_by(lambda x: x).process(Slow())", None),
    ],
)  # fmt: skip
def test_states(code: str, states: tuple[StreamState, ...] | None) -> None:
    text = """
import time

import airflow_pipelines.streams.graph.kept_states as kept
kept.kept_states.__defaults__ = (0.5,)

class Windowed(WindowFunction):
    def open(self, context):
        context.get_list_state(ListStateDescriptor("own"))
    def apply(self, key, window, inputs):
        yield key

class PerWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        context.global_state().get_state(ValueStateDescriptor("asked for later"))
        yield key

class Lazy(KeyedProcessFunction):
    def open(self, context):
        self.context = context
    def process_element(self, value, context):
        self.context.get_state(ValueStateDescriptor("asked for later"))
        yield value

class Failing(KeyedProcessFunction):
    def open(self, context):
        context.get_state(ValueStateDescriptor("asked for"))
        raise OSError("there is no such database")
    def process_element(self, value, context):
        yield value

class Slow(Failing):
    def open(self, context):
        time.sleep(60)
"""
    found = program(f"{BEGIN}{text}\n{code}.uid('it').print()\nenv.execute()\n")
    assert next(each.states for each in found.operators if each.uid == "it") == states


@pytest.mark.core
def test_states_that_are_not_known_are_a_warning() -> None:
    text = """
class Needs(KeyedProcessFunction):
    def open(self, context):
        import no_such_package
    def process_element(self, value, context):
        yield value

stream.key_by(lambda x: x).process(Needs()).name("Ask").print()
env.execute()
"""
    (warning,) = bind_streams((SourceFile("program.py", BEGIN + text),)).warnings
    assert warning.warning
    assert "the operator 'Ask' are not known before it runs, because open() raised ModuleNotFoundError" in warning.message
    assert "drops none of them" in warning.message


@pytest.mark.core
def test_functions_are_closed_again_and_do_not_keep_what_they_opened() -> None:
    text = """
class Opens(KeyedProcessFunction):
    def open(self, context):
        self.name = "opened"
        open("calls", "a").write("open\\n")
    def close(self):
        open("calls", "a").write(f"close {self.name}\\n")
    def process_element(self, value, context):
        yield value

function = Opens()
stream.key_by(lambda x: x).process(function).print()
env.execute()
assert open("calls").read() == "open\\nclose opened\\n"
assert not hasattr(function, "name")
"""
    assert program(BEGIN + text).operators


def test_fingerprints_are_the_same_in_each_run_and_follow_the_code() -> None:
    text = (
        BEGIN + "import helper\n"
        "stream.map(helper.double).uid('a').map(lambda x: x in {'x', 'y', 'z'}).uid('b').print().uid('c')\nenv.execute()\n"
    )
    helper = "def double(x): return 2 * x\n"

    def fingerprints(main: str, module: str) -> dict[str, str]:
        return {each.uid: each.fingerprint for each in program(main, helper=module).operators}

    first = fingerprints(text, helper)
    assert fingerprints("# moved\n\n" + text.replace("lambda x: x in", "lambda x:  x  in"), "\n\n" + helper) == first
    changed = fingerprints(text, helper.replace("2", "3"))
    assert {uid for uid, value in changed.items() if first[uid] != value} == {"a"}


@pytest.mark.core
def test_the_file_that_is_executed_is_the_main_module_and_finds_the_others() -> None:
    text = """
import sys
from pathlib import Path
import package.inner
assert __name__ == "__main__"
assert sys.argv == ["sub/program.py"]
assert Path("data.txt").read_bytes() == b"some\\r\\ntext"
assert package.inner.X == 1
"""
    files = (
        SourceFile("sub/program.py", BEGIN + text + END),
        SourceFile("package/__init__.py", ""),
        SourceFile("package/inner.py", "X = 1"),
        SourceFile("data.txt", "some\r\ntext"),
        SourceFile("json.py", "raise RuntimeError('not the standard one')"),
    )
    assert bind_streams(files).program.operators


@pytest.mark.core
def test_what_follows_execute_is_executed_as_well() -> None:
    text = (
        BEGIN + "stream.print()\nresult = env.execute('x')\nassert result.get_net_runtime() == 0\n"
        "assert result.get_accumulator_result('n') is None\n"
    )
    assert program(text).name == "x"


@pytest.mark.core
def test_execute_async_binds_too() -> None:
    text = BEGIN + "stream.print()\nclient = env.execute_async('x')\nassert client.get_job_status().result().name == 'CREATED'\n"
    assert program(text).name == "x"


@pytest.mark.core
def test_an_error_has_its_place_and_the_traceback() -> None:
    message = error(BEGIN + "import helper\nhelper.fail(1)\n" + END, helper="def fail(x):\n    return x / 0  # why\n")
    assert message.file == "helper.py"
    assert message.span == Span(2, 12, 2, 16)
    assert "    2|    return x / 0  # why" in message.snippet
    assert message.message.startswith("ZeroDivisionError: division by zero")
    assert 'File "program.py", line 9, in <module>' in message.message
    assert 'File "helper.py", line 2, in fail' in message.message
    assert "binding_process" not in message.message
    assert str(message).startswith("helper.py: line 2, column 12: ")


@pytest.mark.core
def test_an_error_of_this_package_is_placed_at_the_call() -> None:
    message = error(BEGIN + "stream.key_by(\n    lambda x: x\n).assign_timestamps_and_watermarks(None)\n")
    assert (message.file, message.span and message.span.start_line) == ("program.py", 10)
    assert message.message.startswith("assign_timestamps_and_watermarks is not possible on a stream with keys")


@pytest.mark.core
def test_a_syntax_error_has_its_place() -> None:
    message = error("x = 1\ny = = 2\n")
    assert (message.file, message.error_type, message.span) == ("program.py", "Error parsing Python", Span(2, 5, 2, 5))
    assert "invalid syntax" in message.message
    assert "Traceback" not in message.message


@pytest.mark.core
def test_a_syntax_error_of_a_module() -> None:
    message = error("import helper\n", helper="def f(:\n  pass\n")
    assert (message.file, message.span and message.span.start_line) == ("helper.py", 1)


@pytest.mark.core
def test_a_module_that_is_not_there() -> None:
    message = error("import no_such_module.inner\n" + BEGIN + END, helper="")
    assert (message.file, message.span and message.span.start_line) == ("program.py", 1)
    assert "No module named 'no_such_module'" in message.message
    assert "Add no_such_module.py to the files of the program" in message.message
    assert "they are: program.py, helper.py" in message.message
    assert "set_python_requirements()" in message.message


@pytest.mark.core
def test_a_module_of_its_own_requirements_is_imported_in_functions() -> None:
    program = "import no_such_module\n" + BEGIN + "env.set_python_requirements('requirements.txt')\n" + END
    message = error(program, helper="").message
    assert "executed before what set_python_requirements() names is installed" in message
    assert "Import no_such_module in the functions that use it" in message


@pytest.mark.core
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n", "without executing anything: call execute()"),
        (BEGIN + "stream.print()\n", "without executing anything"),
        ("import sys\nsys.exit()\n", "without executing anything"),
        (BEGIN + END + END, r"calls execute\(\) 2 times, at program.py:9 and at program.py:11"),
        (BEGIN + END + "env.execute()\n", "calls execute\\(\\) 2 times"),
        (BEGIN + END + "other = StreamExecutionEnvironment.get_execution_environment()\n"
            "other.from_collection([1]).print()\nother.execute()\n",
         r"calls execute\(\) 2 times, at program.py:9 and at program.py:12"),
        (BEGIN + END + "try:\n    env.execute()\nexcept Exception:\n    pass\n", r"calls execute\(\) 2 times"),
        ("import sys\nsys.exit('no database')\n", r"ended itself with sys.exit\('no database'\)"),
        (BEGIN + END + "import sys\nsys.exit(3)\n", r"sys.exit\(3\)"),
        ("import os\nos._exit(7)\n", "ended with exit code 7"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
            "", "ended by SIGKILL, as the system ends one that takes too much memory"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "ended by SIGSEGV"),
        (BEGIN + "stream.execute_and_collect()\n", "waits for the results.*to_relation"),
        (BEGIN + "stream.print()\nenv.execute_async().get_job_execution_result().result()\n", "waits for the results"),
        (BEGIN + "stream.print()\nenv.execute_async().cancel()\n", "Ask the pipeline instead.*from_checkpoint"),
        (BEGIN + "stream.print()\nenv.execute_async().trigger_savepoint('/tmp/x')\n", "trigger_savepoint.*checkpoint\\(\\)"),
        (BEGIN + "stream.print()\nenv.execute_async().stop_with_savepoint(False)\n", "stop_with_savepoint.*stop\\(force=False\\)"),
        (BEGIN.replace("_environment()\n", "_environment(Configuration().set_string('execution.savepoint.path', '/a'))\n") + END,
         "execution.savepoint.path is '/a'.*from_checkpoint"),
        (BEGIN + "env.execute()\n", "There is nothing to execute"),
        (BEGIN + "import threading\nlock = threading.Lock()\nstream.map(lambda x: (lock, x)).print()\nenv.execute()\n",
         "'lock', which .* uses .of type lock. cannot be brought to the process"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd\n", "Odd"),
    ],
)  # fmt: skip
def test_what_cannot_be_deployed(text: str, expected: str) -> None:
    with pytest.raises(ProgramErrors, match=f"(?s){expected}"):
        bound(text)


@pytest.mark.core
def test_a_program_may_end_itself_after_it_was_executed() -> None:
    assert program(BEGIN + END + "import sys\nsys.exit(0)\n").operators


def test_a_program_that_does_not_end_has_a_time_limit() -> None:
    began = time.monotonic()
    message = error("print('waiting', flush=True)\nwhile True: pass\n", limit_s=2)
    assert "has not come to its end within 2 s" in message.message
    assert "It printed:\nwaiting" in message.message
    assert time.monotonic() - began < 20


@pytest.mark.core
def test_a_program_that_waits_for_a_processor_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.common.cpu_time.cpu_time", lambda _: 1.0)
    monkeypatch.setattr("airflow_pipelines.common.cpu_time.wants_cpu", lambda _: True)
    assert bound("import time\ntime.sleep(0.5)\n" + BEGIN + END, limit_s=0.2).program.operators


@pytest.mark.core
def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    text = f"""
import pathlib, subprocess
pathlib.Path({str(pid)!r}).write_text(str(subprocess.Popen(['sleep', '600']).pid))
"""
    assert program(text + BEGIN + END).operators
    _wait_until(lambda: not Path(f"/proc/{pid.read_text()}").exists() or _is_zombie(pid.read_text()))


@pytest.mark.core
def test_threads_do_not_hold_up_the_end() -> None:
    assert program("import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n" + BEGIN + END).operators


@pytest.mark.core
def test_what_a_program_prints_is_shown_with_an_error() -> None:
    assert error("import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n1 / 0\n").message.endswith(
        "It printed:\nto stdout\nto stderr"
    )


@pytest.mark.core
def test_very_much_output_is_cut() -> None:
    assert len(error("print('x' * 5_000_000)\n1 / 0\n").message) < 30_000


@pytest.mark.core
def test_a_program_does_not_see_the_secrets_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    text = (
        "import os\nassert 'DATABASE_PASSWORD' not in os.environ\nassert os.environ['TZ'] == 'Europe/Berlin'\n"
        "assert os.environ['HOME'] != {!r}\n"
    )
    assert program(text.format(os.environ["HOME"]) + BEGIN + END).operators


@pytest.mark.core
def test_batch_mode_is_told_to_have_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    found = bound(BEGIN + "env.set_runtime_mode(RuntimeExecutionMode.BATCH)\n" + END)
    (warning,) = found.warnings
    assert warning.warning
    assert "STREAMING mode" in warning.message
    assert not read(found.program.plan, monkeypatch).settings.is_batch
    assert bound(BEGIN + END).warnings == ()


@pytest.mark.core
@pytest.mark.parametrize("path", ["/etc/program.py", "../program.py", "a/../../program.py", ""])
def test_files_stay_in_the_folder_of_the_program(path: str) -> None:
    with pytest.raises(ProgramErrors, match="leads out of the program's folder"):
        bind_streams((SourceFile(path, BEGIN + END),))


@pytest.mark.core
def test_what_a_program_needs_of_python() -> None:
    text = "env.set_python_requirements('requirements.txt')\nenv.add_python_file('lib')\n"
    files = (
        SourceFile("program.py", BEGIN + text + END),
        SourceFile("requirements.txt", "six==1.16.0\n"),
        SourceFile("lib/more.py", "X = 1"),
    )
    assert bind_streams(files).program.dependencies == {
        "requirements": {"text": "six==1.16.0\n", "constraints": "", "cached_packages": None},
        "files": ["lib"],
    }


def _is_zombie(pid: str) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.core
def test_a_program_finds_its_arguments_on_its_command_line() -> None:
    text = """
import argparse
from airflow_pipelines.datastream import StreamExecutionEnvironment

parser = argparse.ArgumentParser()
parser.add_argument("--name", default="nobody")
name = parser.parse_args().name
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).print()
env.execute(name)
"""
    files = (SourceFile("program.py", text),)
    assert bind_streams(files).program.name == "nobody"
    assert bind_streams(files, ("--name=-x 'ä'",)).program.name == "-x 'ä'"


@pytest.mark.core
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", StreamRun()),
        ("env.set_restart_strategy(RestartStrategies.no_restart())", StreamRun()),
        ("env.set_restart_strategy(RestartStrategies.fall_back_restart())", StreamRun()),
        ("env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1500))", StreamRun(StreamRestarts(3, 1500))),
        (
            "env.set_restart_strategy(RestartStrategies.failure_rate_restart(2, 60000, 10))",
            StreamRun(StreamRestarts(2, 10, 60_000)),
        ),
        ("env.enable_checkpointing(5000)", StreamRun(None, 5000)),
        (
            "env.enable_checkpointing(5000); env.get_checkpoint_config().set_min_pause_between_checkpoints(9000)",
            StreamRun(None, 9000),
        ),
    ],
)
def test_what_a_program_sets_for_its_run(settings: str, expected: StreamRun) -> None:
    found = program(f"{BEGIN}from airflow_pipelines.datastream.common import RestartStrategies\n{settings}\n{END}")
    assert found.run == expected
