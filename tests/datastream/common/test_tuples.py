from __future__ import annotations

import pickle

import pytest

from airflow_pipelines.datastream.common import tuples
from airflow_pipelines.datastream.common.tuples import Tuple2


def test_is_a_tuple_with_names() -> None:
    pair = Tuple2("a", 1)
    assert pair == ("a", 1)
    assert (pair.f0, pair.f1, pair.get_field(1), pair.get_arity()) == ("a", 1, 1, 2)
    assert pickle.loads(pickle.dumps(pair)).f1 == 1
    with pytest.raises(AttributeError, match="its fields are f0 to f1"):
        _ = pair.f2
    with pytest.raises(TypeError, match="Tuple2 takes 2 values, not 3"):
        Tuple2(1, 2, 3)


def test_there_is_a_class_for_each_number_of_fields() -> None:
    for arity in range(26):
        assert getattr(tuples, f"Tuple{arity}")(*range(arity)) == tuple(range(arity))
