"""The keyed workload on Quix Streams; the benchmark starts it in the environment that has it, next to a broker.

The topic has one partition, as the program runs in one process. Prints the seconds from the first element to the last as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from quixstreams import Application, State


def main() -> int:
    """Fill the topic, and read it with an application of its own for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for the state")
    parser.add_argument("--elements", type=int, required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    arguments = parser.parse_args()
    job = Job(arguments.broker, arguments.folder, arguments.elements, arguments.keys)
    job.fill()
    print(json.dumps({"seconds": [job.seconds(number) for number in range(arguments.repeats)]}), flush=True)
    return 0


class Job:
    """Counts of the numbers of each key, in state."""

    def __init__(self, broker: str, folder: Path, elements: int, keys: int) -> None:
        self._broker, self._folder, self._elements, self._keys = broker, folder, elements, keys

    def _application(self, name: str) -> tuple[Application, Any]:
        # No changelog topic: the other systems are measured without checkpoints, too.
        application = Application(
            self._broker,
            consumer_group=name,
            auto_offset_reset="earliest",
            state_dir=self._folder / name,
            use_changelog_topics=False,
            loglevel="WARNING",
        )
        return application, application.topic("numbers", value_deserializer="int", value_serializer="int", key_serializer="int")

    def fill(self) -> None:
        """Write the numbers to the topic."""
        application, topic = self._application("fill")
        with application.get_producer() as producer:
            for number in range(self._elements):
                message = topic.serialize(key=number % self._keys, value=number)
                producer.produce(topic=topic.name, key=message.key, value=message.value)

    def seconds(self, number: int) -> float:
        """How long a run takes, from the first element to the last.

        :raises RuntimeError: when a count is wrong
        """
        application, topic = self._application(f"run-{number}")
        times: list[float] = []
        last: dict[int, int] = {}
        keys, elements = self._keys, self._elements

        def count(value: int, state: State) -> int:
            if not times:
                times.append(time.perf_counter())
            found = state.get("count", 0) + 1
            state.set("count", found)
            if value >= elements - keys:
                last[value % keys] = found
            return found  # type: ignore[no-any-return]

        application.dataframe(topic).apply(count, stateful=True)
        application.run(count=elements, timeout=60.0, collect=False)
        end = time.perf_counter()
        if last != {key: len(range(key, elements, keys)) for key in range(keys)}:
            raise RuntimeError(f"the counts of {len(last)} of {keys} keys are not all right")
        return end - times[0]


if __name__ == "__main__":
    sys.exit(main())
