"""What is suspicious. A module of the stream program, which comes along because the program imports it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """Amounts and seconds."""

    large: float
    tiny: float = 1.0
    within_s: int = 600

    def is_tiny(self, amount: float) -> bool:
        """Whether somebody may be trying out a card."""
        return amount < self.tiny

    def is_suspicious(self, amount: float, seconds_after_tiny: int) -> bool:
        """Whether a payment that follows a tiny one is worth an alert."""
        return amount >= self.large and 0 <= seconds_after_tiny <= self.within_s
