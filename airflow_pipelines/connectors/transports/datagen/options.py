"""The options of the transport ``datagen``."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Strategy(StrEnum):
    """The way in which values are picked: in order or at random; for strings also the kind of text."""

    INCREMENT = "increment"
    UNIFORM = "uniform"
    ZIPF = "zipf"

    WORD = "word"
    WORDS = "words"
    SENTENCE = "sentence"
    SENTENCES = "sentences"
    PARAGRAPH = "paragraph"
    PARAGRAPHS = "paragraphs"
    FIRST_NAME = "first_name"
    LAST_NAME = "last_name"
    TITLE = "title"
    SUFFIX = "suffix"
    NAME = "name"
    NAME_WITH_TITLE = "name_with_title"
    PHONE_NUMBER = "phone_number"
    CELL_NUMBER = "cell_number"
    DOMAIN_SUFFIX = "domain_suffix"
    EMAIL = "email"
    USERNAME = "username"
    PASSWORD = "password"  # noqa: S105  the name of a strategy
    IPV4 = "ipv4"
    IPV6 = "ipv6"
    IP = "ip"
    MAC_ADDRESS = "mac_address"
    USER_AGENT = "user_agent"
    COMPANY_SUFFIX = "company_suffix"
    COMPANY_NAME = "company_name"
    BUZZWORD = "buzzword"
    BUZZWORD_MIDDLE = "buzzword_middle"
    BUZZWORD_TAIL = "buzzword_tail"
    CATCH_PHRASE = "catch_phrase"
    BS_VERB = "bs_verb"
    BS_ADJ = "bs_adj"
    BS_NOUN = "bs_noun"
    BS = "bs"
    PROFESSION = "profession"
    INDUSTRY = "industry"
    CURRENCY_CODE = "currency_code"
    CURRENCY_NAME = "currency_name"
    CURRENCY_SYMBOL = "currency_symbol"
    CREDIT_CARD_NUMBER = "credit_card_number"
    CITY_PREFIX = "city_prefix"
    CITY_SUFFIX = "city_suffix"
    CITY_NAME = "city_name"
    COUNTRY_NAME = "country_name"
    COUNTRY_CODE = "country_code"
    STREET_SUFFIX = "street_suffix"
    STREET_NAME = "street_name"
    TIME_ZONE = "time_zone"
    STATE_NAME = "state_name"
    STATE_ABBR = "state_abbr"
    SECONDARY_ADDRESS_TYPE = "secondary_address_type"
    SECONDARY_ADDRESS = "secondary_address"
    ZIP_CODE = "zip_code"
    POST_CODE = "post_code"
    BUILDING_NUMBER = "building_number"
    LATITUDE = "latitude"
    LONGITUDE = "longitude"
    ISBN = "isbn"
    ISBN10 = "isbn10"
    ISBN13 = "isbn13"
    FILE_PATH = "file_path"
    FILE_NAME = "file_name"
    FILE_EXTENSION = "file_extension"
    DIR_PATH = "dir_path"

    @property
    def is_for_strings(self) -> bool:
        """True if the strategy makes only strings."""
        return self not in (Strategy.INCREMENT, Strategy.UNIFORM, Strategy.ZIPF)


class FieldOptions(BaseModel):
    """The settings for the values of one column, or of a part of it.

    :param strategy: the way in which a value is picked
    :param range: the first value and the end, which is not included; for texts and collections it limits their length
    :param values: the values to pick from, in place of a range
    :param scale: the factor of numbers and steps
    :param null_percentage: the percentage of values that are NULL
    :param e: the exponent of a Zipf distribution
    :param fields: the settings of a struct's fields
    :param key: the settings of a map's keys
    :param value: the settings of a map's values, an array's elements, or the bytes of a binary value
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Strategy = Strategy.INCREMENT
    range: tuple[int | float | str, int | float | str] | None = None
    values: tuple[Any, ...] | None = None
    scale: int | float = 1
    null_percentage: float | None = Field(default=None, ge=0, le=100)
    e: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    fields: dict[str, FieldOptions] | None = None
    key: FieldOptions | None = None
    value: FieldOptions | None = None


class PlanOptions(BaseModel):
    """The options of one plan.

    :param limit: the number of rows to make; None for no end
    :param rate: the number of rows per second; None for as many as possible
    :param worker_chunk_size: the number of rows that are made at a time
    :param fields: the settings for the values of columns
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int | None = Field(default=None, ge=0)
    rate: int | None = Field(default=None, ge=1)
    worker_chunk_size: int | None = Field(default=None, ge=1, le=10_000_000)
    fields: dict[str, FieldOptions] = Field(default_factory=dict)


class DatagenOptions(BaseModel):
    """The options of the transport.

    :param plan: the plans, which are carried out one after the other
    :param workers: the number of threads that make rows
    :param seed: the seed; the same seed gives the same rows
    :param transaction_size: the number of rows of a transaction, fewer at the end; None or 0 for no transactions
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    plan: tuple[PlanOptions, ...] = (PlanOptions(),)
    workers: int = Field(default=1, ge=1, le=64)
    seed: int | None = Field(default=None, ge=0)
    transaction_size: int | None = Field(default=None, ge=0)
