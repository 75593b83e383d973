"""One element every some milliseconds through a function with keys and state; prints the milliseconds of each as JSON.

The clock is read when the source gives the element and when the function after the keyed one has it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from benchmarks.streams.packages import PACKAGES

KEYS = 100
WARM_UP = 100


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", choices=PACKAGES, required=True)
    parser.add_argument("--elements", type=int, required=True)
    parser.add_argument("--pause", type=float, required=True, help="seconds between two elements")
    arguments = parser.parse_args()
    package = PACKAGES[arguments.package]()
    env = package.environment().set_parallelism(1)
    paced = package.paced(env, WARM_UP + arguments.elements, arguments.pause)
    with _through_state(package.api, paced).execute_and_collect() as times:
        found = [nanoseconds / 1e6 for nanoseconds in times]
    print(json.dumps({"milliseconds": found[WARM_UP:]}), flush=True)
    return 0


def _through_state(api: Any, sent: Any) -> Any:
    class Count(api.KeyedProcessFunction):  # type: ignore[misc, name-defined]
        def open(self, runtime_context: Any) -> None:
            self.count = runtime_context.get_state(api.ValueStateDescriptor("count", api.Types.LONG()))

        def process_element(self, value: int, ctx: Any) -> Any:  # noqa: ARG002
            self.count.update((self.count.value() or 0) + 1)
            yield value

    counted = sent.key_by(lambda at: at % KEYS, api.Types.LONG()).process(Count(), api.Types.LONG())
    # Another exchange, as there is one before most sinks that write.
    return counted.rebalance().map(lambda at: time.time_ns() - at, api.Types.LONG())


if __name__ == "__main__":
    sys.exit(main())
