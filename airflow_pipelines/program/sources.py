"""The source of a program, of one kind or of several."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class ProgramKind(StrEnum):
    """The kinds of source that a program may have; it may have several."""

    SQL = "sql"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a program's source; ``path`` is relative, with slashes."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """The source of a program.

    :param sql: the SQL text
    :param python_functions: the text of the Python module with the functions that the SQL text declares without a body
    :param stream_files: the files of a stream program; the first is executed, the others support it
    :param stream_arguments: the command line of the stream program
    """

    sql: str
    python_functions: str = ""
    stream_files: tuple[SourceFile, ...] = ()
    stream_arguments: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[ProgramKind]:
        """The kinds of source that the program has. A program without any text is an empty SQL program."""
        if not self.stream_files:
            return frozenset({ProgramKind.SQL})
        return frozenset({ProgramKind.STREAMS, *([ProgramKind.SQL] if self.sql.strip() else [])})

    @property
    def digest(self) -> str:
        """A SHA-256 in hexadecimal of all texts, including white space."""
        # Each text is preceded by its length, so that different texts cannot be concatenated to the same bytes.
        sql = _encode(self.sql)
        content = b"%d\n%b%b" % (len(sql), sql, _encode(self.python_functions))
        if self.stream_files:
            content = b"%d\n%b" % (len(content), content)
        for file in self.stream_files:
            path, text = _encode(file.path), _encode(file.text)
            content += b"%d %d\n%b%b" % (len(path), len(text), path, text)
        for argument in map(_encode, self.stream_arguments):
            # An argument has one number, where a file has two.
            content += b"%d\n%b" % (len(argument), argument)
        return hashlib.sha256(content).hexdigest()

    def with_fields(
        self,
        *,
        sql: str | None = None,
        python_functions: str | None = None,
        stream_files: tuple[SourceFile, ...] | None = None,
        stream_arguments: tuple[str, ...] | None = None,
    ) -> ProgramSource:
        """Return the source with other texts; None leaves one as it is."""
        return replace(
            self,
            sql=self.sql if sql is None else sql,
            python_functions=self.python_functions if python_functions is None else python_functions,
            stream_files=self.stream_files if stream_files is None else stream_files,
            stream_arguments=self.stream_arguments if stream_arguments is None else stream_arguments,
        )

    @property
    def stream_texts(self) -> dict[str, str]:
        """The texts of the stream files by their paths, in order."""
        return {file.path: file.text for file in self.stream_files}

    def to_wire(self) -> dict[str, Any]:
        """Return the fields of the REST contract and of deployments, with fields of a stream program only if there is one."""
        return {"program_code": self.sql, "udf_python": self.python_functions, **self._streams_to_json()}

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> ProgramSource:
        """Return the source that :meth:`to_wire` serialised, among other fields.

        :raises KeyError: when there is no SQL text
        """
        return cls(fields["program_code"], fields.get("udf_python", ""), _files(fields), _arguments(fields))

    def to_stored(self) -> dict[str, Any]:
        """Return the fields of checkpoints and journals."""
        return {"program": self.sql, "udf_python": self.python_functions, **self._streams_to_json()}

    @classmethod
    def from_stored(cls, fields: Mapping[str, Any]) -> ProgramSource:
        """Return the source that :meth:`to_stored` serialised, among other fields.

        :raises KeyError: when there is no SQL text
        """
        return cls(fields["program"], fields.get("udf_python", ""), _files(fields), _arguments(fields))

    def _streams_to_json(self) -> dict[str, Any]:
        files = {"stream_files": self.stream_texts} if self.stream_files else {}
        return files | ({"stream_arguments": list(self.stream_arguments)} if self.stream_arguments else {})


def _files(fields: Mapping[str, Any]) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(path, text) for path, text in fields.get("stream_files", {}).items())


def _arguments(fields: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(fields.get("stream_arguments", ()))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
