"""Settings by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from airflow_pipelines.datastream.common import checks

_TRUE, _FALSE = "true", "false"
_Number = TypeVar("_Number", int, float)


class Configuration:
    """Settings by name. A value that was set as one type can be read as another if its text allows it.

    :param values: settings to begin with

    >>> from airflow_pipelines.datastream import Configuration, StreamExecutionEnvironment
    >>> config = Configuration({"pipeline.name": "orders"}).set_string("parallelism.default", "4")
    >>> config.get_integer("parallelism.default", 1)
    4
    >>> StreamExecutionEnvironment.get_execution_environment(config).get_parallelism()
    4
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {}
        for key, value in (values or {}).items():
            self._set(key, value)

    def get_string(self, key: str, default_value: str | None = None) -> str | None:
        """Return a setting as text.

        :param key: the name of the setting
        :param default_value: the value if it is not set
        :returns: the text
        """
        value = self._values.get(key)
        return default_value if value is None else _text(value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Set text.

        :param key: name of the setting
        :param value: the text
        :returns: this object
        """
        if not isinstance(value, str):
            raise TypeError(f"set_string of {key!r} takes a str, not {value!r:.60} ({type(value).__name__})")
        return self._set(key, value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """Return a setting as a bool.

        :param key: the name of the setting
        :param default_value: the value if it is not set
        :returns: the bool
        :raises ValueError: if it is neither ``true`` nor ``false``
        """
        value = self._values.get(key)
        if value is None or isinstance(value, bool):
            return default_value if value is None else value
        if _text(value).lower() not in (_TRUE, _FALSE):
            raise ValueError(f"The setting {key!r} is {value!r}, which is neither true nor false")
        return _text(value).lower() == _TRUE

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a bool.

        :param key: name of the setting
        :param value: the bool
        :returns: this object
        """
        return self._set(key, checks.boolean("value", value))

    def get_integer(self, key: str, default_value: int) -> int:
        """Return a setting as an int.

        :param key: the name of the setting
        :param default_value: the value if it is not set
        :returns: the int
        :raises ValueError: if its text is not an int
        """
        return self._number(key, default_value, int, "int")

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set an int.

        :param key: name of the setting
        :param value: the int
        :returns: this object
        """
        return self._set(key, checks.integer("value", value))

    def get_float(self, key: str, default_value: float) -> float:
        """Return a setting as a float.

        :param key: the name of the setting
        :param default_value: the value if it is not set
        :returns: the float
        :raises ValueError: if its text is not a number
        """
        return self._number(key, default_value, float, "number")

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a float.

        :param key: name of the setting
        :param value: the float
        :returns: this object
        """
        return self._set(key, checks.number("value", value))

    def get_bytearray(self, key: str, default_value: bytearray | None = None) -> bytearray | None:
        """Return a setting as bytes.

        :param key: the name of the setting
        :param default_value: the value if it is not set
        :returns: the bytes
        :raises TypeError: if it was not set as bytes
        """
        value = self._values.get(key)
        if value is None:
            return default_value
        if not isinstance(value, bytes):
            raise TypeError(f"The setting {key!r} is {value!r:.60}, which was not set as bytes")
        return bytearray(value)

    def set_bytearray(self, key: str, value: bytes | bytearray) -> Configuration:
        """Set bytes.

        :param key: name of the setting
        :param value: the bytes
        :returns: this object
        """
        if not isinstance(value, (bytes, bytearray)):
            raise TypeError(f"set_bytearray of {key!r} takes bytes, not {value!r:.60} ({type(value).__name__})")
        return self._set(key, bytes(value))

    def key_set(self) -> set[str]:
        """Return the names of all settings.

        :returns: the names
        """
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Return True if a setting is set.

        :param key: name of the setting
        :returns: True if it is set
        """
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Remove a setting.

        :param key: the name of the setting
        :returns: True if it was set
        """
        return self._values.pop(key, None) is not None

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Add all settings of another configuration.

        :param other: the other configuration
        :param prefix: the text to put before each of its names; None for none
        :returns: this object
        """
        for key, value in checks.instance("other", other, Configuration)._values.items():
            self._set((prefix or "") + key, value)
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add all settings to a dict.

        :param target_dict: the dict
        """
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """Return all settings as text.

        :returns: texts by name
        """
        return {key: _text(value) for key, value in self._values.items()}

    def _number(self, key: str, default_value: _Number, parse: Callable[[str], _Number], kind: str) -> _Number:
        value = self._values.get(key)
        if value is None:
            return default_value
        try:
            return parse(_text(value))
        except ValueError:
            raise ValueError(f"The setting {key!r} is {value!r}, which is no {kind}") from None

    def _set(self, key: str, value: Any) -> Configuration:
        self._values[checks.text("key", key)] = value
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        # Of the names alone, since a value need not have a hash. It changes with them, so an object in a set must not be changed.
        return hash(frozenset(self._values))

    def __repr__(self) -> str:
        return f"Configuration({', '.join(sorted(self._values))})"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
