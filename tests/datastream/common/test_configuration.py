from __future__ import annotations

import pytest

from airflow_pipelines.datastream.common.configuration import Configuration


def test_settings_are_read_as_the_type_that_is_asked_for() -> None:
    settings = (
        Configuration().set_string("a", "5").set_boolean("b", True).set_integer("c", 7).set_float("d", 0.5).set_bytearray("e", b"x")
    )
    assert (settings.get_integer("a", 0), settings.get_float("a", 0.0), settings.get_string("c")) == (5, 5.0, "7")
    assert (settings.get_boolean("b", False), settings.get_string("b"), settings.get_bytearray("e")) == (
        True,
        "true",
        bytearray(b"x"),
    )
    assert (settings.get_string("z"), settings.get_integer("z", 3), settings.get_boolean("z", True)) == (None, 3, True)
    assert settings.to_dict() == {"a": "5", "b": "true", "c": "7", "d": "0.5", "e": "x"}


def test_settings_are_added_and_removed() -> None:
    settings = Configuration({"a": 1})
    settings.add_all(Configuration({"b": 2}), "p.")
    assert settings.key_set() == {"a", "p.b"}
    assert (settings.remove_config("a"), settings.remove_config("a"), settings.contains_key("a")) == (True, False, False)
    target = {"x": 0}
    settings.add_all_to_dict(target)
    assert target == {"x": 0, "p.b": 2}


def test_says_what_a_setting_is() -> None:
    settings = Configuration({"a": "yes"})
    with pytest.raises(ValueError, match="'a' is 'yes', which is neither true nor false"):
        settings.get_boolean("a", False)
    with pytest.raises(ValueError, match="which is no int"):
        settings.get_integer("a", 1)
    with pytest.raises(ValueError, match="which is no number"):
        settings.get_float("a", 1)
    with pytest.raises(TypeError, match="not set as bytes"):
        settings.get_bytearray("a")
    with pytest.raises(TypeError, match="takes an int, not '5'"):
        settings.set_integer("a", "5")  # type: ignore[arg-type]


def test_configurations_are_compared_and_hashed_by_their_settings() -> None:
    one, same, other = Configuration({"a": "1", "b": [2]}), Configuration().set_string("a", "1"), Configuration({"a": "2"})
    assert one != same
    same = Configuration({**{"b": [2]}, "a": "1"})
    assert (one == same, hash(one) == hash(same), one == other, one == "a") == (True, True, False, False)
    assert {one: "first"}[same] == "first"
    assert len({one, same, other, Configuration({"a": True}), Configuration({"a": 1})}) == 3
