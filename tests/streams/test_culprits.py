"""What in a value cannot be copied is found by the path to it, whatever refers to what in there."""

import copy
import pickle
import threading
from types import SimpleNamespace

from airflow_pipelines.streams.culprits import culprit


def test_the_path_leads_through_dicts_items_and_attributes() -> None:
    lock = threading.Lock()
    value = SimpleNamespace(client={"a": [1, lock]}, fine=[1])
    assert culprit(value, copy.deepcopy) == (".client['a'][1]", lock)


def test_a_value_that_is_itself_the_culprit_has_no_path() -> None:
    lock = threading.Lock()
    assert culprit(lock, pickle.dumps) == ("", lock)


def test_a_value_that_refers_to_itself_is_looked_at_once() -> None:
    value = SimpleNamespace()
    value.me, value.lock = value, threading.Lock()
    assert culprit(value, copy.deepcopy) == (".lock", value.lock)


def test_a_ring_of_values_without_a_culprit_of_its_own_ends_the_search() -> None:
    first, second = SimpleNamespace(), SimpleNamespace()
    first.other, second.other = second, first

    def refuse(value: object) -> None:
        raise TypeError(f"never {value}")

    assert culprit(first, refuse) == (".other", second)


def test_a_long_row_of_values_is_not_followed_for_ever() -> None:
    value: object = threading.Lock()
    for _ in range(100):
        value = [value]
    path, _ = culprit(value, pickle.dumps)
    assert path == "[0]" * 30
