"""The answer of a host to followers of a relation: an Arrow IPC stream of rows with weights, and a head that describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa

_KEY: Final = b"airflow_pipelines.changes"


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The head of an answer, which describes it.

    :param until: the place that a reader reaches with the answer, and names in its next request
    :param whole: True if the rows are the whole contents, and not the changes since the place that the reader named
    :param rows: the approximate number of rows
    :param behind: the approximate number of further changes when the answer was made
    :param types: the SQL types of the columns, as text
    """

    until: str
    whole: bool
    rows: int
    behind: int
    types: Mapping[str, str]

    def to_metadata(self) -> dict[bytes, bytes]:
        """Return the head as the metadata of the stream's schema."""
        return {_KEY: json.dumps(asdict(self)).encode()}

    @classmethod
    def of(cls, schema: pa.Schema) -> AnswerHead:
        """Return the head in the schema of a stream.

        :raises ValueError: if it is not such an answer
        """
        text = (schema.metadata or {}).get(_KEY)
        if text is None:
            raise ValueError("the answer does not say what it is")
        return cls(**json.loads(text))
