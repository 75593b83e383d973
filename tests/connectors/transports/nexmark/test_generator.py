"""Nexmark's events: what the benchmark promises of them."""

from __future__ import annotations

import datetime
from collections import Counter

import pyarrow as pa

from airflow_pipelines.connectors.transports.nexmark.generator import BASE_TIME_MS, Events, Generator

EVENTS = 20_000


def _joined(parts: list[Events], name: str) -> pa.Table:
    return pa.concat_tables([part.tables[name] for part in parts]).combine_chunks()


def test_events_do_not_depend_on_the_batches_they_are_made_in() -> None:
    whole = Generator().events(0, 3_000)
    parts = list(Generator().batches(3_000, 700))
    for name, table in whole.tables.items():
        assert _joined(parts, name).equals(table.combine_chunks())


def test_another_seed_gives_other_events() -> None:
    assert not Generator(seed=1).events(0, 100).bid.equals(Generator().events(0, 100).bid)


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    events = Generator().events(0, EVENTS)
    assert {name: table.num_rows for name, table in events.tables.items()} == {"person": 400, "auction": 1_200, "bid": 18_400}


def test_ids_count_up() -> None:
    events = Generator().events(0, EVENTS)
    assert events.person["id"].to_pylist() == list(range(1_000, 1_400))
    assert events.auction["id"].to_pylist() == list(range(1_000, 2_200))


def test_event_times_follow_the_rate() -> None:
    times = Generator(rate=10).events(0, 101).person["date_time"].to_pylist()
    base = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=BASE_TIME_MS)
    assert times == [base + datetime.timedelta(seconds=after) for after in (0, 5, 10)]


def test_half_of_the_bids_go_to_hot_auctions_and_most_come_from_hot_bidders() -> None:
    bids = Generator().events(0, EVENTS).bid
    hot_auctions = sum(auction % 100 == 0 for auction in bids["auction"].to_pylist()) / bids.num_rows
    hot_bidders = sum(bidder % 100 == 1 for bidder in bids["bidder"].to_pylist()) / bids.num_rows
    assert 0.48 < hot_auctions < 0.54
    assert 0.73 < hot_bidders < 0.79


def test_most_auctions_have_a_hot_seller_who_is_known() -> None:
    events = Generator().events(0, EVENTS)
    sellers = Counter(events.auction["seller"].to_pylist())
    assert 0.7 < sum(count for seller, count in sellers.items() if seller % 100 == 0) / events.auction.num_rows < 0.8
    assert max(sellers) < 1_400 + 10


def test_auctions_end_after_they_begin_and_last_as_long_as_a_hundred_others_take_to_open() -> None:
    auctions = Generator(rate=1_000).events(0, EVENTS).auction
    lengths = [
        (end - start).total_seconds()
        for start, end in zip(auctions["date_time"].to_pylist(), auctions["expires"].to_pylist(), strict=True)
    ]
    assert min(lengths) > 0
    assert 1.5 < sum(lengths) / len(lengths) < 1.8


def test_prices_have_all_magnitudes_equally() -> None:
    magnitudes = Counter(len(str(price)) for price in Generator().events(0, EVENTS).bid["price"].to_pylist())
    assert set(magnitudes) <= set(range(3, 10))
    assert all(0.14 < magnitudes[digits] / 18_400 < 0.19 for digits in range(3, 9))


def test_addresses_of_small_channels_mostly_say_their_id() -> None:
    bids = Generator().events(0, EVENTS).bid
    shown = Counter(
        (channel.startswith("channel-"), "&channel_id=" in url)
        for channel, url in zip(bids["channel"].to_pylist(), bids["url"].to_pylist(), strict=True)
    )
    assert shown[False, True] == 0
    assert 0.85 < shown[True, True] / (shown[True, True] + shown[True, False]) < 0.95
