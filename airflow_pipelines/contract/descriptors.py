"""The lists in a pipeline's descriptor: its relations and its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from airflow_pipelines.contract.change_plan import ChangePlan


@dataclass(frozen=True)
class SQLRelation:
    """A table or view of a compiled program.

    :ivar name: canonical name: folded to lower case, or verbatim if it was quoted
    :ivar fields: the columns in order, each a mapping with ``name``, ``case_sensitive`` and ``columntype``
    :ivar case_sensitive: True if the name was quoted
    :ivar materialized: True if its contents can be queried
    :ivar primary_key: names of the key's columns; None without a key
    :ivar properties: the properties of its WITH clause, by name
    """

    name: str
    fields: list[dict[str, Any]] = field(default_factory=list)
    case_sensitive: bool = False
    materialized: bool = False
    primary_key: list[str] | None = None
    properties: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read a relation of ``program_info.schema``."""
        return cls(
            name=str(d["name"]),
            fields=list(d.get("fields") or []),
            case_sensitive=bool(d.get("case_sensitive", False)),
            materialized=bool(d.get("materialized", False)),
            primary_key=d.get("primary_key"),
            properties=dict(d.get("properties") or {}),
        )


class SQLTable(SQLRelation):
    """A table of a compiled program."""


class SQLView(SQLRelation):
    """A view of a compiled program."""


@dataclass(frozen=True)
class PendingChange:
    """The change that a pipeline in AWAITINGAPPROVAL waits with, or that ``Pipeline.plan`` predicts.

    :ivar diff: the difference between the saved program and the new one, as the service sends it
    :ivar programs: hash and version of both programs (``saved`` and ``new``); pass it to ``Pipeline.approve`` to approve exactly
        this change. Empty if the service is of a release that does not send it.
    :ivar views_evaluated_anew: unchanged views that are evaluated anew because of the way they were saved, with the reason
    :ivar plan: the effects of the change on relations and their rows; None if the service is of a release that does not send it
    """

    diff: dict[str, Any]
    programs: dict[str, Any] = field(default_factory=dict)
    views_evaluated_anew: dict[str, str] = field(default_factory=dict)
    plan: ChangePlan | None = None

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the ``deployment_runtime_status_details`` of a pipeline that awaits approval."""
        return cls(
            diff=dict(d.get("approval_diff") or {}),
            programs=dict(d.get("programs") or {}),
            views_evaluated_anew=dict(d.get("views_evaluated_anew") or {}),
            plan=None if d.get("plan") is None else ChangePlan.from_dict(d["plan"]),
        )


@dataclass(frozen=True)
class CheckpointMetadata:
    """The metadata of a checkpoint.

    :ivar uuid: its id; newer checkpoints have greater ones
    :ivar identifier: its label, if any
    :ivar fingerprint: hash of the program that made it
    :ivar size: bytes of its files
    :ivar steps: steps processed before it
    :ivar processed_records: input records processed before it
    """

    uuid: UUID
    identifier: str | None = None
    fingerprint: int | None = None
    size: int | None = None
    steps: int | None = None
    processed_records: int | None = None

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read one entry of the service's list."""
        return cls(
            uuid=UUID(str(d["uuid"])),
            identifier=d.get("identifier"),
            fingerprint=d.get("fingerprint"),
            size=d.get("size"),
            steps=d.get("steps"),
            processed_records=d.get("processed_records"),
        )
