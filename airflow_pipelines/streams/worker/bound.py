"""A stream program as bytes: its plan with all functions, as the processes get it in which it runs."""

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
    """A program that was executed to find out what it consists of, and is to run elsewhere.

    Functions and classes of modules travel by name: the modules must be importable where the program runs. Those of the file
    that was executed, which is nobody's module, travel by value.

    :param plan: what runs
    :param settings: what holds for the whole program
    :param folder: where its files were when it was executed, so that places in them can be shown
    :param main: classes of the file that was executed, by their names: values of these are kept and sent by name
    :param argv: its command line, as ``sys.argv`` had it
    """

    plan: Plan
    settings: TaskSettings
    folder: str = ""
    main: Mapping[str, type] = field(default_factory=dict)
    argv: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """The program as bytes.

        :returns: what :meth:`from_bytes` reads
        :raises StreamProgramError: when something of it cannot travel: the message says what, and where it is
        """
        try:
            data: bytes = cloudpickle.dumps(self, 5)
        except Exception as error:
            raise StreamProgramError(
                f"{_culprit(self.plan, self.settings)} cannot be brought to the process in which the program runs"
                f" ({type(error).__name__}: {error}). Make connections, locks and open files in open(), where each parallel"
                " instance makes its own."
            ) from error
        return data

    @staticmethod
    def from_bytes(data: bytes) -> BoundProgram:
        """The program of some bytes. Its classes become those of the module ``__main__`` of this process, its command line that
        of this process: functions see here what they see where the file is executed.

        :param data: what :meth:`to_bytes` gave
        :returns: the program
        """
        bound: BoundProgram = cloudpickle.loads(data)
        main = ModuleType(_MAIN)
        vars(main).update(bound.main)
        sys.modules[_MAIN] = main
        sys.argv[:] = bound.argv
        return bound


def bind(plan: Plan, settings: TaskSettings, folder: str = "") -> BoundProgram:
    """A program with what it needs of the file that is being executed.

    :param plan: what runs
    :param settings: what holds for the whole program
    :param folder: where its files are
    :returns: the program
    """
    return BoundProgram(plan, settings, folder, _travelling_classes(sys.modules[_MAIN]), tuple(sys.argv))


def _travelling_classes(main: ModuleType) -> dict[str, type]:
    """The classes of a module that can travel. Those that cannot are not in values that are kept or sent either."""
    return {
        name: value
        for name, value in vars(main).items()
        if isinstance(value, type) and value.__module__ == _MAIN and value.__qualname__ == name and _travels(value)
    }


def _travels(value: type) -> bool:
    try:
        cloudpickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 (whatever it is: who needs it is told when the plan is made bytes)
        return False
    return True


def _culprit(plan: Plan, settings: TaskSettings) -> str:
    for chain in plan.chains:
        for step in chain.steps:
            operator = f"operator {step.name!r}"
            for what, value in step.node.operator.user_objects().items():
                path = unpicklable(value, f"the {what} of the {operator}")
                if path is not None:
                    return _sentence(path)
            for edge in (*step.inputs, *(link.edge for link in plan.into(chain))):
                path = unpicklable(edge.exchange, f"what the {operator} is partitioned by")
                if path is not None:
                    return _sentence(path)
            path = unpicklable(step.node, f"the {operator}")
            if path is not None:
                return _sentence(path)
    return _sentence(unpicklable(settings, "what the program sets for all operators") or "the program")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
