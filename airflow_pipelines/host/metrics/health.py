"""The health of a connector, as statistics show it."""

from __future__ import annotations

from typing import Any


class Health:
    """The problem that keeps a connector from working, for good or for now.

    :param fatal: the reason why it cannot go on
    :param trouble: the reason why it does not work at the moment; it is tried again
    :param note: a remark about a connector that works
    """

    def __init__(self) -> None:
        self.fatal: str | None = None
        self.trouble: str | None = None
        self.note: str | None = None

    @property
    def is_good(self) -> bool:
        """True if the connector works."""
        return self.fatal is None and self.trouble is None

    def to_wire(self) -> dict[str, Any]:
        """Return the wire's ``health`` object."""
        problem = self.fatal or self.trouble
        if problem is None:
            return {"status": "Healthy", "description": self.note}
        return {"status": "Unhealthy", "description": " ".join(filter(None, (problem, self.note)))}
