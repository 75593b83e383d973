"""Portions of transactions: whole ones together, large ones in parts, and the place behind each."""

from __future__ import annotations

from airflow_pipelines.connectors.transports.postgresql.transactions import Portion, StreamedTransactions


def send(transactions: StreamedTransactions, changes: list[str], place: int, most: int = 4) -> list[Portion]:
    """A transaction, message by message, as far as its changes were not given before."""
    given = []
    transactions.begin()
    for change in changes:
        if not transactions.next_is_known():
            transactions.add([change], 10)
        while (portion := transactions.full(most)) is not None:
            given.append(portion)
    last = transactions.commit(place)
    return given if last is None else [*given, last]


def test_small_transactions_come_together() -> None:
    transactions = StreamedTransactions(10)
    assert send(transactions, ["a", "b"], 20) == []
    assert send(transactions, [], 30) == []
    assert send(transactions, ["c"], 40) == []
    assert transactions.whole() == Portion(["a", "b", "c"], 30, 40)
    assert transactions.whole() is None


def test_a_full_portion_ends_where_a_transaction_does() -> None:
    transactions = StreamedTransactions(10)
    send(transactions, ["a", "b", "c"], 20)
    [first] = send(transactions, ["d", "e"], 30)
    assert first == Portion(["a", "b", "c"], 30, 20)
    assert transactions.whole() == Portion(["d", "e"], 20, 30)


def test_a_large_transaction_comes_in_parts() -> None:
    transactions = StreamedTransactions(10)
    send(transactions, ["x"], 20)
    whole, first, second, last = send(transactions, list("abcdefghi"), 30)
    assert whole == Portion(["x"], 10, 20)
    assert first == Portion(["a", "b", "c", "d"], 40, 20, 4, is_part=True)
    assert second == Portion(["e", "f", "g", "h"], 40, 20, 8, is_part=True)
    assert last == Portion(["i"], 10, 30, is_part=True, ends=True)
    send(transactions, ["y"], 40)
    assert transactions.whole() == Portion(["y"], 10, 40)


def test_a_transaction_may_end_with_nothing_more() -> None:
    transactions = StreamedTransactions(10)
    part, end = send(transactions, list("abcd"), 20)
    assert (part.messages, part.ends) == (4, False)
    assert end == Portion([], 0, 20, is_part=True, ends=True)


def test_what_was_given_does_not_come_again() -> None:
    transactions = StreamedTransactions(10)
    transactions.begin()
    for change in "abcde":
        transactions.next_is_known()
        transactions.add([change], 10)
        transactions.full(4)
    again = transactions.again()
    assert send(again, list("abcdefg"), 20) == [Portion(["e", "f", "g"], 30, 20, is_part=True, ends=True)]
    # So it is for who reads on from the position of that portion.
    assert send(StreamedTransactions(10, 4), list("abcdefg"), 20) == [Portion(["e", "f", "g"], 30, 20, is_part=True, ends=True)]


def test_a_place_moves_on_without_changes_but_not_over_any() -> None:
    transactions = StreamedTransactions(10)
    assert transactions.move_to(10) is None
    assert transactions.move_to(15) == Portion((), 0, 15)
    send(transactions, ["a"], 20)
    assert transactions.move_to(30) is None
    transactions.whole()
    transactions.begin()
    assert transactions.move_to(30) is None
    transactions.commit(40)
    assert transactions.move_to(50) == Portion((), 0, 50)
    assert transactions.again().given_place == 50
