"""A search for programs whose views differ from Spark's batch answers, for a given time.

``python -m tools.fuzz --minutes 60`` repeats the oracle test with new seeds, each printed before it is used, and stops at the first
failure. ``--seed`` repeats one.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time

from tools.console import say

SIZES = {"ORACLE_EXAMPLES": "60", "ORACLE_STEPS": "8", "ORACLE_VIEWS": "5"}
"""The sizes of each run; larger than in the ordinary tests."""


def main() -> int:
    """Run the search, and return the exit code of the failing run, or 0."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="no new seed is begun after this time")
    parser.add_argument("--seed", type=int, help="run with this seed only")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.minutes * 60
    runs = 0
    while True:
        seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**32)
        say(f"seed {seed}")
        code = _run(seed)
        runs += 1
        if code:
            say(f"failed with seed {seed}; repeat it with: python -m tools.fuzz --seed {seed}")
            return code
        if arguments.seed is not None or time.monotonic() > until:
            say(f"no difference found in {runs} runs")
            return 0


def _run(seed: int) -> int:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/engine/behaviour/test_oracle.py",
        "-q",
        "--timeout=7200",
        f"--hypothesis-seed={seed}",
    ]
    return subprocess.run(command, env={**os.environ, **SIZES}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
