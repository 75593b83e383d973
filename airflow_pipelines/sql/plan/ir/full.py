"""The strategy that always works: recomputing the whole query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.sql.plan.ir.description import REMARK, formerly

CHOSEN: Final = Reason("the whole program is to be recomputed")
"""The reason for recomputing a view that has an incremental strategy too."""


@dataclass(frozen=True, slots=True)
class Full:
    """A query that is recomputed over its relations' contents; the stored result is subtracted.

    :param inputs: the relations that the query reads
    :param reason: the reason why it is recomputed; None for a constant, which never is
    :param needs: relations such that the query gives no rows while all of them are empty, so that it is not evaluated then; often
     empty because they are not known
    """

    query: str
    inputs: tuple[str, ...] = field(metadata=formerly("reads"))
    reason: Reason | None = field(metadata=REMARK)
    needs: tuple[str, ...] = ()

    strategy: ClassVar[str] = "full"
    keeps_contents: ClassVar[bool] = True
    append_only: ClassVar[bool] = False

    @property
    def reads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return frozenset(self.inputs)

    @property
    def rereads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return self.reads

    @property
    def starts_with_rows(self) -> bool:
        """See :class:`Node`."""
        return not self.needs

    def renamed(self, _: Sequence[str], /) -> Full:
        """See :class:`Node`. The columns of the query are taken by their position."""
        return self
