"""Messages in Avro as their writers make them."""

from __future__ import annotations

import io
import struct
from typing import Any

from fastavro import parse_schema, schemaless_writer


def encoded(schema: Any, record: Any, number: int | None = 0) -> bytes:
    """A record as a message.

    :param number: of its schema; None for a bare record
    """
    stream = io.BytesIO()
    if number is not None:
        stream.write(struct.pack(">bI", 0, number))
    schemaless_writer(stream, parse_schema(schema), record)
    return stream.getvalue()
