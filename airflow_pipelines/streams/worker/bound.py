"""A stream program as bytes: its plan with all functions, in the form in which the processes that run it get it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

import cloudpickle

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.chains import Plan
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.worker.culprits import unpicklable

_MAIN = "__main__"


@dataclass(frozen=True)
class BoundProgram:
    """A program that was executed to build its plan, and that is to run elsewhere.

    Functions and classes of modules are sent by name: the modules must be importable where the program runs. Those of the executed
    file, which is not an importable module, are sent by value.

    :param plan: the plan
    :param settings: the settings of the whole program
    :param folder: the folder of its files when it was executed, so that places in them can be shown
    :param main: the classes of the executed file, by name: their values are stored and sent by name
    :param argv: its command line, as in ``sys.argv``
    """

    plan: Plan
    settings: TaskSettings
    folder: str = ""
    main: Mapping[str, type] = field(default_factory=dict)
    argv: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the program as bytes.

        :returns: bytes for :meth:`from_bytes`
        :raises StreamProgramError: if a part of it cannot be pickled; the message says which part, and where it is
        """
        try:
            data: bytes = cloudpickle.dumps(self, 5)
        except Exception as error:
            raise StreamProgramError(
                f"{_find_culprit(self.plan, self.settings)} cannot be brought to the process in which the program runs"
                f" ({type(error).__name__}: {error}). Make connections, locks and open files in open(), where each parallel"
                " instance makes its own."
            ) from error
        return data

    @staticmethod
    def from_bytes(data: bytes) -> BoundProgram:
        """Load a program from bytes, and install its classes and command line in this process.

        Its classes become those of the module ``__main__`` of this process, and its command line that of this process: functions
        see here what they see where the file is executed.

        :param data: the result of :meth:`to_bytes`
        :returns: the program
        """
        bound: BoundProgram = cloudpickle.loads(data)
        main = ModuleType(_MAIN)
        vars(main).update(bound.main)
        sys.modules[_MAIN] = main
        sys.argv[:] = bound.argv
        return bound


def bind(plan: Plan, settings: TaskSettings, folder: str = "") -> BoundProgram:
    """Return a program with everything that it needs from the file that is being executed.

    :param plan: the plan
    :param settings: the settings of the whole program
    :param folder: the folder of its files
    :returns: the program
    """
    return BoundProgram(plan, settings, folder, _find_travelling_classes(sys.modules[_MAIN]), tuple(sys.argv))


def _find_travelling_classes(main: ModuleType) -> dict[str, type]:
    """Return the classes of a module that can be pickled. Those that cannot do not occur in stored or sent values either."""
    return {
        name: value
        for name, value in vars(main).items()
        if isinstance(value, type) and value.__module__ == _MAIN and value.__qualname__ == name and _can_travel(value)
    }


def _can_travel(value: type) -> bool:
    try:
        cloudpickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 (whatever it is: who needs it is told when the plan is made bytes)
        return False
    return True


def _find_culprit(plan: Plan, settings: TaskSettings) -> str:
    for chain in plan.chains:
        for step in chain.steps:
            operator = f"operator {step.name!r}"
            for what, value in step.node.operator.user_objects().items():
                path = unpicklable(value, f"the {what} of the {operator}")
                if path is not None:
                    return _capitalise(path)
            for edge in (*step.inputs, *(link.edge for link in plan.into(chain))):
                path = unpicklable(edge.exchange, f"what the {operator} is partitioned by")
                if path is not None:
                    return _capitalise(path)
            path = unpicklable(step.node, f"the {operator}")
            if path is not None:
                return _capitalise(path)
    return _capitalise(unpicklable(settings, "what the program sets for all operators") or "the program")


def _capitalise(text: str) -> str:
    return text[0].upper() + text[1:]
