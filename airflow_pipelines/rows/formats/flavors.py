"""The forms in which other systems write values for which JSON has no type: dates and times, bytes, exact numbers."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_MILLISECOND, _DAY = 1_000, 86_400_000_000


class JsonFlavor(StrEnum):
    """The flavor of JSON: the system that writes it."""

    DEFAULT = "default"
    DEBEZIUM_MYSQL = "debezium_mysql"
    DEBEZIUM_POSTGRES = "debezium_postgres"
    SNOWFLAKE = "snowflake"
    KAFKA_CONNECT = "kafka_connect_json_converter"
    PANDAS = "pandas"
    BLOCKCHAIN = "blockchain"
    C_HEX = "c_hex"


class BinaryForm(StrEnum):
    """The form in which bytes are written."""

    NUMBERS = "an array of byte numbers (0..255)"
    BASE64 = "text in base64"
    BASE58 = "text in base58"
    HEX = "text in hexadecimal digits"
    HEX_WITH_PREFIX = "text in hexadecimal digits after 0x"

    def read(self, text: str) -> bytes:
        """Decode the bytes that a text represents.

        :raises ValueError: when it represents none
        """
        match self:
            case BinaryForm.BASE64:
                return base64.b64decode(text, validate=True)
            case BinaryForm.BASE58:
                return _from_base58(text)
            case BinaryForm.HEX | BinaryForm.HEX_WITH_PREFIX:
                return binascii.unhexlify(text[2:] if text[:2] in {"0x", "0X"} else text)
        raise ValueError(text)

    def write(self, data: bytes) -> str:
        """Return bytes as JSON."""
        match self:
            case BinaryForm.BASE64:
                return f'"{base64.b64encode(data).decode()}"'
            case BinaryForm.BASE58:
                return f'"{_to_base58(data)}"'
            case BinaryForm.HEX:
                return f'"{data.hex()}"'
            case BinaryForm.HEX_WITH_PREFIX:
                return f'"0x{data.hex()}"'
        return "[" + ",".join(map(str, data)) + "]"


@dataclass(frozen=True, slots=True)
class ValueForms:
    """The forms in which one flavor writes values. Texts of the default flavor are read in all of them.

    :param date: the unit of dates in microseconds, if dates are numbers; None if they are texts
    :param time: the same for times, since midnight
    :param timestamp: the same for timestamps
    :param binary: the form of bytes
    :param decimals_are_texts: True if decimals are written in quotes
    :param timestamps_are_rfc3339: True if timestamps are written with ``T`` and a zone
    :param variants_are_texts: True if a VARIANT is a text with JSON in it
    """

    date: int | None = None
    time: int | None = None
    timestamp: int | None = None
    binary: BinaryForm = BinaryForm.NUMBERS
    decimals_are_texts: bool = False
    timestamps_are_rfc3339: bool = False
    variants_are_texts: bool = False

    @property
    def has_numeric_times(self) -> bool:
        """True if dates, times or timestamps may be numbers."""
        return any(unit is not None for unit in (self.date, self.time, self.timestamp))


DEFAULT_FORMS: Final = ValueForms()
PANDAS_FORMS: Final = ValueForms(date=_MILLISECOND, time=_MILLISECOND, timestamp=_MILLISECOND)
FORMS: Final[Mapping[JsonFlavor, ValueForms]] = {
    JsonFlavor.DEFAULT: DEFAULT_FORMS,
    JsonFlavor.DEBEZIUM_MYSQL: ValueForms(
        _DAY, 1, _MILLISECOND, BinaryForm.BASE64, decimals_are_texts=True, variants_are_texts=True
    ),
    JsonFlavor.DEBEZIUM_POSTGRES: ValueForms(_DAY, 1, 1, BinaryForm.BASE64, decimals_are_texts=True, variants_are_texts=True),
    JsonFlavor.SNOWFLAKE: ValueForms(binary=BinaryForm.HEX, decimals_are_texts=True, timestamps_are_rfc3339=True),
    JsonFlavor.KAFKA_CONNECT: ValueForms(_DAY, _MILLISECOND, _MILLISECOND, BinaryForm.BASE64),
    JsonFlavor.PANDAS: PANDAS_FORMS,
    JsonFlavor.BLOCKCHAIN: ValueForms(binary=BinaryForm.BASE58),
    JsonFlavor.C_HEX: ValueForms(binary=BinaryForm.HEX_WITH_PREFIX),
}
"""The forms of values by flavor."""


def _to_base58(data: bytes) -> str:
    zeros = len(data) - len(data.lstrip(b"\0"))
    number, digits = int.from_bytes(data), []
    while number:
        number, digit = divmod(number, len(_BASE58))
        digits.append(_BASE58[digit])
    return _BASE58[0] * zeros + "".join(reversed(digits))


def _from_base58(text: str) -> bytes:
    zeros = len(text) - len(text.lstrip(_BASE58[0]))
    number = 0
    for letter in text:
        number = number * len(_BASE58) + _BASE58.index(letter)
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8)
