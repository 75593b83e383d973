"""Generated texts that look like names, addresses, sentences and the like."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from airflow_pipelines.connectors.transports.datagen.options import Strategy

POOL: Final = 4096
"""The number of texts that are made. Rows pick from these, since making one takes up to a tenth of a millisecond."""

_INDUSTRIES: Final = (
    "Agriculture", "Automotive", "Banking", "Chemicals", "Construction", "Education", "Electronics", "Energy", "Entertainment",
    "Fishery", "Food Production", "Forestry", "Health Care", "Hospitality", "Insurance", "Logistics", "Machinery", "Media",
    "Mining", "Pharmaceuticals", "Public Administration", "Real Estate", "Retail", "Software", "Telecommunications", "Textiles",
    "Tourism", "Transportation", "Utilities", "Wholesale",
)  # fmt: skip

_SEVERAL: Final[Mapping[Strategy, Callable[[Any, int], str]]] = {
    Strategy.WORDS: lambda fake, count: " ".join(fake.words(count)),
    Strategy.SENTENCES: lambda fake, count: " ".join(fake.sentences(count)),
    Strategy.PARAGRAPHS: lambda fake, count: "\n".join(fake.paragraphs(count)),
}
SEVERAL: Final = frozenset(_SEVERAL)
"""The strategies whose range is the number of words, sentences or paragraphs."""

_SINGLE: Final[Mapping[Strategy, Callable[[Any], object]]] = {
    Strategy.TITLE: lambda fake: fake.prefix(),
    Strategy.NAME_WITH_TITLE: lambda fake: f"{fake.prefix()} {fake.first_name()} {fake.last_name()}",
    Strategy.CELL_NUMBER: lambda fake: fake.basic_phone_number(),
    Strategy.DOMAIN_SUFFIX: lambda fake: fake.tld(),
    Strategy.USERNAME: lambda fake: fake.user_name(),
    Strategy.IP: lambda fake: fake.ipv4() if fake.boolean() else fake.ipv6(),
    Strategy.COMPANY_NAME: lambda fake: fake.company(),
    Strategy.BUZZWORD: lambda fake: fake.catch_phrase().split()[0],
    Strategy.BUZZWORD_MIDDLE: lambda fake: " ".join(fake.catch_phrase().split()[1:-1]),
    Strategy.BUZZWORD_TAIL: lambda fake: fake.catch_phrase().split()[-1],
    Strategy.BS_VERB: lambda fake: fake.bs().split()[0],
    Strategy.BS_ADJ: lambda fake: fake.bs().split()[1],
    Strategy.BS_NOUN: lambda fake: " ".join(fake.bs().split()[2:]),
    Strategy.PROFESSION: lambda fake: fake.job(),
    Strategy.INDUSTRY: lambda fake: fake.random_element(_INDUSTRIES),
    Strategy.CITY_NAME: lambda fake: fake.city(),
    Strategy.COUNTRY_NAME: lambda fake: fake.country(),
    Strategy.TIME_ZONE: lambda fake: fake.timezone(),
    Strategy.STATE_NAME: lambda fake: fake.state(),
    Strategy.SECONDARY_ADDRESS_TYPE: lambda fake: fake.secondary_address().split()[0],
    Strategy.ZIP_CODE: lambda fake: fake.zipcode(),
    Strategy.POST_CODE: lambda fake: fake.postcode(),
    Strategy.ISBN: lambda fake: fake.isbn13(),
    Strategy.DIR_PATH: lambda fake: posixpath.dirname(fake.file_path(depth=3)),
}
"""The functions for strategies whose name is not that of the library's method."""


@dataclass(frozen=True)
class FakeTexts:
    """Texts of one kind.

    :param strategy: the kind
    :param seed: the seed; the same seed gives the same texts
    :param least: the minimum number of words, sentences or paragraphs
    :param most: the maximum number of words, sentences or paragraphs
    """

    strategy: Strategy
    seed: int
    least: int
    most: int

    @cached_property
    def pool(self) -> pa.Array:
        """The texts, made on first use."""
        # Import late: it takes long, and few pipelines need it.
        from faker import Faker

        fake: Any = Faker("en_US", use_weighting=False)
        fake.seed_instance(self.seed)
        if self.strategy in _SEVERAL:
            several = _SEVERAL[self.strategy]
            return pa.array([several(fake, fake.random_int(self.least, self.most)) for _ in range(POOL)], pa.string())
        single = _SINGLE.get(self.strategy) or (lambda fake: getattr(fake, self.strategy.value)())
        return pa.array([str(single(fake)) for _ in range(POOL)], pa.string())
