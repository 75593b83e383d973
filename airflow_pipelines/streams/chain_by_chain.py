"""Execution of several rounds of a plan chain by chain, so that all tasks of a chain can run side by side, also in other processes.

A round is one call of :meth:`LocalRunner.step`: some elements of each source pass through all chains. No chain reads the output of
a later chain, so each task gets the same elements in the same order when a chain runs all rounds before the next chain begins.
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
    """Elements as bytes. Only the task that works on them unpacks them.

    :param data: the elements, pickled
    :param records: the number of records among them
    """

    data: bytes
    records: int

    @staticmethod
    def of(elements: list[Element]) -> Packed:
        """Pack elements.

        :param elements: the elements
        :raises Exception: if pickling fails for a value; the error is the one that pickling raised
        """
        return Packed(pickle.dumps(elements, 5), records_in(elements))


Given: TypeAlias = "list[Element] | Packed"
"""The elements that one task gives to another in one round."""
RoundInput: TypeAlias = "Sequence[tuple[Channel, Given]]"
"""The input of a task in one round, in order."""
RoundOutput: TypeAlias = "Sequence[tuple[Link, int, Given]]"
"""The output of a task in one round: the link, the number of the reading task, and the elements."""


def elements_of(given: Given) -> list[Element]:
    """Return elements, unpacked if necessary.

    :param given: elements, packed or not
    """
    if isinstance(given, Packed):
        elements: list[Element] = pickle.loads(given.data)  # noqa: S301 (made by a process of the same program)
        return elements
    return given


def records_in(given: Given) -> int:
    """Return the number of records in some elements.

    :param given: elements, packed or not
    """
    if isinstance(given, Packed):
        return given.records
    return sum(len(element) for element in given if isinstance(element, Batch))


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of which a step consists.

    :param number: the number of rounds, large enough to read everything that waits in the sources
    :param limit: the maximum number of elements to read from one split in one round
    :param now: processing time in ms
    """

    number: int
    limit: int
    now: int


@dataclass(frozen=True, slots=True)
class MovedChain:
    """The result of a chain that ran elsewhere.

    :param tasks: the tasks that replace the tasks of the chain
    :param given: the output of each task in each round
    :param read: the number of elements that the chain has read as a source
    """

    tasks: list[ChainTask]
    given: list[list[RoundOutput]]
    read: int


class Elsewhere(Protocol):
    """Another place where chains can run."""

    def run(self, chain: Chain, tasks: list[ChainTask], inputs: list[list[RoundInput]], rounds: Rounds) -> MovedChain | None:
        """Run all rounds of a chain.

        :param chain: the chain
        :param tasks: its tasks, which stay unchanged if the chain does not run elsewhere
        :param inputs: the input of each task in each round
        :param rounds: the rounds
        :returns: the result; None if the chain has to run here
        """
        ...


def run_round(task: ChainTask, given: RoundInput, rounds: Rounds) -> tuple[int, RoundOutput]:
    """Run one round of one task.

    :param task: the task
    :param given: its input
    :param rounds: the rounds
    :returns: the number of elements that it has read as a source, and its output
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
    """Run all rounds, one chain after the other.

    :param plan: the plan to run
    :param tasks: the tasks by the number of their chain; tasks of chains that ran elsewhere are replaced
    :param rounds: the rounds
    :param elsewhere: the place that runs some of the chains
    :returns: the number of elements that were read
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
