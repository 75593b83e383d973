"""What a host answers to those who follow a relation: an Arrow IPC stream of rows with weights, which says what it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa

_KEY: Final = b"airflow_pipelines.changes"


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """What an answer is.

    :param until: the place that a reader has reached with it, which it names when it asks again
    :param whole: whether the rows are the contents, and not what was changed since the place that the reader named
    :param rows: about how many rows there are
    :param behind: about how many more changes there were when the answer was made
    :param types: the SQL types of the columns, as texts
    """

    until: str
    whole: bool
    rows: int
    behind: int
    types: Mapping[str, str]

    def to_metadata(self) -> dict[bytes, bytes]:
        """As the metadata of the stream's schema."""
        return {_KEY: json.dumps(asdict(self)).encode()}

    @classmethod
    def of(cls, schema: pa.Schema) -> AnswerHead:
        """That of a stream with a schema.

        :raises ValueError: when it is not such an answer
        """
        text = (schema.metadata or {}).get(_KEY)
        if text is None:
            raise ValueError("the answer does not say what it is")
        return cls(**json.loads(text))
