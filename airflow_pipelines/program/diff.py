"""The difference between two programs, which a person approves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.streams import is_hidden


@dataclass(frozen=True, slots=True)
class ProgramDiff:
    """Sorted canonical names of the parts of two programs that differ: relations, and operators of stream programs."""

    added_tables: tuple[str, ...] = ()
    removed_tables: tuple[str, ...] = ()
    modified_tables: tuple[str, ...] = ()
    added_views: tuple[str, ...] = ()
    removed_views: tuple[str, ...] = ()
    modified_views: tuple[str, ...] = ()
    added_operators: tuple[str, ...] = ()
    removed_operators: tuple[str, ...] = ()
    modified_operators: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if no part differs."""
        return not any(asdict(self).values())

    @property
    def fresh_tables(self) -> frozenset[str]:
        """The tables that start empty."""
        return frozenset({*self.added_tables, *self.modified_tables})

    @property
    def fresh_views(self) -> frozenset[str]:
        """The views to evaluate from scratch."""
        return frozenset({*self.added_views, *self.modified_views})

    def to_wire(self) -> dict[str, list[str]]:
        """Return the object that the REST contract shows for approval; it has operators only if some differ."""
        return {key: list(names) for key, names in self.find_shown().items() if names or not key.endswith("_operators")}

    def find_shown(self) -> dict[str, tuple[str, ...]]:
        """Return the names that users see, by the kind of their change, without the hidden relations of stream programs."""
        return {key: tuple(name for name in names if not is_hidden(name)) for key, names in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class PipelineDiff:
    """The difference between two programs.

    :param program_diff: the difference of their parts; None if the old program is unavailable
    :param program_diff_error: the reason why it is unavailable
    """

    program_diff: ProgramDiff | None = field(default_factory=ProgramDiff)
    program_diff_error: str | None = None
    added_input_connectors: tuple[str, ...] = ()
    modified_input_connectors: tuple[str, ...] = ()
    removed_input_connectors: tuple[str, ...] = ()
    added_output_connectors: tuple[str, ...] = ()
    modified_output_connectors: tuple[str, ...] = ()
    removed_output_connectors: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if nothing differs, so that a pipeline can simply resume."""
        if self.program_diff is None or not self.program_diff.is_empty:
            return False
        return not any(value for key, value in asdict(self).items() if key.endswith("_connectors"))

    @property
    def fresh_connectors(self) -> frozenset[str]:
        """The connectors that start without a position."""
        inputs = (*self.added_input_connectors, *self.modified_input_connectors)
        return frozenset({*inputs, *self.added_output_connectors, *self.modified_output_connectors})

    def describe(self) -> str:
        """Return the difference as one readable line."""
        program = self.program_diff.find_shown() if self.program_diff is not None else {}
        groups = {**program, **{key: value for key, value in asdict(self).items() if key.endswith("_connectors")}}
        return "; ".join(f"{key.replace('_', ' ')}: {', '.join(names)}" for key, names in groups.items() if names)

    def to_wire(self) -> dict[str, Any]:
        """Return the object that the REST contract shows for approval."""
        wire: dict[str, Any] = {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items() if key != "program_diff"
        }
        return {"program_diff": None if self.program_diff is None else self.program_diff.to_wire(), **wire}


def compare(old: Fingerprints, new: Fingerprints) -> PipelineDiff:
    """Return the changes when a pipeline goes from ``old`` to ``new``."""
    new_relations = {**new.tables, **new.views}

    def drop_removed(connectors: Mapping[str, str]) -> dict[str, str]:
        # A connector that is removed with its relation is not listed.
        return {name: value for name, value in connectors.items() if old.owners.get(name) in new_relations}

    tables, views = _parts(old.tables, new.tables), _parts(old.views, new.views)
    operators = _parts(old.operators, new.operators)
    inputs = _parts(drop_removed(old.input_connectors), new.input_connectors)
    outputs = _parts(drop_removed(old.output_connectors), new.output_connectors)
    return PipelineDiff(
        ProgramDiff(
            added_tables=tables[0],
            removed_tables=tables[1],
            modified_tables=tables[2],
            added_views=views[0],
            removed_views=views[1],
            modified_views=views[2],
            added_operators=operators[0],
            removed_operators=operators[1],
            modified_operators=operators[2],
        ),
        added_input_connectors=inputs[0],
        removed_input_connectors=inputs[1],
        modified_input_connectors=inputs[2],
        added_output_connectors=outputs[0],
        removed_output_connectors=outputs[1],
        modified_output_connectors=outputs[2],
    )


def _parts(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the added, removed and modified names."""
    added = tuple(sorted(new.keys() - old.keys()))
    removed = tuple(sorted(old.keys() - new.keys()))
    return added, removed, tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name]))
