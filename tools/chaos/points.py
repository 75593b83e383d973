"""The points at which a host is killed: just before or just after a call of a function of the engine or of the host."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any

VARIABLE = "CHAOS_POINT"
"""The environment variable with the point at which a host is killed: ``<number of the call> <point>``."""


class Moment(StrEnum):
    """The side of the call."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Point:
    """A function, with the module that defines it, and the side of the call."""

    module: str
    function: str
    moment: Moment

    def __str__(self) -> str:
        return f"{self.moment} {self.module}:{self.function}"

    @classmethod
    def parse(cls, text: str) -> Point:
        """Return the point that ``str`` wrote."""
        moment, _, rest = text.partition(" ")
        module, _, function = rest.partition(":")
        return cls(module, function, Moment(moment))

    def resolve(self) -> tuple[Any, str, Callable[..., Any]]:
        """Return the owner of the function, its name there, and the function itself.

        :raises AttributeError: when it does not exist
        """
        holder: Any = importlib.import_module(f"airflow_pipelines.{self.module}")
        *path, name = self.function.split(".")
        for part in path:
            holder = getattr(holder, part)
        return holder, name, getattr(holder, name)


_FUNCTIONS = {
    # Write and rename.
    "engine.storage.durable": ["write_atomically", "sync_folder", "remove"],
    "engine.storage.batch_store": ["BatchStore.adopt", "BatchStore.persist", "BatchStore.garbage_collect"],
    # Commit and delivery.
    "engine.circuit": ["Circuit.step", "Circuit.publish", "Circuit.maintain", "Circuit.bootstrap", "Circuit.step_over"],
    "engine.storage.journal": ["Journal.create", "Journal.append", "Journal.discard"],
    "engine.storage.journal_end": ["JournalEndFile.write"],
    "host.checkpoints.durability": [
        "Durability.commit",
        "Durability.save_checkpoint",
        "Durability.save_recovery_point",
        "Durability.close",
    ],
    "host.connectors.endpoints": ["Endpoints.open_outputs", "Endpoints.close"],
    "host.outputs.output_endpoints": ["OutputEndpoints.deliver"],
    "connectors.transports.files.line_output": ["FileOutput.write", "FileOutput.rewind"],
    "connectors.transports.step_ends": ["StepEnds.add", "StepEnds.rewind"],
    # Checkpoints and copies of them.
    "engine.storage.checkpoint": ["CheckpointStore.save", "CheckpointStore.note", "CheckpointStore.garbage_collect"],
    "engine.storage.sync": ["RemoteCheckpoints.claim", "RemoteCheckpoints.push"],
    # Start and stop.
    "host.steps.recovery": ["Recovery.restore", "Recovery.bootstrap"],
    "host.steps.live": [
        "LivePipeline.start_empty",
        "LivePipeline.collect",
        "LivePipeline.commit",
    ],
}
POINTS = tuple(
    Point(module, function, moment) for module, functions in _FUNCTIONS.items() for function in functions for moment in Moment
)


def kill_at(point: Point, call: int) -> None:
    """Kill this process and its JVM at the ``call``-th call of the function."""
    holder, name, function = point.resolve()
    left = call

    def counted() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    @wraps(function)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        if point.moment is Moment.BEFORE:
            counted()
        result = function(*arguments, **options)
        if point.moment is Moment.AFTER:
            counted()
        return result

    _replace(holder, name, function, wrapper)


def _replace(holder: Any, name: str, function: Callable[..., Any], wrapper: Callable[..., Any]) -> None:
    """Put the wrapper in the function's place, also where a module has imported it by its name."""
    own = vars(holder).get(name)
    if isinstance(own, classmethod | staticmethod):
        # The class returns a bound function, so the wrapper must not be bound again.
        setattr(holder, name, staticmethod(wrapper))
        return
    setattr(holder, name, wrapper)
    for module in list(sys.modules.values()):
        if module.__name__.startswith("airflow_pipelines") and getattr(module, name, None) is function:
            setattr(module, name, wrapper)
