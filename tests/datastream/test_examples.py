"""The programs in examples/ run as scripts and print what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
PRINTED = {
    "word_count": [
        "count> ('to', 1)", "count> ('be', 1)", "count> ('or', 1)", "count> ('not', 1)", "count> ('to', 2)",
        "count> ('be', 2)",
        "count> ('to', 3)", "count> ('do', 1)", "count> ('is', 1)", "count> ('to', 4)", "count> ('be', 3)",
    ],
    "fraud": ["alert> alice paid 900.00 within a minute of a tiny payment"],
    "sessions": [
        "session> ('ann', 20, ['home', 'cart'])", "session> ('bob', 29, ['home', 'help'])", "session> ('ann', 0, ['home'])",
    ],
    "top_sellers": ["best> (0, [('tea', 11), ('rice', 9)])", "best> (1, [('rice', 4), ('milk', 1)])"],
    "deduplication": ["event> (1, 'created')", "event> (2, 'paid')", "event> (3, 'sent')"],
    "enrichment": ["dollars> ('EUR', 10.0, 12.5)", "dollars> ('EUR', 5.0, 6.25)", "dollars> ('JPY', 1000.0, 7.8125)"],
    "join": ["lamp was paid with 30", "book was paid with 12", "desk was not paid"],
    "order_states": [
        "order 2 cannot be sent: it is created", "order 3 cannot be paid: it is not known", "order 1 has ended: received",
        "order 2 has ended: cancelled", "order 2 cannot be sent: it is cancelled",
    ],
    "watched_folder": [
        "price> apples: 6 euros", "price> apples: 8 euros", "price> pears: 10 euros", "price> plums: 4 euros",
    ],
    "late_data": ["mean> 22.0", "mean> 30.0", "late> (99.0, 2000)", "mean> 28.0"],
}  # fmt: skip


def test_every_example_is_known():
    assert {file.stem for file in FOLDER.glob("*.py")} - {"__init__"} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_finds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == PRINTED[name]
