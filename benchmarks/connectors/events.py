"""The records of the benchmark of Kafka: what somebody bought, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

CUSTOMERS: Final = 1_000
KINDS: Final = ("order", "return", "exchange", "gift")
COLUMNS: Final = "id BIGINT, customer BIGINT, kind VARCHAR, amount DECIMAL(10, 2), made_at TIMESTAMP, note VARCHAR"
"""As a table declares them."""
SPARK_COLUMNS: Final = COLUMNS.replace("VARCHAR", "STRING").replace("TIMESTAMP", "TIMESTAMP_NTZ")
"""As ``from_json`` wants them."""
TOTALS: Final = "SELECT customer, kind, COUNT(*) AS events, SUM(amount) AS amount FROM events GROUP BY customer, kind"
"""The aggregate: 4,000 groups, which both systems compute from the same text."""


def events(begin: int, end: int) -> Iterator[bytes]:
    """Yield the records with the numbers from ``begin`` to before ``end``."""
    for number in range(begin, end):
        # Neighbours are of different groups.
        customer, kind = number * 7919 % CUSTOMERS, KINDS[number // CUSTOMERS % len(KINDS)]
        second = number % 60
        yield (
            f'{{"id": {number}, "customer": {customer}, "kind": "{kind}", "amount": {number % 10_000 / 100:.2f}, '
            f'"made_at": "2026-01-02 03:04:{second:02}", "note": "bought at counter {number % 97}"}}'
        ).encode()
