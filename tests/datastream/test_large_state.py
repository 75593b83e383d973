"""Programs whose state does not fit into the memory that they may use."""

import pytest

from airflow_pipelines.datastream import Configuration, KeyedProcessFunction, StreamExecutionEnvironment, StreamProgramError
from airflow_pipelines.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.number = runtime_context.get_state(ValueStateDescriptor("number"))

    def process_element(self, value, ctx):
        self.number.update((self.number.value() or 0) + 1)
        yield ctx.get_current_key(), self.number.value()


KEYS = 9_973  # more than go to rest at once


def counted(settings):
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    stream = env.from_collection(range(30_000)).key_by(lambda value: value % KEYS).process(Count()).name("count")
    return dict(stream.execute_and_collect())


def test_keys_go_to_a_file_in_the_folder_of_the_setting_and_come_back(tmp_path):
    settings = {"execution.state.hot-keys": "10", "execution.state.page-memory": "1000", "io.tmp.dirs": f"{tmp_path},/other"}
    assert counted(settings) == {key: len(range(key, 30_000, KEYS)) for key in range(KEYS)}
    assert list(tmp_path.iterdir()) == []


def test_a_program_with_little_state_never_opens_a_file(tmp_path):
    assert len(counted({"io.tmp.dirs": f"{tmp_path}/missing"})) == KEYS


def test_a_folder_that_cannot_be_written_is_named_with_the_operator(tmp_path):
    settings = {"execution.state.hot-memory": "0", "execution.state.page-memory": "0", "io.tmp.dirs": f"{tmp_path}/missing"}
    with pytest.raises(StreamProgramError, match=r"cannot be read or written in .*missing: No such file") as error:
        counted(settings)
    assert any("count" in note for note in error.value.__notes__)


@pytest.mark.parametrize("setting", ["hot-keys", "hot-memory", "page-memory"])
def test_limits_below_zero_are_refused(setting):
    with pytest.raises(StreamProgramError, match=rf"execution.state.{setting} is -1: it must be at least 0"):
        counted({f"execution.state.{setting}": "-1"})
