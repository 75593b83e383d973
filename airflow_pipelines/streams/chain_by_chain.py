"""Runs several rounds over a plan chain by chain, so that all tasks of a chain can run side by side, in other processes as well.

A round is what :meth:`LocalRunner.step` does: something of each source passes through all chains. No chain reads what comes after
it, so each task gets the same in the same order when a chain runs all rounds before the next chain begins.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from airflow_pipelines.streams.elements import Batch, Element
from airflow_pipelines.streams.graph.chains import Chain, Link, Plan
from airflow_pipelines.streams.loop import ChainTask, Channel


@dataclass(frozen=True, slots=True)
class Packed:
    """Elements as bytes, which only those unpack who work on them.

    :param data: the elements, pickled
    :param records: how many records are in them
    """

    data: bytes
    records: int

    @staticmethod
    def of(elements: list[Element]) -> Packed:
        """Pack elements.

        :param elements: the elements
        :raises Exception: whatever pickling raises for a value that has no bytes
        """
        return Packed(pickle.dumps(elements, 5), records_in(elements))


Given: TypeAlias = "list[Element] | Packed"
"""What one task gives to another in one round."""
RoundInput: TypeAlias = "Sequence[tuple[Channel, Given]]"
"""What a task gets in one round, in order."""
RoundOutput: TypeAlias = "Sequence[tuple[Link, int, Given]]"
"""What a task gives in one round: by which link, and to which task."""


def elements_of(given: Given) -> list[Element]:
    """The elements of what was given.

    :param given: elements, packed or not
    """
    if isinstance(given, Packed):
        elements: list[Element] = pickle.loads(given.data)  # noqa: S301 (made by a process of the same program)
        return elements
    return given


def records_in(given: Given) -> int:
    """The number of records in what was given.

    :param given: elements, packed or not
    """
    if isinstance(given, Packed):
        return given.records
    return sum(len(element) for element in given if isinstance(element, Batch))


@dataclass(frozen=True, slots=True)
class Rounds:
    """What a step consists of.

    :param number: how many rounds there are, such that all that waits in sources is read
    :param limit: how many elements of a split are read in one round
    :param now: processing time in ms
    """

    number: int
    limit: int
    now: int


@dataclass(frozen=True, slots=True)
class MovedChain:
    """What became of a chain that has run somewhere else.

    :param tasks: these stand in the place of its tasks
    :param given: what each of them has given in each round
    :param read: how many elements it has read as a source
    """

    tasks: list[ChainTask]
    given: list[list[RoundOutput]]
    read: int


class Elsewhere(Protocol):
    """Somewhere else where chains can run."""

    def run(self, chain: Chain, tasks: list[ChainTask], inputs: list[list[RoundInput]], rounds: Rounds) -> MovedChain | None:
        """Run all rounds of a chain.

        :param chain: the chain
        :param tasks: its tasks, which stay as they are when it does not run elsewhere
        :param inputs: what each task gets in each round
        :param rounds: the rounds
        :returns: what came of it; None for a chain that has to run here
        """
        ...


def run_round(task: ChainTask, given: RoundInput, rounds: Rounds) -> tuple[int, RoundOutput]:
    """One round of one task.

    :param task: the task
    :param given: what it gets
    :param rounds: the rounds
    :returns: how many elements it has read as a source, and what it gives
    """
    read = 0
    if task.source is not None:
        read = task.poll({}, rounds.limit)
    else:
        task.run((channel, elements_of(each)) for channel, each in given)
    task.processing_time(rounds.now)
    output = [
        (link, target, elements)
        for link, writer in task.exchanges.items()
        for target, elements in enumerate(writer.take())
        if elements
    ]
    task.end_of_step()
    return read, output


def run_chain_by_chain(plan: Plan, tasks: dict[int, list[ChainTask]], rounds: Rounds, elsewhere: Elsewhere) -> int:
    """Run all rounds.

    :param plan: what runs
    :param tasks: by the numbers of the chains; others stand in their place where chains ran elsewhere
    :param rounds: the rounds
    :param elsewhere: runs some of the chains
    :returns: how many elements were read
    """
    waiting: dict[tuple[int, int], list[list[tuple[Channel, Given]]]] = {}
    total = 0
    for chain in plan.chains:
        inputs: list[list[RoundInput]] = [
            [*waiting.pop((chain.number, index), _rounds_without_input(rounds))] for index in range(chain.parallelism)
        ]
        moved = elsewhere.run(chain, tasks[chain.number], inputs, rounds)
        if moved is not None:
            tasks[chain.number] = moved.tasks
            total += moved.read
            for number in range(rounds.number):
                for index, given in enumerate(moved.given):
                    _hand_over(waiting, index, number, given[number], rounds)
            continue
        for number in range(rounds.number):
            for index, task in enumerate(tasks[chain.number]):
                read, output = run_round(task, inputs[index][number], rounds)
                inputs[index][number] = ()
                total += read
                _hand_over(waiting, index, number, output, rounds)
    return total


def _hand_over(
    waiting: dict[tuple[int, int], list[list[tuple[Channel, Given]]]],
    index: int,
    number: int,
    output: Iterable[tuple[Link, int, Given]],
    rounds: Rounds,
) -> None:
    for link, target, given in output:
        of_reader = waiting.setdefault((link.target, target), _rounds_without_input(rounds))
        of_reader[number].append(((link.number, index), given))


def _rounds_without_input(rounds: Rounds) -> list[list[tuple[Channel, Given]]]:
    return [[] for _ in range(rounds.number)]
