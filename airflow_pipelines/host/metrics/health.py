"""Whether a connector works, as statistics show it."""

from __future__ import annotations

from typing import Any


class Health:
    """What keeps a connector from working: for good, or for now.

    :param fatal: why it cannot go on
    :param trouble: why it does not work at the moment, and is tried again
    :param note: what is worth knowing of one that works
    """

    def __init__(self) -> None:
        self.fatal: str | None = None
        self.trouble: str | None = None
        self.note: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether it works."""
        return self.fatal is None and self.trouble is None

    def to_wire(self) -> dict[str, Any]:
        """The wire's ``health`` object."""
        problem = self.fatal or self.trouble
        if problem is None:
            return {"status": "Healthy", "description": self.note}
        return {"status": "Unhealthy", "description": " ".join(filter(None, (problem, self.note)))}
