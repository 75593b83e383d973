"""The effect of a change of a stream program on its state, operator by operator.

Operators are matched by uid. If only code changes, the state is kept; state that the new program cannot go on with is dropped, and
whoever approves the change sees this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from airflow_pipelines.contract.change_plan import OperatorChange, OperatorChangeKind
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.streams.runtime import Dropped
from airflow_pipelines.program.streams import StreamOperator, StreamProgram, StreamState
from airflow_pipelines.streams.state.description import BROADCAST_PREFIX

SOURCE_KIND: Final = "Data Source"
"""The kind of operators that read a source.

They go on from their position even if their code changes, unless they read something else.
"""
_POSITION: Final = "its position"
_END: Final = "its end"
_OTHER_CONNECTORS: Final = "its relation has other connectors"
_RELATION_ANEW: Final = "a relation that it reads, itself or through other operators, starts anew"


@dataclass(frozen=True, slots=True)
class SavedOperator:
    """An operator of the saved program, and the state that it keeps.

    :param operator: the operator
    :param states: the states that its functions have asked for
    :param size_bytes: the size of its keyed state, or None before the first checkpoint, when it is not known
    :param broadcast_bytes: the size of the state that all its tasks share
    :param has_keys: True if it has keyed state, also if that came after the newest checkpoint
    :param shares: the share of each state in the size of its keyed state, estimated; empty if unknown
    """

    operator: StreamOperator
    states: tuple[StreamState, ...] = ()
    size_bytes: int | None = 0
    broadcast_bytes: int = 0
    has_keys: bool = False
    shares: Mapping[str, float] = field(default_factory=dict)

    def bytes_of(self, names: Collection[str]) -> int | None:
        """Return the size of some of its states.

        :param names: the names of the states
        :returns: the number of bytes, that of all states if the shares are not known; None before the first checkpoint
        """
        if self.size_bytes is None:
            return None
        keyed = [state.name for state in self.states if not state.name.startswith(BROADCAST_PREFIX)]
        chosen = [name for name in keyed if name in names]
        share = 1.0
        if len(chosen) < len(keyed) and all(name in self.shares for name in keyed):
            share = sum(self.shares[name] for name in chosen)
        has_broadcast = any(name.startswith(BROADCAST_PREFIX) for name in names)
        return round(self.size_bytes * share) + (self.broadcast_bytes if has_broadcast else 0)


@dataclass(frozen=True, slots=True)
class StreamChange:
    """The effect of a program change on the state of a stream program.

    :param dropped: the parts of the saved state that are not used
    :param fresh_inputs: the uids of the relation inputs that get the contents of their relations
    :param fresh_sources: the uids of the sources that read something else now, and begin anew
    :param operators: the operators that are affected
    :param refusals: the reasons why the changed program cannot go on
    """

    dropped: Dropped = frozenset()
    fresh_inputs: frozenset[str] = frozenset()
    fresh_sources: frozenset[str] = frozenset()
    operators: tuple[OperatorChange, ...] = ()
    refusals: tuple[Problem, ...] = ()


def stream_change(
    kept: Iterable[SavedOperator], new: StreamProgram | None, fresh_relations: Set[str], reopened: Set[str] = frozenset()
) -> StreamChange:
    """Compare a saved stream program with a new one.

    :param kept: the operators of the saved one
    :param new: the new one, or None if the new program has none
    :param fresh_relations: the relations of the new program that are new or start anew
    :param reopened: the uids of the relation inputs whose end, if they had one, no longer holds
    """
    before = {each.operator.uid: each for each in kept}
    after = {} if new is None else {operator.uid: operator for operator in new.operators}
    inputs = () if new is None else new.inputs
    moved = {uid: _explain_move(old.operator, after[uid]) for uid, old in before.items() if uid in after}
    moved = {uid: why for uid, why in moved.items() if why}
    fresh_inputs = frozenset(
        each.uid for each in inputs if each.uid not in before or each.uid in moved or each.relation in fresh_relations
    )
    fresh_sources = frozenset(moved.keys() - fresh_inputs)
    anew = _find_downstream(after, {uid for uid in fresh_inputs if uid in before})
    dropped: set[str | tuple[str, str]] = set()
    changes: list[OperatorChange] = []
    refusals: list[Problem] = []
    for uid, old in before.items():
        operator = after.get(uid)
        why_anew = moved.get(uid) or (_RELATION_ANEW if uid in anew else "")
        fate = _Fate(old, operator, why_anew)
        refusals += fate.refusals()
        dropped |= fate.find_dropped()
        change = fate.change()
        if operator is not None and uid in reopened and not why_anew:
            dropped.add(uid)
            change = OperatorChange(uid, operator.name, OperatorChangeKind.MODIFIED, (_POSITION,), (_END,), _OTHER_CONNECTORS)
        if change is not None:
            changes.append(change)
    changes += [OperatorChange(uid, after[uid].name, OperatorChangeKind.ADDED) for uid in after if uid not in before]
    return StreamChange(frozenset(dropped), fresh_inputs, fresh_sources, tuple(changes), tuple(refusals))


def _explain_move(old: StreamOperator, new: StreamOperator) -> str:
    """Return the reason why a source's position is not valid in the source that it reads now.

    The reason is empty if the position is valid, and for other operators.
    """
    is_known = old.position_kind and new.position_kind
    if is_known and old.position_kind != new.position_kind:
        return f"it was a {old.position_kind} and is a {new.position_kind}"
    if is_known and old.places and new.places and set(old.places).isdisjoint(new.places):
        return f"it reads {new.places[0]}, and its position is one in {old.places[0]}"
    return ""


def _find_downstream(operators: Mapping[str, StreamOperator], start: Set[str]) -> frozenset[str]:
    """Return some operators and all that read them, directly or through others."""
    downstream = set(start)
    # Operators come after what they read, so that one pass finds all.
    for uid, operator in operators.items():
        if not downstream.isdisjoint(operator.inputs):
            downstream.add(uid)
    return frozenset(downstream)


@dataclass(frozen=True, slots=True)
class _Fate:
    """The fate of one operator of the saved program.

    :param old: the operator before
    :param new: the operator now, or None if it was removed
    :param why_anew: the reason why it starts without state, because of its inputs; empty if it does not
    """

    old: SavedOperator
    new: StreamOperator | None
    why_anew: str

    def refusals(self) -> list[Problem]:
        old, new = self.old.operator, self.new
        if new is None or self.why_anew or not (old.is_keyed and new.is_keyed and self.old.has_keys):
            return []
        texts = []
        if old.max_parallelism != new.max_parallelism:
            texts.append(
                f"has state in {old.max_parallelism} key groups, and the changed program has a maximum parallelism of"
                f" {new.max_parallelism}. It cannot change: set_max_parallelism({old.max_parallelism})"
            )
        if old.key_type != new.key_type:
            texts.append(
                f"has state by keys of the type {old.key_type or 'that their values have'}, and the changed program declares"
                f" {new.key_type or 'no type'} for them: the same key would not be found again. Declare the type as it was"
            )
        other = "Or give the operator another uid: it then starts without state, which is shown for approval."
        return [
            Problem(ErrorCode.BOOTSTRAP_NOT_ALLOWED, f"The operator {old.name!r} (uid {old.uid!r}) {text}. {other}")
            for text in texts
        ]

    def find_dropped(self) -> set[str | tuple[str, str]]:
        uid = self.old.operator.uid
        if self.new is None or self.why_anew or self._loses_keys:
            return {uid}
        return {(uid, name) for name in self._find_lost_states()}

    def change(self) -> OperatorChange | None:
        old, names = self.old.operator, tuple(state.name for state in self.old.states)
        if old.kind == SOURCE_KIND:
            names = (_POSITION,)
        if self.new is None:
            return self._make_change(old.name, OperatorChangeKind.REMOVED, (), names, "it is no more")
        if self.why_anew:
            return self._make_change(self.new.name, OperatorChangeKind.STARTED_ANEW, (), names, self.why_anew)
        lost = {name: "it has no keys any more" for name in names} if self._loses_keys else self._find_lost_states()
        if old.fingerprint == self.new.fingerprint and not lost:
            return None
        kept = tuple(name for name in names if name not in lost)
        reason = "; ".join(f"{name}: {why}" for name, why in lost.items())
        return self._make_change(self.new.name, OperatorChangeKind.MODIFIED, kept, tuple(lost), reason)

    def _make_change(
        self, name: str, kind: OperatorChangeKind, kept: tuple[str, ...], dropped: tuple[str, ...], reason: str
    ) -> OperatorChange:
        """Return a change with the size of the state that is dropped, or else kept.

        It is known from the first checkpoint on. A position has no size.
        """
        old, keyed = self.old, self.old.size_bytes
        has_size = old.operator.kind != SOURCE_KIND
        size = old.bytes_of(dropped or kept) if has_size else None
        has_state = has_size and (bool(old.states) or old.operator.states is None)
        is_known = keyed is not None or not has_state
        return OperatorChange(old.operator.uid, name, kind, kept, dropped, reason, None, size, is_known)

    @property
    def _loses_keys(self) -> bool:
        return self.new is not None and self.old.operator.is_keyed and not self.new.is_keyed

    def _find_lost_states(self) -> dict[str, str]:
        """Return the states that the new program cannot go on with, and the reasons."""
        if self.new is None or self.new.states is None:
            # The declared states are not known before the program runs; it is refused then if one does not fit.
            return {}
        declared = {state.name: state for state in self.new.states}
        reasons = {state.name: _reason(state, declared.get(state.name)) for state in self.old.states}
        return {name: reason for name, reason in reasons.items() if reason}


def _reason(old: StreamState, new: StreamState | None) -> str:
    """Return the reason why a state cannot be kept; empty if it can."""
    if new is None:
        return "it is not declared any more"
    if old.kind != new.kind:
        return f"it was a {old.kind} state, and is a {new.kind} state"
    if old.type != new.type:
        return f"its type was {old.type or 'not declared'}, and is {new.type or 'not declared'}"
    if bool(old.ttl) != bool(new.ttl):
        return "it has no time to live any more" if old.ttl else "it has a time to live now"
    return ""
