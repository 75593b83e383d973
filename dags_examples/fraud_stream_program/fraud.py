"""A stream program: accounts with a tiny payment that is followed by a large one within ten minutes.

It reads the table ``payments`` of its pipeline and makes the relation ``alerts``, which SQL views read. Each account is worked on
by itself, with a state that survives restarts and changes of this program.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from rules import Rules

from airflow_pipelines.datastream import Row, StreamExecutionEnvironment, Types
from airflow_pipelines.datastream.functions import KeyedProcessFunction, RuntimeContext
from airflow_pipelines.datastream.state import ValueStateDescriptor


class TinyThenLarge(KeyedProcessFunction):
    """Remembers for each account when it last paid a tiny amount."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def open(self, runtime_context: RuntimeContext) -> None:
        """Get the state."""
        self.tiny_at = runtime_context.get_state(ValueStateDescriptor("tiny_at", Types.LONG()))

    def process_element(self, payment: Row, _ctx: Any) -> Iterator[Row]:
        """Look at one payment."""
        tiny_at = self.tiny_at.value()
        if tiny_at is not None and self.rules.is_suspicious(payment.amount, payment.second - tiny_at):
            yield Row(id=payment.id, account=payment.account, amount=payment.amount)
        if self.rules.is_tiny(payment.amount):
            self.tiny_at.update(payment.second)


def main() -> None:
    """Build the program. What is large comes from its command line, so that a DAG can say it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", type=float, default=500.0)
    rules = Rules(large=parser.parse_args().large)

    env = StreamExecutionEnvironment.get_execution_environment()
    # It stays open for payments that are pushed when the file has been read.
    payments = env.from_relation("payments", stays_open=True).uid("payments")
    alerts = payments.key_by(lambda payment: payment.account, Types.STRING()).process(TinyThenLarge(rules)).uid("tiny_then_large")
    alerts.to_relation("alerts", "id BIGINT, account VARCHAR, amount DOUBLE", primary_key="id").uid("alerts")
    env.execute("fraud")


main()
