"""Which program a change leads from and to, in a form that an approval can name: a hash of its source and its version."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import ProgramSource


class ProgramVersion(BaseModel):
    """One program: the hash of its source, and its ``program_version`` where that is known. None must not be given for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    version: Annotated[int, Field(ge=1)] | None = None

    @field_validator("version", mode="before")
    @classmethod
    def _given(cls, value: Any) -> Any:
        # The default is not validated: this sees only what somebody wrote.
        if value is None:
            raise ValueError("must not be null; leave it out when it is unknown")
        return value

    @classmethod
    def of(cls, source: ProgramSource, version: int | None) -> ProgramVersion:
        """The program with this source."""
        return cls(hash=source.digest) if version is None else cls(hash=source.digest, version=version)

    def to_wire(self) -> dict[str, Any]:
        """The JSON form; a version that is unknown is left out."""
        return self.model_dump(exclude_none=True)

    def is_expected(self, expected: ProgramVersion) -> bool:
        """Whether this is the program that ``expected`` names. A version that one of the two does not know is not compared."""
        unknown = self.version is None or expected.version is None
        return self.hash == expected.hash and (unknown or self.version == expected.version)


class ProgramChange(BaseModel):
    """The program of the saved state and the one that is to go on from it: ``programs`` beside the difference to approve."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    saved: ProgramVersion
    new: ProgramVersion

    def to_wire(self) -> dict[str, Any]:
        """The JSON form."""
        return {"saved": self.saved.to_wire(), "new": self.new.to_wire()}


def expected_change(value: Any) -> ProgramChange:
    """Read the programs that an approval expects.

    :param value: the JSON value, as the details of the waiting pipeline have it under ``programs``
    :returns: the change
    :raises Problem: 400 when it is null, empty or of another form
    """
    try:
        return ProgramChange.model_validate(value)
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'programs'}: {item['msg']}" for item in error.errors(include_url=False)
        )
        raise Problem(
            ErrorCode.INVALID_PARAM,
            "'programs' must be what the waiting pipeline shows in deployment_runtime_status_details.programs: 'saved' and 'new', "
            f"each with 'hash' and 'version'. To approve whatever waits, send no body. Found: {found}",
        ) from error


def unexpected_program(which: str, found: ProgramVersion, expected: ProgramVersion) -> Problem:
    """The answer to an approval that expects another program than there is.

    :param which: which of the two programs it is about, as the start of a sentence
    :param found: what there is
    :param expected: what was expected
    """
    return Problem(
        ErrorCode.UNEXPECTED_PROGRAM,
        f"{which} is not the expected one, so nothing was approved: it is {_named(found)}, expected was {_named(expected)}. "
        "Look at the change that waits now, and approve that",
        {"found": found.to_wire(), "expected": expected.to_wire()},
    )


def _named(program: ProgramVersion) -> str:
    version = "" if program.version is None else f"version {program.version}, "
    return f"{version}hash {program.hash[:12]}..."
