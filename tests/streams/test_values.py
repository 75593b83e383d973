"""The value that one operator gives to the next shares nothing mutable with it, whatever it is made of."""

from __future__ import annotations

import array
import collections
import copy
import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import pickle
import re
import threading
import types
import zoneinfo
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.datastream.common import Row
from airflow_pipelines.datastream.common.row import RowKind, fields_of
from airflow_pipelines.streams.values import ATOMIC, CannotCopyError, isolate, isolate_all

T = TypeVar("T")


class Colour(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: Any
    y: Any = None


class Place(Point):
    """A named tuple with attributes besides its fields."""


@dataclass
class Order:
    id: Any
    lines: Any = None


@dataclass(frozen=True)
class Line:
    fruit: Any
    amount: Any = None


@dataclass(slots=True)
class Slotted:
    id: Any
    note: Any = None


@dataclass(frozen=True, slots=True)
class FrozenSlotted:
    id: Any
    note: Any = None


class Base:
    __slots__ = ("__private", "left")

    def __init__(self, private: Any, left: Any) -> None:
        self.__private = private
        self.left = left

    def private(self) -> Any:
        return self.__private


class Derived(Base):
    __slots__ = ("never_set", "right")


class Mixed(Base):
    """A class with slots and with a ``__dict__``."""


class Box(Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value


class Counted:
    """A class that says itself what is copied."""

    copies = 0

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getstate__(self) -> dict[str, Any]:
        return {"value": self.value}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.loaded = True


class Checked:
    def __new__(cls, value: Any) -> Checked:
        assert value is not None
        return super().__new__(cls)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getnewargs__(self) -> tuple[Any]:
        return (self.value,)


class Labelled(int):
    label: Any


class Failure(Exception):
    detail: Any


def parts(value: Any) -> Iterator[Any]:
    """Yield a value and everything in it."""
    yield value
    if isinstance(value, type | enum.Enum | pathlib.PurePath):
        return
    if isinstance(value, dict):
        inner: Any = [*value.keys(), *value.values()]
    elif isinstance(value, Row):
        inner = fields_of(value)[1]
    elif isinstance(value, list | tuple | set | frozenset | collections.deque):
        inner = list(value)
    else:
        inner = []
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    attributes = [getattr(value, name, None) for name in slots if not isinstance(value, Row) and not name.startswith("__")]
    for each in (*inner, *attributes, *getattr(value, "__dict__", {}).values()):
        yield from parts(each)


MUTABLE = (list, dict, set, collections.deque, bytearray, Row, Order, Slotted, Base, Box, Counted, Checked)


def mutable_ids(value: Any) -> set[int]:
    return {id(each) for each in parts(value) if isinstance(each, MUTABLE)}


ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3), st.binary(max_size=3), st.dates(),
    st.decimals(allow_nan=False), st.just(Colour.RED), st.integers().map(Line), st.text(max_size=2).map(Point),
)  # fmt: skip


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists, pairs = st.lists(inner, max_size=3), st.tuples(inner, inner)
    return st.one_of(
        lists,
        lists.map(tuple),
        lists.map(collections.deque),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(collections.OrderedDict),
        lists.map(lambda values: Row(*values)),
        st.tuples(inner, st.sampled_from(RowKind)).map(lambda pair: Row.of([pair[0]], ["field"], pair[1])),
        pairs.map(lambda pair: Order(*pair)),
        pairs.map(lambda pair: Line(*pair)),
        pairs.map(lambda pair: Slotted(*pair)),
        pairs.map(lambda pair: FrozenSlotted(*pair)),
        pairs.map(lambda pair: Point(*pair)),
        st.sets(st.integers(), max_size=3),
        st.frozensets(st.text(max_size=2), max_size=3),
        st.binary(max_size=3).map(bytearray),
    )


VALUES = st.recursive(ATOMS, containers, max_leaves=12)


@given(VALUES)
def test_a_copy_is_equal_and_shares_nothing_mutable(value: Any) -> None:
    before = pickle.dumps(value, 5)
    copied = isolate(value)
    assert copied == value
    assert [type(each) for each in parts(copied)] == [type(each) for each in parts(value)]
    assert not mutable_ids(value) & mutable_ids(copied)
    assert pickle.dumps(value, 5) == before
    assert isolate_all([value, 1])[0] == value


@given(ATOMS)
def test_what_is_immutable_is_not_copied(value: Any) -> None:
    for each in (value, (value, (value, 1)), frozenset([value]), Line(value, (value,)), Point(value, Line(value))):
        assert isolate(each) is each
    values = [value, value]
    assert isolate_all(values) == values


SHARED: Any = [1]


@pytest.mark.parametrize(
    "value",
    [
        collections.defaultdict(list, {"a": [1]}),
        collections.Counter("abca"),
        collections.OrderedDict([("b", [1]), ("a", 2)]),
        collections.deque([[1], 2], maxlen=2),
        types.SimpleNamespace(a=[1]),
        array.array("i", [1, 2]),
        bytearray(b"ab"),
        {("key", Line([].__class__))},
        {1: SHARED, 2: SHARED},
        Derived([1], [2]),
        Mixed([1], [2]),
        Box([1]),
        Counted([1]),
        Checked([1]),
        pathlib.PurePosixPath("/a"),
        ipaddress.ip_address("10.0.0.1"),
        zoneinfo.ZoneInfo("Europe/Berlin"),
        dt.datetime(2024, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        re.compile("a+"),
        np.float64(1.5),
        np.datetime64("2024-01-01"),
        decimal.Decimal("1.50"),
        Colour.RED,
        len,
        Order,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_the_standard_library_and_of_programs(value: Any) -> None:
    expected, copied = copy.deepcopy(value), isolate(value)
    assert type(copied) is type(expected)
    assert pickle.dumps(copied) == pickle.dumps(value)
    assert not mutable_ids(value) & mutable_ids(copied)


def test_arrays() -> None:
    numbers = np.array([1, 2])
    copied = isolate({"numbers": numbers})["numbers"]
    numbers[0] = 7
    assert copied.tolist() == [1, 2]


def test_subclasses_of_immutable_types_keep_their_attributes() -> None:
    labelled, failure, place = Labelled(1), Failure("it broke"), Place(1, [2])
    labelled.label = [1]
    failure.detail = [1]
    place.label = [3]  # type: ignore[attr-defined]
    for value, attribute in ((labelled, "label"), (failure, "detail"), (place, "label")):
        copied = isolate(value)
        assert type(copied) is type(value)
        assert getattr(copied, attribute) == getattr(value, attribute)
        assert getattr(copied, attribute) is not getattr(value, attribute)


def test_objects_say_themselves_how_they_are_copied() -> None:
    assert isolate(Counted([1])).loaded
    assert isolate(Checked([1])).value == [1]


def test_slots_without_a_value_and_private_ones() -> None:
    copied = isolate(Derived([1], 2))
    assert (copied.private(), copied.left) == ([1], 2)
    assert not hasattr(copied, "never_set")


def test_a_part_that_occurs_twice_is_one_part_of_the_copy() -> None:
    part: list[int] = []
    for value in ([part, part], {"a": part, "b": part}, Order(part, part), Row(part, part), Slotted(part, part), (part, part)):
        copied = isolate(value)
        inner = [each for each in parts(copied) if each == [] and isinstance(each, list)]
        assert len({id(each) for each in inner}) == 1
        assert inner[0] is not part


def _in_list() -> tuple[Any, Callable[[Any], Any]]:
    value: list[Any] = []
    value.append(value)
    return value, lambda copied: copied[0]


def _in_dict() -> tuple[Any, Callable[[Any], Any]]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value, lambda copied: copied["self"]


def _in_tuple() -> tuple[Any, Callable[[Any], Any]]:
    inner: list[Any] = []
    value = (inner,)
    inner.append(value)
    return value, lambda copied: copied[0][0]


def _in_object() -> tuple[Any, Callable[[Any], Any]]:
    value = Order(1, [])
    value.lines.append(value)
    return value, lambda copied: copied.lines[0]


def _in_frozen_object() -> tuple[Any, Callable[[Any], Any]]:
    value = Line([])
    value.fruit.append(value)
    return value, lambda copied: copied.fruit[0]


def _in_slots() -> tuple[Any, Callable[[Any], Any]]:
    value = Slotted([])
    value.id.append(value)
    return value, lambda copied: copied.id[0]


@pytest.mark.parametrize("make", [_in_list, _in_dict, _in_tuple, _in_object, _in_frozen_object, _in_slots])
def test_values_that_contain_themselves(make: Callable[[], tuple[Any, Callable[[Any], Any]]]) -> None:
    value, inner = make()
    copied = isolate(value)
    assert copied is not value
    assert inner(copied) is copied


@dataclass
class Client:
    name: str
    lock: Any = field(default_factory=threading.Lock)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([{"client": Client("a")}], r"\[0\]\['client'\]\.lock is of type lock"),
        (Row(Client("a")), "type Row cannot be given on"),
        ((1, [threading.Lock()]), r"\[1\]\[0\] is of type lock"),
        (Slotted(threading.Lock()), "type Slotted cannot be given on"),
        (iter([1]).__class__.__new__, None),
    ],
)
def test_what_cannot_be_copied_is_named(value: Any, path: str | None) -> None:
    if path is None:
        assert isolate(value) is value
        return
    with pytest.raises(CannotCopyError, match=path):
        isolate(value)


def test_classes_within_functions() -> None:
    @dataclass
    class Local:
        values: list[int]

    class WithReduce:
        def __init__(self, values: list[int]) -> None:
            self.values = values

        def __reduce__(self) -> Any:
            return type(self), (self.values,)

    for value in (Local([1]), WithReduce([1])):
        copied = isolate(value)
        assert copied.values == [1]
        assert copied.values is not value.values


def test_a_row_that_is_changed_leaves_its_copy_alone() -> None:
    row = Row(id=1, tags=["a"])
    copied = isolate(row)
    row.id = 2
    row["tags"].append("b")
    row.set_field_names(["a", "b"])
    row.set_row_kind(RowKind.DELETE)
    assert copied == Row(id=1, tags=["a"])


def test_atomic_types_are_immutable() -> None:
    assert not any(hasattr(kind, "__setitem__") or hasattr(kind, "append") for kind in ATOMIC)
