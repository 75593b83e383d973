"""The interface of a stream program to the rest of the system: its operators, its sources and its outputs.

Its functions are in ``plan``, bytes that only the processes read in which the program's elements are processed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

STREAM_PROGRAM = "stream program"
"""The hidden relation that a stream program's operators compute: their output for other relations."""
STREAM_SOURCE = "stream_source"
"""The transport of the connectors that read sources of stream programs. No program can declare it."""
STREAM_END = "stream_end"
"""The transport of the connectors that signal the end of a relation that a stream program reads. No program can declare it."""
_SOURCE = "stream source "


def source_table(uid: str) -> str:
    """Return the hidden table with the output of a source of a stream program.

    :param uid: the uid of the source
    """
    return _SOURCE + uid


def is_hidden(relation: str) -> bool:
    """Return True if a relation is one of those that only a stream program reads and makes. No SQL text can declare such a name.

    :param relation: its canonical name
    """
    return relation == STREAM_PROGRAM or relation.startswith(_SOURCE)


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A source of a stream program.

    :param uid: the uid of its operator
    :param name: a name for people
    :param kind: the kind of its positions; a source of another kind cannot resume from them
    :param is_bounded: True if it ends by itself
    """

    uid: str
    name: str
    kind: str
    is_bounded: bool

    @property
    def table(self) -> str:
        """The hidden table with its output."""
        return source_table(self.uid)


@dataclass(frozen=True, slots=True)
class RelationInput:
    """A relation of the same pipeline that a stream program reads.

    :param uid: the uid of its operator
    :param relation: its canonical name
    :param with_changes: True if the stream has deleted rows as well, marked by the kind of each row
    :param stays_open: True if it continues after the end of the connectors from which the relation gets its rows
    :param ends_with: the input connectors with which it ends; none for one that continues
    """

    uid: str
    relation: str
    with_changes: bool
    stays_open: bool = False
    ends_with: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """The hidden table that signals its end."""
        return source_table(self.uid)


@dataclass(frozen=True, slots=True)
class RelationOutput:
    """A relation that a stream program makes.

    :param uid: the uid of its operator
    :param relation: its canonical name
    :param columns: names and Spark SQL types
    :param primary_key: the columns by which a later row replaces an earlier one; None if rows are only added
    """

    uid: str
    relation: str
    columns: tuple[tuple[str, str], ...]
    primary_key: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class StreamState:
    """A state that an operator keeps for each key.

    :param name: the name of its descriptor
    :param kind: ``value``, ``list``, ``map``, ``reducing``, ``aggregating`` ...
    :param type: the declared type of its values as text; empty without one
    :param ttl: its time to live as text; empty without one
    """

    name: str
    kind: str
    type: str = ""
    ttl: str = ""


@dataclass(frozen=True, slots=True)
class StreamOperator:
    """An operator of a stream program.

    :param uid: the name of its state across changes of the program
    :param name: a name for people
    :param kind: its function, in one or two words
    :param fingerprint: the fingerprint of its functions and parameters
    :param inputs: uids of the operators that it reads
    :param is_keyed: True if it keeps state by key
    :param key_type: the declared type of its keys as text; empty without one
    :param max_parallelism: the number of key groups
    :param states: the states that it keeps by key; None if they are not known before it runs
    :param position_kind: the kind of the positions of a source; empty for others, and if it was not stored
    :param places: the places to which its positions refer; none if it can resume from them whatever it reads
    """

    uid: str
    name: str
    kind: str
    fingerprint: str
    inputs: tuple[str, ...] = ()
    is_keyed: bool = False
    key_type: str = ""
    max_parallelism: int = 128
    states: tuple[StreamState, ...] | None = None
    position_kind: str = ""
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamRestarts:
    """The restart strategy of a stream program after a failure.

    :param attempts: the number of failures that are followed by a restart; one more ends the program
    :param delay_ms: ms before each restart
    :param interval_ms: the period in ms within which failures count; None if all count
    """

    attempts: int
    delay_ms: int
    interval_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StreamRun:
    """The settings of a stream program for its run.

    :param restarts: the restart strategy; None for no restart
    :param checkpoint_interval_ms: ms between checkpoints; None if the program does not set it
    """

    restarts: StreamRestarts | None = None
    checkpoint_interval_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StreamProgram:
    """A stream program that was executed once, to find its parts.

    :param name: the argument of ``execute``
    :param plan: the plan that a process of the program runs, see :mod:`airflow_pipelines.streams.worker`
    :param operators: its operators, each after its inputs
    :param sources: the sources that are read outside of the engine
    :param inputs: relations that it reads
    :param outputs: relations that it makes
    :param execution_plan: the JSON that ``get_execution_plan`` returns
    :param dependencies: the needs of its processes besides its files, as ``streams.python_environment`` reads them
    :param run: its settings for the run
    :param references: the references of its sources and sinks in place of values that the program does not have
    """

    name: str
    plan: bytes = field(repr=False)
    operators: tuple[StreamOperator, ...] = ()
    sources: tuple[StreamSource, ...] = ()
    inputs: tuple[RelationInput, ...] = ()
    outputs: tuple[RelationOutput, ...] = ()
    execution_plan: str = ""
    dependencies: Mapping[str, Any] = field(default_factory=dict, hash=False)
    run: StreamRun = field(default_factory=StreamRun)
    references: tuple[str, ...] = ()

    @property
    def reads(self) -> frozenset[str]:
        """The relations whose changes it gets: hidden tables, and relations of the pipeline."""
        return frozenset({*self.tables.values(), *(each.relation for each in self.inputs)})

    @property
    def tables(self) -> Mapping[str, str]:
        """The hidden tables with messages, by uid: of its sources, and of inputs that end."""
        ending = (each for each in self.inputs if each.ends_with)
        return {**{each.uid: each.table for each in self.sources}, **{each.uid: each.table for each in ending}}

    @property
    def hidden_relations(self) -> frozenset[str]:
        """The relations that only it reads and makes: the tables with messages, and the output of its operators."""
        return frozenset({STREAM_PROGRAM, *self.tables.values()})

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready object of everything except the plan."""
        parts = asdict(self)
        del parts["plan"]
        return parts

    @classmethod
    def from_json(cls, parts: Mapping[str, Any], plan: bytes) -> StreamProgram:
        """Return the program that :meth:`to_json` serialised.

        :param parts: the JSON object
        :param plan: the plan
        """
        return cls(
            name=parts["name"],
            plan=plan,
            operators=tuple(map(operator_from_json, parts["operators"])),
            sources=tuple(StreamSource(**each) for each in parts["sources"]),
            inputs=tuple(RelationInput(**{**each, "ends_with": tuple(each.get("ends_with", ()))}) for each in parts["inputs"]),
            outputs=tuple(map(_output, parts["outputs"])),
            execution_plan=parts["execution_plan"],
            dependencies=parts["dependencies"],
            run=_run(parts["run"]),
            references=tuple(parts["references"]),
        )


def operator_from_json(parts: Mapping[str, Any]) -> StreamOperator:
    """Return an operator that :meth:`StreamProgram.to_json` serialised.

    :param parts: the JSON object
    """
    states = parts["states"]
    kept = None if states is None else tuple(StreamState(**each) for each in states)
    places = tuple(parts.get("places", ()))
    return StreamOperator(**{**parts, "inputs": tuple(parts["inputs"]), "states": kept, "places": places})


def _run(parts: Mapping[str, Any]) -> StreamRun:
    restarts = parts["restarts"]
    return StreamRun(None if restarts is None else StreamRestarts(**restarts), parts["checkpoint_interval_ms"])


def _output(parts: Mapping[str, Any]) -> RelationOutput:
    key: Sequence[str] | None = parts["primary_key"]
    columns = tuple((name, kind) for name, kind in parts["columns"])
    return RelationOutput(parts["uid"], parts["relation"], columns, None if key is None else tuple(key))
