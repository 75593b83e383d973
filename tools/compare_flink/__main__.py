"""A comparison of the results of the same programs in the published package and in ours.

``python -m tools.compare_flink --only windows``. The exit code is 1 if results differ unintentionally.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence

import tools.compare_flink.programs  # noqa: F401 (fills the list of cases)
from tools.compare_flink.case import CASES
from tools.compare_flink.outcome import Outcome, Verdict, difference, verdict
from tools.console import say
from tools.flink import ROOT, VERSION, Flink, FlinkUnavailableError

Run = tuple[str, int]
"""The name of a case and the number of its input."""

PAUSE_S, LONG_PAUSE_S = 0.01, 0.1
"""The seconds that Flink's input waits after each element; the long one is for repeated runs, as a timer may have come too late."""


def main() -> int:
    """Compare and report."""
    parser = argparse.ArgumentParser(prog="compare_flink", description=__doc__)
    parser.add_argument("--only", default="", help="only cases with this in their names")
    parser.add_argument("--rounds", type=int, default=1, help="random inputs of each case that takes input")
    parser.add_argument("--seed", type=int, default=1, help="of the random inputs")
    arguments = parser.parse_args()
    runs = [
        (case.name, number)
        for case in CASES.values()
        if arguments.only in case.name
        for number in range(len(case.inputs(arguments.seed, arguments.rounds)))
    ]
    try:
        flink = Flink.set_up()
    except FlinkUnavailableError as unavailable:
        say(str(unavailable))
        return 2
    say(f"{len(runs)} runs of {_programs(runs)} programs, with PyFlink {VERSION}")
    return Comparison(flink, arguments.seed, arguments.rounds).report(runs)


class Comparison:
    """The runs of both packages.

    PyFlink runs Python in threads of the Java process, which is fast, or in processes, which is its default. Runs that differ in
    the former mode are repeated in the latter, which counts.

    :param flink: the environment of the published package
    :param seed: the seed of the random inputs
    :param rounds: the number of random inputs of a case
    """

    def __init__(self, flink: Flink, seed: int, rounds: int) -> None:
        self._flink = flink
        self._options = ("--seed", str(seed), "--rounds", str(rounds))

    def report(self, runs: Sequence[Run]) -> int:
        """Run, compare, and print the differences and the counts.

        :return: 0 if nothing differs unintentionally
        """
        ours = self._outcomes("ours", runs, "thread", PAUSE_S)
        theirs = self._outcomes("flink", runs, "thread", PAUSE_S)
        doubtful = [run for run in runs if _verdict(run, ours, theirs) is Verdict.DIFFERENT]
        if doubtful:
            say(f"{len(doubtful)} runs differ from Flink's thread mode, and are run again in its process mode")
        counted = theirs | self._outcomes("flink", doubtful, "process", LONG_PAUSE_S)
        verdicts = {run: _verdict(run, ours, counted) for run in runs}
        for run, found in verdicts.items():
            if found is Verdict.DIFFERENT or (found is not Verdict.EQUAL and run[1] == 0):
                say(f"{found.value}: {_title(run)}")
                say("\n".join(difference(ours[run], counted[run])))
            elif run in doubtful:
                say(f"equal, but not in Flink's thread mode: {_title(run)}")
                say("\n".join(difference(ours[run], theirs[run])))
        counts = Counter(verdicts.values())
        say(", ".join(f"{counts[each]} {each.value}" for each in Verdict) + f", of {len(runs)} runs of {_programs(runs)} programs")
        return int(counts[Verdict.DIFFERENT] > 0)

    def _outcomes(self, package: str, runs: Sequence[Run], mode: str, pause_s: float) -> dict[Run, Outcome]:
        """Run a process of one package.

        :raises RuntimeError: when it ends before the last run
        """
        python = sys.executable if package == "ours" else str(self._flink.python)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)} if package == "ours" else self._flink.environment()
        command = [python, "-m", "tools.compare_flink.runner", "--package", package, "--mode", mode, "--pause", str(pause_s)]
        asked = "".join(f"{json.dumps(run)}\n" for run in runs)
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(
                [*command, *self._options],
                env=environment,
                cwd=ROOT,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
            output, _ = process.communicate(asked)
            found = [Outcome.from_line(line) for line in output.splitlines() if line.startswith('{"case"')]
            if len(found) < len(runs):
                log.seek(0)
                raise RuntimeError(f"{package} ended after {len(found)} of {len(runs)} runs:\n{log.read()[-3000:]}")
        return {(each.case, each.number): each for each in found}


def _verdict(run: Run, ours: Mapping[Run, Outcome], theirs: Mapping[Run, Outcome]) -> Verdict:
    return verdict(CASES[run[0]], ours[run], theirs[run])


def _title(run: Run) -> str:
    name, number = run
    why = CASES[name].differs or CASES[name].only_here
    return f"{name}, input {number}" + ("" if why is None else f": {why}")


def _programs(runs: Sequence[Run]) -> int:
    return len({name for name, _ in runs})


if __name__ == "__main__":
    sys.exit(main())
