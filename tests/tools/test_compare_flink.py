"""The comparison with the published package, as far as it needs none: its programs run here, and outcomes are told apart."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

import tools.compare_flink.programs  # noqa: F401 (fills the list of cases)
from airflow_pipelines.datastream import Row, RowKind, TimeWindow
from tools.compare_flink.case import CASES, Case, Order, Shape, case, no_input
from tools.compare_flink.inputs import FIXED, events
from tools.compare_flink.outcome import Outcome, Verdict, cause, difference, verdict
from tools.compare_flink.packages import named
from tools.compare_flink.plain import plain, shown
from tools.compare_flink.runner import outcome


def _case(**settings):
    defaults = {"name": "a case", "program": None, "order": Order.EXACT, "shape": Shape.VALUES, "inputs": no_input}
    return Case(**{**defaults, **settings})


def _gave(*results):
    return Outcome("a case", 0, [plain(result) for result in results], None)


FAILED = Outcome("a case", 0, None, "ValueError: no")


@pytest.mark.parametrize("name", list(CASES))
def test_every_program_runs_here(name):
    for number, given in enumerate(CASES[name].inputs(3, 2)):
        found = outcome(named("ours", "thread", 0), CASES[name], number, given)
        if CASES[name].fails:
            assert found.results is None
            assert not (found.error or "").startswith(("AttributeError", "NameError")), "it fails for another reason"
        else:
            assert found.error is None
            assert found.results or "never" in name, "a program without results proves nothing"


def test_a_program_gives_the_same_twice():
    for name in ("state: map", "timers: register later ones", "windows: sessions"):
        one, two = (outcome(named("ours", "thread", 0), CASES[name], 0, FIXED) for _ in range(2))
        assert verdict(CASES[name], one, two) is Verdict.EQUAL


def test_random_inputs_follow_from_the_seed():
    assert events(7, 3) == events(7, 3)
    assert events(7, 3) != events(8, 3)
    assert [len(found) >= 10 for found in events(7, 3)] == [True] * 4


def test_two_cases_cannot_have_one_name():
    with pytest.raises(ValueError, match="state: value"):
        case("state: value")(lambda api, env, given: None)


@pytest.mark.parametrize(
    "value",
    [
        (1, "a", None, True, 1.5),
        [(1, [2])],
        {"b": 1, "a": (2,)},
        b"ab",
        Decimal("1.20"),
        dt.datetime(2021, 2, 3),
        float("nan"),
        Row(name="a", number=1),
        TimeWindow(0, 5),
        {3, 1},
    ],
)
def test_plain_values_survive_json(value):
    assert json.loads(json.dumps(plain(value))) == plain(value)
    assert isinstance(shown(plain(value)), str)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0),
        (1, True),
        (1, "1"),
        ((1, 2), [1, 2]),
        (b"a", bytearray(b"a")),
        (Decimal("1.2"), Decimal("1.20")),
        (Row(1, 2), Row(a=1, b=2)),
        (Row(1), Row.of_kind(RowKind.DELETE, 1)),
        (TimeWindow(0, 5), TimeWindow(0, 6)),
        (0.0, -0.0),
        (None, "None"),
    ],
)
def test_values_that_a_program_tells_apart_are_not_plainly_equal(one, two):
    assert json.dumps(plain(one)) != json.dumps(plain(two))
    assert shown(plain(one)) != shown(plain(two))


def test_the_order_that_counts():
    a1, a2, b = ("a", 1), ("a", 2), ("b", 1)
    both = _gave(a1, b, a2), _gave(b, a1, a2)
    assert verdict(_case(), *both) is Verdict.DIFFERENT
    assert verdict(_case(order=Order.BY_KEY), *both) is Verdict.EQUAL
    turned = _gave(a1, a2), _gave(a2, a1)
    assert verdict(_case(order=Order.BY_KEY), *turned) is Verdict.DIFFERENT
    assert verdict(_case(order=Order.NONE), *turned) is Verdict.EQUAL
    assert verdict(_case(order=Order.NONE), _gave(a1, a1), _gave(a1)) is Verdict.DIFFERENT


def test_a_failure_is_equal_only_where_both_must_fail():
    assert verdict(_case(), FAILED, FAILED) is Verdict.DIFFERENT
    assert verdict(_case(fails=True), FAILED, FAILED) is Verdict.EQUAL
    assert verdict(_case(fails=True), _gave(1), FAILED) is Verdict.DIFFERENT
    assert verdict(_case(fails=True), FAILED, _gave(1)) is Verdict.DIFFERENT


def test_what_is_listed_as_a_difference_must_be_one():
    assert verdict(_case(differs="so"), _gave(1), _gave(2)) is Verdict.DELIBERATE
    assert verdict(_case(differs="so"), _gave(1), _gave(1)) is Verdict.DIFFERENT
    assert verdict(_case(differs="so"), FAILED, _gave(1)) is Verdict.DIFFERENT
    assert verdict(_case(differs="so"), _gave(1), FAILED) is Verdict.DIFFERENT
    assert verdict(_case(only_here="so"), _gave(1), FAILED) is Verdict.ONLY_HERE
    assert verdict(_case(only_here="so"), _gave(1), _gave(1)) is Verdict.DIFFERENT
    assert verdict(_case(only_here="so"), FAILED, FAILED) is Verdict.DIFFERENT


def test_a_difference_shows_what_only_one_has():
    ours, theirs = difference(_gave(("a", 1), ("b", 2)), _gave(("a", 1)))
    assert ours == "  ours:  2 results, only here: ('b', 2)"
    assert theirs == "  Flink: ('a', 1)"
    assert difference(_gave(1), FAILED)[1] == "  Flink: failed with ValueError: no"


def test_the_cause_of_an_error_of_the_jvm():
    text = """Py4JJavaError: An error occurred while calling o1.execute.
: org.apache.flink.runtime.client.JobExecutionException: Job execution failed.
\tat org.apache.flink.A.b(A.java:1)
Caused by: java.lang.RuntimeException: Error received from SDK harness: Traceback (most recent call last):
  File "a.py", line 1, in f
ZeroDivisionError: integer division or modulo by zero

\tat org.apache.flink.A.b(A.java:1)
\t... 3 more
"""
    assert cause(text) == "ZeroDivisionError: integer division or modulo by zero"
    assert cause("Py4JJavaError: x\nCaused by: java.lang.A: y\nCaused by: java.lang.B: z\n\tat q") == "Caused by: java.lang.B: z"
    assert cause("KeyError: 'a'") == "KeyError: 'a'"
