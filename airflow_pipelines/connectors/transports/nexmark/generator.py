"""The events of Nexmark, an on-line auction: people who register, auctions that open, and bids.

Written from the public description of the benchmark. Of every 50 events the first is a person, the next three are auctions and the
rest are bids; ids count up from 1000; half of all bids go to a hot auction, three quarters come from a hot bidder, and three
quarters of the auctions belong to a hot seller. Each value follows from the event's number alone, so that a stream is the same
whatever the batches in which it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PERSONS, AUCTIONS, BIDS = 1, 3, 46
"""The number of events of each kind in a round."""
ROUND = PERSONS + AUCTIONS + BIDS
FIRST_ID = 1_000
"""The first id of people and of auctions."""
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT_GROUP = 100
"""The number of people or auctions of which one is hot for a while."""
LEAD = 10
"""The maximum number of ids by which a bid or auction may be ahead of the auction or person that it names."""
IN_FLIGHT_AUCTIONS = 100
ACTIVE_PEOPLE = 1_000
BASE_TIME_MS = 1_436_918_400_000
"""The event time of event 0 in milliseconds since 1970: 2015-07-15 00:00 UTC."""

_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne")
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_OTHER_CHANNELS = 10_000
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
_LETTER_OF_BYTE = _LETTERS[np.arange(256) % len(_LETTERS)]
_MASK = (1 << 64) - 1

Numbers = np.ndarray[Any, np.dtype[Any]]


class EventKind(Enum):
    """The kinds of events, which are the tables: the place of each in a round, and the number of its events in a round."""

    PERSON = ("person", 0, PERSONS)
    AUCTION = ("auction", PERSONS, AUCTIONS)
    BID = ("bid", PERSONS + AUCTIONS, BIDS)

    def __init__(self, title: str, place: int, in_round: int) -> None:
        self.title = title
        self.place = place
        self.in_round = in_round

    def rows_in(self, events: int) -> int:
        """Return the number of events of this kind among the first ``events`` events."""
        rounds, rest = divmod(events, ROUND)
        return rounds * self.in_round + min(max(rest - self.place, 0), self.in_round)

    def seconds_per_row(self, events_per_s: float) -> float:
        """Return the average time from one event of this kind to the next, in seconds."""
        return ROUND / self.in_round / events_per_s


@dataclass(frozen=True)
class Events:
    """A range of events, split by kind; rows are in the order of their event numbers."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The three tables by name."""
        return {"person": self.person, "auction": self.auction, "bid": self.bid}


@dataclass(frozen=True)
class Generator:
    """A generator of events. ``rate``: events per second of event time. ``seed``: another seed gives another stream."""

    rate: int = 10_000
    seed: int = 0

    def events(self, first: int, count: int) -> Events:
        """Return the events with the numbers ``first`` to ``first + count - 1``."""
        numbers = np.arange(first, first + count, dtype=np.int64)
        offsets = numbers % ROUND
        bids = offsets >= PERSONS + AUCTIONS
        people = offsets < PERSONS
        return Events(
            self._people(numbers[people]),
            self._auctions(numbers[~people & ~bids]),
            self._bids(numbers[bids]),
        )

    def rows(self, table: EventKind, first: int, count: int) -> pa.Table:
        """Return rows of one table alone.

        :param table: the table
        :param first: the number of the first row in the table, from 0
        :param count: the number of rows
        """
        places = np.arange(first, first + count, dtype=np.int64)
        numbers = places // table.in_round * ROUND + table.place + places % table.in_round
        match table:
            case EventKind.PERSON:
                return self._people(numbers)
            case EventKind.AUCTION:
                return self._auctions(numbers)
            case EventKind.BID:
                return self._bids(numbers)

    def batches(self, count: int, size: int) -> Iterator[Events]:
        """Yield the first ``count`` events, ``size`` at a time."""
        for first in range(0, count, size):
            yield self.events(first, min(size, count - first))

    def _people(self, numbers: Numbers) -> pa.Table:
        first_names = _pick(_FIRST_NAMES, self._random(numbers, 1, len(_FIRST_NAMES)))
        last_names = _pick(_LAST_NAMES, self._random(numbers, 2, len(_LAST_NAMES)))
        digits = [_digits(self._random(numbers, 10 + at, 10_000)) for at in range(4)]
        columns = {
            "id": last_person(numbers) + FIRST_ID,
            "name": _join([first_names, last_names], " "),
            "email_address": _join([self._text(numbers, 3, 3, 7), self._text(numbers, 4, 3, 5)], "@", ".com"),
            "credit_card": _join(digits, " "),
            "city": _pick(_CITIES, self._random(numbers, 5, len(_CITIES))),
            "state": _pick(_STATES, self._random(numbers, 6, len(_STATES))),
            "date_time": self._times(numbers),
            # Together with the other columns some 200 bytes.
            "extra": self._text(numbers, 7, 100, 150),
        }
        return pa.table(columns)

    def _auctions(self, numbers: Numbers) -> pa.Table:
        initial_bid = self._prices(numbers, 20)
        columns = {
            "id": last_auction(numbers) + FIRST_ID,
            "item_name": self._text(numbers, 21, 3, 20),
            "description": self._text(numbers, 22, 3, 100),
            "initial_bid": initial_bid,
            "reserve": initial_bid + self._prices(numbers, 23),
            "date_time": self._times(numbers),
            "expires": self._expiries(numbers),
            "seller": self._sellers(numbers) + FIRST_ID,
            "category": FIRST_CATEGORY + self._random(numbers, 24, CATEGORIES),
            # Together with the other columns some 500 bytes.
            "extra": self._text(numbers, 25, 310, 470),
        }
        return pa.table(columns)

    def _bids(self, numbers: Numbers) -> pa.Table:
        last = last_auction(numbers)
        oldest = np.maximum(last - IN_FLIGHT_AUCTIONS, 0)
        hot = self._random(numbers, 40, 2) > 0
        auction = np.where(hot, last // HOT_GROUP * HOT_GROUP, oldest + self._random(numbers, 41, last - oldest + 1 + LEAD))
        hot = self._random(numbers, 42, 4) > 0
        # Hot bidders are other people than hot sellers.
        bidder = np.where(hot, last_person(numbers) // HOT_GROUP * HOT_GROUP + 1, self._active_people(numbers, 43))
        hot = self._random(numbers, 44, 2) > 0
        others = len(_HOT_CHANNELS) + self._random(numbers, 45, _OTHER_CHANNELS)
        channel = pa.array(np.where(hot, self._random(numbers, 46, len(_HOT_CHANNELS)), others))
        columns = {
            "auction": auction + FIRST_ID,
            "bidder": bidder + FIRST_ID,
            "price": self._prices(numbers, 47),
            "channel": self._channels[0].take(channel),
            "url": self._channels[1].take(channel),
            "date_time": self._times(numbers),
            # Together with the numbers some 100 bytes.
            "extra": self._text(numbers, 48, 55, 82),
        }
        return pa.table(columns)

    @cached_property
    def _channels(self) -> tuple[pa.Array, pa.Array]:
        """The names and addresses of all channels; nine in ten of the many small ones have their id in the address."""
        count = len(_HOT_CHANNELS) + _OTHER_CHANNELS
        numbers = np.arange(count, dtype=np.int64)
        names = [*_HOT_CHANNELS, *(f"channel-{at}" for at in range(_OTHER_CHANNELS))]
        parts = [self._text(numbers, 60 + at, 3, 5).to_pylist() for at in range(3)]
        shows_id = (self._random(numbers, 63, 10) > 0) & (numbers >= len(_HOT_CHANNELS))
        ids = self._random(numbers, 64, 1 << 31)
        urls = [
            f"https://www.nexmark.com/{one}/{two}/{three}/item.htm?query=1" + (f"&channel_id={number}" if shown else "")
            for one, two, three, shown, number in zip(*parts, shows_id.tolist(), ids.tolist(), strict=True)
        ]
        return pa.array(names), pa.array(urls)

    def _sellers(self, numbers: Numbers) -> Numbers:
        hot = self._random(numbers, 26, 4) > 0
        sellers: Numbers = np.where(hot, last_person(numbers) // HOT_GROUP * HOT_GROUP, self._active_people(numbers, 27))
        return sellers

    def _active_people(self, numbers: Numbers, salt: int) -> Numbers:
        people = last_person(numbers) + 1
        active = np.minimum(people, ACTIVE_PEOPLE)
        chosen: Numbers = people - active + self._random(numbers, salt, active + LEAD)
        return chosen

    def _expiries(self, numbers: Numbers) -> pa.Array:
        """Return the end of each auction, open for as long as :data:`IN_FLIGHT_AUCTIONS` auctions take to open on average."""
        horizon = max(2 * IN_FLIGHT_AUCTIONS * ROUND // AUCTIONS * 1_000 // self.rate, 1)
        return _timestamps(self._milliseconds(numbers) + 1 + self._random(numbers, 28, horizon))

    def _times(self, numbers: Numbers) -> pa.Array:
        return _timestamps(self._milliseconds(numbers))

    def _milliseconds(self, numbers: Numbers) -> Numbers:
        return BASE_TIME_MS + numbers * 1_000 // self.rate

    def _prices(self, numbers: Numbers, salt: int) -> Numbers:
        """Return prices in cents between 100 and 100,000,000, with equally many of each magnitude."""
        share = self._bits(numbers, salt) / float(_MASK)
        prices: Numbers = np.round(np.power(10.0, share * 6) * 100).astype(np.int64)
        return prices

    def _random(self, numbers: Numbers, salt: int, below: int | Numbers) -> Numbers:
        """Return a number from 0 to ``below - 1`` for each event; ``salt`` separates the columns."""
        values: Numbers = (self._bits(numbers, salt) >> np.uint64(1)).astype(np.int64) % below
        return values

    def _text(self, numbers: Numbers, salt: int, shortest: int, longest: int) -> pa.Array:
        """Return texts of random letters, each ``shortest`` to ``longest`` letters long."""
        lengths = shortest + self._random(numbers, salt, longest - shortest + 1)
        words = -(-longest // 8)
        bits = self._bits(numbers[:, None] * np.int64(words) + np.arange(words), salt + 1_000)
        letters = _LETTER_OF_BYTE[bits.view(np.uint8).reshape(len(numbers), words * 8)]
        data = letters[np.arange(words * 8) < lengths[:, None]]
        offsets = np.zeros(len(numbers) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(data))

    def _bits(self, numbers: Numbers, salt: int) -> Numbers:
        """Return 64 well mixed bits for each number: a counter through a finaliser, so that no event depends on another."""
        bits: Numbers = numbers.astype(np.uint64) + np.uint64(((self.seed << 32) + salt) * 0x9E3779B97F4A7C15 & _MASK)
        for shift, factor in ((32, 0xD6E8FEB86659FD93), (29, 0xA0761D6478BD642F), (32, 0xE7037ED1A0B428DB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        bits ^= bits >> np.uint64(31)
        return bits


def last_person(numbers: Numbers) -> Numbers:
    """Return the number, from 0, of the last person at each event; the event's own if it is one."""
    result: Numbers = numbers // ROUND * PERSONS + np.minimum(numbers % ROUND, PERSONS - 1)
    return result


def last_auction(numbers: Numbers) -> Numbers:
    """Return the number, from 0, of the last auction at each event; the event's own if it is one."""
    result: Numbers = numbers // ROUND * AUCTIONS + np.minimum(numbers % ROUND - PERSONS, AUCTIONS - 1)
    return result


def _timestamps(milliseconds: Numbers) -> pa.Array:
    return pa.array(milliseconds * 1_000).cast(pa.timestamp("us"))


def _pick(values: tuple[str, ...], at: Numbers) -> pa.Array:
    return pa.array(values).take(pa.array(at))


def _digits(values: Numbers) -> pa.Array:
    return pa.array([f"{value:04d}" for value in range(10_000)]).take(pa.array(values))


def _join(parts: list[pa.Array], separator: str, end: str = "") -> pa.Array:
    joined = pc.binary_join_element_wise(*parts, separator)
    return pc.binary_join_element_wise(joined, end, "") if end else joined
