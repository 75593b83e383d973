"""A process that runs cases with one of the packages, in its environment, and prints a line of JSON for each outcome.

``python -m tools.compare_flink.runner --package ours``: the comparison starts one such process for each package.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import tools.compare_flink.programs  # noqa: F401 (fills the list of cases)
from tools.compare_flink.case import CASES, Case, Shape
from tools.compare_flink.outcome import Outcome, cause
from tools.compare_flink.packages import Package, named
from tools.compare_flink.plain import plain
from tools.console import say


def main() -> int:
    """Run the cases on standard input, one JSON list with the name and the number of the input a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", choices=("ours", "flink"), required=True)
    parser.add_argument("--mode", choices=("thread", "process"), required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--pause", type=float, required=True, help="seconds after each element of Flink's input")
    arguments = parser.parse_args()
    package = named(arguments.package, arguments.mode, arguments.pause)
    for line in sys.stdin:
        name, number = json.loads(line)
        case = CASES[name]
        say(outcome(package, case, number, case.inputs(arguments.seed, arguments.rounds)[number]).to_line())
    return 0


def outcome(package: Package, case: Case, number: int, given: Any) -> Outcome:
    """Run a program with one input.

    :param package: the package that runs it
    :param case: the program
    :param number: the number of the input
    :param given: the input
    :return: the results, or the error
    """
    try:
        return Outcome(case.name, number, _results(package, case, given), None)
    except Exception as error:  # noqa: BLE001 (an error is an outcome that is compared)
        return Outcome(case.name, number, None, cause(f"{type(error).__name__}: {error}"))


def _results(package: Package, case: Case, given: Any) -> list[Any]:
    env = package.environment(batch=case.batch)
    stream = case.program(package.api, env, given)
    if case.shape is Shape.TEXT:
        return _lines(package.api, env, stream)
    if isinstance(stream, list):
        return [plain(value) for value in stream]
    with stream.execute_and_collect() as results:
        return [plain(value) for value in results]


def _lines(api: Any, env: Any, stream: Any) -> list[Any]:
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        stream.sink_to(api.FileSink.for_row_format(folder, api.Encoder.simple_string_encoder()).build())
        env.execute()
        # Of a program without checkpoints, Flink may leave files with the hidden names that they have while they are written.
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return [line for path in files for line in path.read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
