"""Fingerprints of functions: what leaves them as they are, and what changes them."""

from __future__ import annotations

import importlib
import itertools
import linecache
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.streams.graph.fingerprints import OwnCode, fingerprint

_FOLDERS = itertools.count()


class Programs:
    """Imports files as a program's, each time those of another folder under the same names."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def fingerprint(self, main: str, **modules: str) -> str:
        """The fingerprint of ``it`` in the file that is imported first."""
        folder = self._root / str(next(_FOLDERS))
        folder.mkdir()
        texts = {"fp_main": main, **modules}
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text)
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        linecache.clearcache()
        try:
            return fingerprint(importlib.import_module("fp_main").it, OwnCode((folder,)))
        finally:
            sys.path.remove(str(folder))
            for name in texts:
                sys.modules.pop(name, None)


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


PLAIN = """
RATE = 2

def helper(x):
    return x * RATE

def unrelated(x):
    return x - 1

def it(x, low=0):
    y = helper(x)
    return y if y > low else None
"""

SAME: Mapping[str, str] = {
    "again": PLAIN,
    "white space": PLAIN.replace("x * RATE", "( x*RATE )").replace("y if y > low else None", "y  if  y>low  else  None"),
    "lines": PLAIN.replace("return y if y > low else None", "return (\n        y\n        if y > low\n        else None\n    )"),
    "comments": PLAIN.replace("    y = helper(x)", "    # a comment\n    y = helper(x)  # another"),
    "docstring": PLAIN.replace("    y = helper(x)", '    """What it does."""\n    y = helper(x)'),
    "annotations": PLAIN.replace("def it(x, low=0):", "def it(x: int, low: int = 0) -> int | None:"),
    "line numbers": "import os\n\n\n" + PLAIN,
    "another unrelated function": PLAIN.replace("x - 1", "x - 2"),
    "no unrelated function": PLAIN.replace("def unrelated(x):\n    return x - 1\n", ""),
    "order in the file": PLAIN.replace("def helper(x):\n    return x * RATE\n", "") + "\ndef helper(x):\n    return x * RATE\n",
    "another unrelated variable": "OTHER = [1, 2]\n" + PLAIN,
}
OTHER: Mapping[str, str] = {
    "constant": PLAIN.replace("RATE = 2", "RATE = 3"),
    "type of a constant": PLAIN.replace("RATE = 2", "RATE = 2.0"),
    "helper": PLAIN.replace("x * RATE", "x + RATE"),
    "default": PLAIN.replace("low=0", "low=1"),
    "operator": PLAIN.replace("y > low", "y >= low"),
    "text": PLAIN.replace("else None", "else 'None'"),
    "order of statements": PLAIN.replace("    y = helper(x)\n", "    y = 0\n    y = helper(x)\n"),
    "parameter": PLAIN.replace("def it(x, low=0)", "def it(x, *, low=0)"),
    "generator": PLAIN.replace("return y if", "yield y if"),
}


@pytest.mark.parametrize("changed", SAME.values(), ids=SAME.keys())
def test_what_does_not_count(programs: Programs, changed: str) -> None:
    assert programs.fingerprint(changed) == programs.fingerprint(PLAIN)


@pytest.mark.parametrize("changed", OTHER.values(), ids=OTHER.keys())
def test_what_counts(programs: Programs, changed: str) -> None:
    assert changed != PLAIN
    assert programs.fingerprint(changed) != programs.fingerprint(PLAIN)


def test_a_function_of_another_file_counts(programs: Programs) -> None:
    main = "import fp_helper\n\ndef it(x):\n    return fp_helper.total(x)\n"
    helper = "def total(x):\n    return x + one()\n\ndef one():\n    return 1\n\ndef other():\n    return 5\n"
    before = programs.fingerprint(main, fp_helper=helper)
    assert programs.fingerprint(main, fp_helper=helper.replace("return 1", "return 2")) != before
    assert programs.fingerprint(main, fp_helper=helper.replace("return 5", "return 6")) == before
    assert programs.fingerprint(main, fp_helper="# moved down\n\n" + helper) == before


@pytest.mark.parametrize(
    "main",
    [
        "from fp_helper import total\n\ndef it(x):\n    return total(x)\n",
        "from fp_helper import total as it\n",
        "def it(x):\n    from fp_helper import total\n    return total(x)\n",
        "def it(x):\n    import fp_helper\n    return fp_helper.total(x)\n",
        "import fp_helper\n\ndef it(x):\n    helper = fp_helper\n    return helper.total(x)\n",
        "import fp_helper\n\nit = fp_helper.total\n",
        "import fp_helper\n\nit = lambda x: [fp_helper.total(each) for each in x]\n",
        "import fp_helper\n\ndef it(x):\n    def inner(y):\n        return fp_helper.total(y)\n    return inner(x)\n",
        "import functools, fp_helper\n\nit = functools.partial(fp_helper.total, 1)\n",
        "import fp_helper\n\nclass Base:\n    def map(self, x):\n        return fp_helper.total(x)\n\n"
            "class It(Base):\n    pass\n\nit = It()\n",
        "import fp_helper\n\nclass It:\n    def __init__(self):\n        self.f = fp_helper.total\n\nit = It()\n",
        "import fp_helper\n\nclass It:\n    def map(self, x):\n        return fp_helper.total(x)\n\nit = It().map\n",
        "import fp_helper\n\nclass It:\n    @staticmethod\n    def f(x):\n        return fp_helper.total(x)\n\nit = It\n",
        "import fp_helper\n\nclass It:\n    @classmethod\n    def f(cls, x):\n        return fp_helper.total(x)\n\nit = It.f\n",
        "import fp_helper\n\nclass It:\n    @property\n    def f(self):\n        return fp_helper.total(1)\n\nit = It()\n",
        "import functools, fp_helper\n\nclass It:\n    @functools.cached_property\n    def f(self):\n"
            "        return fp_helper.total(1)\n\nit = It()\n",
        "import functools, fp_helper\n\n@functools.lru_cache\ndef it(x):\n    return fp_helper.total(x)\n",
        "import functools, fp_helper\n\ndef twice(f):\n    @functools.wraps(f)\n    def both(x):\n"
            "        return f(f(x))\n    return both\n\n"
        "@twice\ndef it(x):\n    return fp_helper.total(x)\n",
        "import fp_helper\n\nit = {'a': [(fp_helper.total, 1)]}\n",
        "import fp_helper\n\nTABLE = {1: fp_helper.total}\n\ndef it(x):\n    return TABLE[x](x)\n",
        "import dataclasses, fp_helper\n\n@dataclasses.dataclass\nclass It:\n    x: int = 1\n    def f(self):\n"
            "        return fp_helper.total(self.x)\n\n"
        "it = It()\n",
    ],
)  # fmt: skip
def test_functions_are_found_wherever_they_are(programs: Programs, main: str) -> None:
    helper = "def total(x, y=1):\n    return x + y\n"
    before = programs.fingerprint(main, fp_helper=helper)
    assert programs.fingerprint("import sys\n" + main, fp_helper=helper) == before
    assert programs.fingerprint(main, fp_helper=helper.replace("x + y", "x - y")) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("it = lambda x: x + 1", "it = lambda x: x + 2"),
        ("it = (lambda x: x, lambda x: -x)", "it = (lambda x: -x, lambda x: x)"),
        ("it = [lambda x: x + 1, lambda x: x + 2][0]", "it = [lambda x: x + 1, lambda x: x + 2][1]"),
        ("it = (lambda x: lambda y: x + y)(1)", "it = (lambda x: lambda y: x + y)(2)"),
        ("def made(n):\n    return lambda x: x + n\nit = [made(1), made(2)]", "def made(n):\n"
            "    return lambda x: x + n\nit = [made(2), made(1)]"),
        ("import functools\nit = functools.partial(pow, 2)", "import functools\nit = functools.partial(pow, 3)"),
        ("import functools\nit = functools.partial(int, base=2)", "import functools\nit = functools.partial(int, base=8)"),
        ("class It:\n    n = 1\nit = It()", "class It:\n    n = 2\nit = It()"),
        ("class It:\n    pass\nit = It()\nit.n = 1", "class It:\n    pass\nit = It()\nit.n = 2"),
        ("class It:\n    __slots__ = ('n',)\nit = It()\nit.n = 1", "class It:\n    __slots__ = ('n',)\nit = It()\nit.n = 2"),
        ("class It:\n    pass\nit = It", "class It:\n    def map(self): pass\nit = It"),
        ("import numpy\nit = numpy.array([1, 2])", "import numpy\nit = numpy.array([1, 3])"),
        ("import numpy\nit = numpy.array([1, 2], 'i4')", "import numpy\nit = numpy.array([1, 2], 'i8')"),
        ("import re\nit = re.compile('a')", "import re\nit = re.compile('b')"),
        ("import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\nit = E.A", "import enum\nclass E(enum.Enum):\n"
            "    A = 1\n    B = 2\nit = E.B"),
        ("import enum\nclass E(enum.Enum):\n    A = 1\nit = E.A", "import enum\nclass E(enum.Enum):\n    A = 2\nit = E.A"),
        ("import datetime\nit = datetime.timedelta(1)", "import datetime\nit = datetime.timedelta(2)"),
        ("it = [1, 2]", "it = (1, 2)"),
        ("it = [1, 2]", "it = [2, 1]"),
        ("it = 1", "it = True"),
        ("it = 'a'", "it = b'a'"),
        ("it = 0.0", "it = -0.0"),
        ("it = ['a', 'bc']", "it = ['ab', 'c']"),
        ("it = [].append", "it = [1].append"),
        ("it = str.upper", "it = str.lower"),
        ("import math\nit = math.floor", "import math\nit = math.ceil"),
        ("exec('def it(x): return x + 1')", "exec('def it(x): return x + 2')"),
        ("exec('def it(x): return (lambda y: y + 1)(x)')", "exec('def it(x): return (lambda y: y + 2)(x)')"),
        ("import collections\nP = collections.namedtuple('P', 'a b')\nit = P(1, 2)", "import collections\n"
            "P = collections.namedtuple('P', 'a b')\nit = P(1, 3)"),
        ("import collections\nit = collections.namedtuple('P', 'a b')", "import collections\n"
            "it = collections.namedtuple('P', 'a c')"),
        ("import dataclasses\n@dataclasses.dataclass\nclass It:\n    a: int = 1\nit = It", "import dataclasses\n"
            "@dataclasses.dataclass\nclass It:\n    a: int = 2\nit = It"),
        ("def it(x):\n    return f'{x:.2f}'", "def it(x):\n    return f'{x:.3f}'"),
        ("async def it(x):\n    return x", "def it(x):\n    return x"),
    ],
)  # fmt: skip
def test_values_that_differ(programs: Programs, one: str, other: str) -> None:
    before = programs.fingerprint(one)
    assert programs.fingerprint("# the same\n\n" + one) == before
    assert programs.fingerprint(other) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("it = {'a': 1, 'b': 2}", "it = {'b': 2, 'a': 1}"),
        ("it = {'a', 'b', 'c'}", "it = {'c', 'b', 'a'}"),
        ("KNOWN = frozenset('abcdef')\ndef it(x):\n    return x in KNOWN", "KNOWN = frozenset('fedcba')\ndef it(x):\n"
            "    return x in KNOWN"),
        ("it = [lambda x: x + 1]", "def other(): pass\nit = [\n    lambda x:\n    (x + 1)\n]"),
        ("it = lambda x: x + 1", "rest = lambda y: y; it = lambda x: x + 1"),
        ("def f(x):\n    return 1\nit = {f: 1, len: 2}", "def f(x):\n    return 1\nit = {len: 2, f: 1}"),
        ("class It:\n    def a(self): return 1\n    def b(self): return 2\nit = It", "class It:\n"
            "    def b(self): return 2\n    def a(self): return 1\nit = It"),
    ],
)  # fmt: skip
def test_values_that_are_the_same(programs: Programs, one: str, other: str) -> None:
    assert programs.fingerprint(one) == programs.fingerprint(other)


def test_type_parameters_do_not_count(programs: Programs) -> None:
    text = """
from airflow_pipelines.datastream import ProcessWindowFunction, TimeWindow
class Last(ProcessWindowFunction{parameters}):
    def process(self, key, content, elements):
        yield key, list(elements)[-1]
it = Last()
"""
    plain, typed = (text.format(parameters=parameters) for parameters in ("", "[tuple, tuple, str, TimeWindow]"))
    assert programs.fingerprint(plain) == programs.fingerprint(typed)


def test_functions_that_call_each_other(programs: Programs) -> None:
    text = (
        "def it(n):\n    return n and odd(n - 1)\n\ndef odd(n):\n    return n and even(n - 1)\n\ndef even(n):\n"
        "    return n and odd(n - 1)\n"
    )
    before = programs.fingerprint(text)
    assert programs.fingerprint("x = 1\n" + text) == before
    assert programs.fingerprint(text.replace("def even(n):\n    return n and odd", "def even(n):\n    return n or odd")) != before


@pytest.mark.rest
def test_many_functions_that_all_call_each_other(programs: Programs) -> None:
    functions = 60
    calls = ", ".join(f"f{number}" for number in range(functions))
    text = "".join(f"def f{number}(x):\n    return [{calls}]\n\n" for number in range(functions)) + "it = f0\n"
    assert programs.fingerprint(text) != programs.fingerprint(text.replace("def f40(x)", "def f40(y)"))


def test_values_within_themselves(programs: Programs) -> None:
    text = "it = [1]\nit.append(it)\n"
    assert programs.fingerprint(text) == programs.fingerprint("\n" + text)
    assert programs.fingerprint(text) != programs.fingerprint(text.replace("[1]", "[2]"))
    closure = "def made():\n    def f(n):\n        return n and f(n - 1)\n    return f\nit = made()\n"
    assert programs.fingerprint(closure) != programs.fingerprint(closure.replace("n - 1", "n - 2"))


def test_a_class_that_names_itself(programs: Programs) -> None:
    text = "class It(list):\n    def copy(self):\n        return It(super().copy())\nit = It([1])\n"
    assert programs.fingerprint(text) == programs.fingerprint("\n" + text)
    assert programs.fingerprint(text) != programs.fingerprint(text.replace("It([1])", "It([2])"))


def test_what_cannot_be_pickled_is_known_by_its_class_and_attributes(programs: Programs) -> None:
    text = (
        "import threading\nclass It:\n    def __init__(self, n):\n        self.lock = threading.Lock()\n"
        "        self.n = n\nit = It(1)\n"
    )
    assert programs.fingerprint(text) == programs.fingerprint("\n" + text)
    assert programs.fingerprint(text) != programs.fingerprint(text.replace("It(1)", "It(2)"))


def test_code_of_packages_counts_by_its_name(programs: Programs) -> None:
    assert programs.fingerprint("import json\nit = json.dumps") != programs.fingerprint("import json\nit = json.loads")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_VALUES, _VALUES)
def test_equal_values_have_equal_fingerprints_and_others_do_not(one: object, other: object) -> None:
    own = OwnCode(())
    same = repr(_sorted(one)) == repr(_sorted(other))
    assert (fingerprint(one, own) == fingerprint(other, own)) is same


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sorted(each) for key, each in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_sorted, value))
    return value


@pytest.mark.core
@pytest.mark.processes
def test_a_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "fp_main.py").write_text(
        "KNOWN = {'a', 'b', 'c', 'd'}\nclass It:\n    names = frozenset('xyzuvw')\n    def map(self, x):\n"
        "        return x in KNOWN or x in {'k', 'l', 'm'} or (lambda y: y in self.names)(x)\n"
        "exec(\"def made(x): return x in {'p', 'q', 'r'}\")\nit = [It(), made, {str: 1, int: 2}, len]\n"
    )
    code = (
        "import pathlib, fp_main\n"
        "from airflow_pipelines.streams.graph.fingerprints import OwnCode, fingerprint\n"
        "print(fingerprint(fp_main.it, OwnCode((pathlib.Path.cwd(),))))"
    )
    root = str(Path(__file__).parents[3])
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root},
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1
