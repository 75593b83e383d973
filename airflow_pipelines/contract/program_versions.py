"""The programs before and after a change, in a form that an approval can name: a hash of the source and a version."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import ProgramSource


class ProgramVersion(BaseModel):
    """The hash of a program's source, and its ``program_version`` if that is known. The version must not be null."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    version: Annotated[int, Field(ge=1)] | None = None

    @field_validator("version", mode="before")
    @classmethod
    def _refuse_null(cls, value: Any) -> Any:
        # The default is not validated, so this sees only explicit values.
        if value is None:
            raise ValueError("must not be null; leave it out when it is unknown")
        return value

    @classmethod
    def of(cls, source: ProgramSource, version: int | None) -> ProgramVersion:
        """Return the version object of a program with this source."""
        return cls(hash=source.digest) if version is None else cls(hash=source.digest, version=version)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form; an unknown version is left out."""
        return self.model_dump(exclude_none=True)

    def is_expected(self, expected: ProgramVersion) -> bool:
        """Return True if this is the program that ``expected`` names. The versions are compared only if both are known."""
        unknown = self.version is None or expected.version is None
        return self.hash == expected.hash and (unknown or self.version == expected.version)


class ProgramChange(BaseModel):
    """The program of the saved state and the program that continues from it: ``programs`` beside the difference to approve."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    saved: ProgramVersion
    new: ProgramVersion

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"saved": self.saved.to_wire(), "new": self.new.to_wire()}


def expected_change(value: Any) -> ProgramChange:
    """Read the programs that an approval expects.

    :param value: the JSON value, as under ``programs`` in the details of the waiting pipeline
    :returns: the change
    :raises Problem: 400 when it is null, empty or of another form
    """
    try:
        return ProgramChange.model_validate(value)
    except ValidationError as error:
        mistakes = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'programs'}: {item['msg']}" for item in error.errors(include_url=False)
        )
        raise Problem(
            ErrorCode.INVALID_PARAM,
            "'programs' must be what the waiting pipeline shows in deployment_runtime_status_details.programs: 'saved' and 'new', "
            f"each with 'hash' and 'version'. To approve whatever waits, send no body. Found: {mistakes}",
        ) from error


def unexpected_program(which: str, actual: ProgramVersion, expected: ProgramVersion) -> Problem:
    """Return the error of an approval that expects another program than the one that waits.

    :param which: the program that differs, as the start of a sentence
    :param actual: the actual program
    :param expected: the expected program
    """
    return Problem(
        ErrorCode.UNEXPECTED_PROGRAM,
        f"{which} is not the expected one, so nothing was approved: it is {_describe(actual)}, expected was {_describe(expected)}. "
        "Look at the change that waits now, and approve that",
        {"found": actual.to_wire(), "expected": expected.to_wire()},
    )


def _describe(program: ProgramVersion) -> str:
    version = "" if program.version is None else f"version {program.version}, "
    return f"{version}hash {program.hash[:12]}..."
