"""The edits of a pipeline: checks of names and metadata, and the rules for changing its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from airflow_pipelines.contract.enums import StorageStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import CompilationStatus, ResourcesStatus
from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.program.stream_files import MAX_BYTES, StreamFilesError, StreamFilesTooLarge, stream_files
from airflow_pipelines.service import configs, errors
from airflow_pipelines.service.lifecycle import compilation
from airflow_pipelines.service.records import PipelineRecord

NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_]*)?[A-Za-z0-9]")
TAG = re.compile(r"[a-zA-Z0-9 ._/|\\:=-]+")
MAX_NAME, MAX_DESCRIPTION, MAX_TAG, MAX_TAGS = 63, 300, 50, 50
MAX_PROGRAM_BYTES = 4 * 2**20
"""The maximum size of a program's text, or of its Python module, in bytes."""
MAX_ARGUMENT_BYTES = 64 * 2**10
"""The maximum size of a stream program's command line, in bytes."""

FIELDS: Final = (
    "name", "description", "tags", "program_code", "udf_rust", "udf_toml", "udf_python", "stream_files", "stream_arguments",
    "program_config", "runtime_config",
)  # fmt: skip
"""The fields that a body may have."""

_CODE: Final = ("program_code", "udf_rust", "udf_toml", "udf_python", "stream_files", "stream_arguments", "program_config")
"""The fields that make up the program."""

NEEDS_CLEARED_STORAGE: Final = (
    ("workers",), ("hosts",), ("fault_tolerance",), ("resources", "storage_mb_max"), ("resources", "namespace"),
    ("resources", "storage_class"), ("clock_timezone_offset",),
)  # fmt: skip
"""The paths in runtime_config that the stored state depends on."""


@dataclass(frozen=True, slots=True)
class PipelineEdit:
    """The checked fields of a body that are to be set; None leaves a field unchanged."""

    name: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | None = None
    program_code: str | None = None
    udf_rust: str | None = None
    udf_toml: str | None = None
    udf_python: str | None = None
    stream_files: tuple[SourceFile, ...] | None = None
    stream_arguments: tuple[str, ...] | None = None
    program_config: dict[str, Any] | None = None
    runtime_config: dict[str, Any] | None = None


def parse_edit(body: Any, platform_version: str) -> PipelineEdit:
    """Check a PATCH body; missing and null fields stay unchanged."""
    values = _fields(body)
    return PipelineEdit(
        name=None if values.get("name") is None else check_name(values["name"]),
        description=None if values.get("description") is None else _check_description(values["description"]),
        tags=None if values.get("tags") is None else _check_tags(values["tags"]),
        program_code=text_field(values, "program_code"),
        udf_rust=text_field(values, "udf_rust"),
        udf_toml=text_field(values, "udf_toml"),
        udf_python=text_field(values, "udf_python"),
        stream_files=files_field(values),
        stream_arguments=arguments_field(values),
        program_config=_check_optional(values.get("program_config"), lambda value: configs.program_config(value, platform_version)),
        runtime_config=_check_optional(values.get("runtime_config"), configs.runtime_config),
    )


def parse_full(body: Any, platform_version: str, default_name: str | None = None) -> PipelineEdit:
    """Check a POST or PUT body: the program is required, missing optional fields get their defaults.

    :param body: the JSON body
    :param platform_version: this release, for the defaults
    :param default_name: the name if the body has none
    :raises Problem: when a field is missing or wrong
    """
    values = _fields(body)
    name = values.get("name", default_name)
    if name is None:
        raise errors.invalid_param("The field 'name' is missing")
    files = files_field(values) or ()
    if values.get("program_code") is None and not files:
        raise errors.invalid_param(
            "The field 'program_code' is missing: give the program's SQL text (it may be empty), or the files "
            "of a stream program ('stream_files')"
        )
    return PipelineEdit(
        name=check_name(name),
        description=_check_description(values.get("description") or ""),
        tags=_check_tags(values.get("tags") or []),
        program_code=text_field(values, "program_code") or "",
        udf_rust=text_field(values, "udf_rust") or "",
        udf_toml=text_field(values, "udf_toml") or "",
        udf_python=text_field(values, "udf_python") or "",
        stream_files=files,
        stream_arguments=arguments_field(values) or (),
        program_config=configs.program_config(values.get("program_config"), platform_version),
        runtime_config=configs.runtime_config(values.get("runtime_config")),
    )


def new_record(edit: PipelineEdit, pipeline_id: UUID, platform_version: str, now: datetime) -> PipelineRecord:
    """Return the record of a new pipeline from :func:`parse_full`."""
    return PipelineRecord(
        id=pipeline_id,
        name=edit.name or "",
        description=edit.description or "",
        tags=edit.tags or (),
        created_at=now,
        revision=1,
        version=1,
        program_version=1,
        refresh_version=1,
        platform_version=platform_version,
        runtime_config=edit.runtime_config or {},
        program_code=edit.program_code or "",
        udf_rust=edit.udf_rust or "",
        udf_toml=edit.udf_toml or "",
        udf_python=edit.udf_python or "",
        stream_files=edit.stream_files or (),
        stream_arguments=edit.stream_arguments or (),
        program_config=edit.program_config or {},
        program_status=CompilationStatus.PENDING,
        program_status_since=now,
        program_error=None,
        program_info=None,
        deployment_error=None,
        storage_status=StorageStatus.CLEARED,
        storage_status_details=None,
        deployment_resources_status=ResourcesStatus.STOPPED,
        deployment_resources_status_details=None,
        deployment_resources_status_since=now,
        deployment_resources_desired_status=ResourcesStatus.STOPPED,
        deployment_resources_desired_status_since=now,
        deployment_runtime_status=None,
        deployment_runtime_status_details=None,
        deployment_runtime_status_since=None,
        deployment_runtime_desired_status=None,
        deployment_runtime_desired_status_since=None,
        deployment_initial=None,
        deployment_id=None,
        bootstrap_policy=None,
        silent_bootstrap=None,
        concurrent_bootstrap=None,
        deployer=None,
        host_id=None,
        deployment_config=None,
        provisioning_since=None,
        compile_claimed_at=None,
        consumed_sequence=0,
    )


def apply_edit(record: PipelineRecord, edit: PipelineEdit, platform_version: str, now: datetime) -> PipelineRecord:
    """Return the record with an edit applied. An edit without a change increments no counter.

    :param record: the pipeline
    :param edit: the fields to change
    :param platform_version: this release
    :param now: the time of the change
    :raises Problem: when the pipeline's state forbids the edit
    """
    core = {
        field: value
        for field in ("name", *_CODE, "runtime_config")
        if (value := getattr(edit, field)) is not None and value != getattr(record, field)
    }
    if edit.description is not None:
        record = replace(record, description=edit.description)
    if edit.tags is not None:
        record = replace(record, tags=edit.tags)
    # If the compiler itself failed, setting the program again retries the compilation.
    gives_program = edit.program_code is not None or edit.stream_files is not None
    retry = gives_program and record.program_status is CompilationStatus.SYSTEM_ERROR and record.fully_stopped
    if not core:
        return compilation.reset_program(record, now) if retry else record
    if not record.fully_stopped:
        names = ", ".join(f"`{name}`" for name in sorted(core))
        raise errors.restricted(
            ErrorCode.UPDATE_RESTRICTED_TO_STOPPED,
            record,
            f"{names} cannot be changed",
            "Stop it first; description and tags can be changed any time",
        )
    _check_storage(record, core)
    code_like = bool(core.keys() & {*_CODE}) or record.platform_version != platform_version
    record = replace(
        record, **core, platform_version=platform_version, version=record.version + 1, refresh_version=record.refresh_version + 1
    )
    if code_like:
        record = replace(compilation.reset_program(record, now), program_version=record.program_version + 1)
    return compilation.reset_program(record, now) if retry else record


def update_runtime(record: PipelineRecord, platform_version: str, now: datetime) -> PipelineRecord:
    """Move the pipeline to this release's runtime, and compile it again if that is another one."""
    if not record.fully_stopped:
        raise errors.restricted(ErrorCode.UPDATE_RESTRICTED_TO_STOPPED, record, "Its runtime cannot be updated", "Stop it first")
    if record.platform_version == platform_version:
        return record
    return replace(
        compilation.reset_program(record, now),
        platform_version=platform_version,
        version=record.version + 1,
        program_version=record.program_version + 1,
        refresh_version=record.refresh_version + 1,
    )


def pretend_platform_version(record: PipelineRecord, platform_version: str) -> PipelineRecord:
    """Pretend that another release has compiled the program, to test the consequences.

    :param record: the pipeline
    :param platform_version: the version of that release
    """
    if record.platform_version == platform_version:
        return record
    return replace(record, platform_version=platform_version, refresh_version=record.refresh_version + 1)


def check_name(name: Any) -> str:
    """Check a pipeline's name.

    :param name: the value in a body, of any type
    :returns: the name
    :raises Problem: when it is not a valid name
    """
    if not isinstance(name, str):
        raise errors.invalid_param("The field 'name' must be a string")
    if not name:
        raise Problem(ErrorCode.EMPTY_NAME, "A pipeline's name must not be empty")
    if len(name) > MAX_NAME:
        raise Problem(ErrorCode.TOO_LONG_NAME, f"A pipeline's name has at most {MAX_NAME} characters, this one has {len(name)}")
    if not NAME.fullmatch(name):
        raise Problem(
            ErrorCode.NAME_DOES_NOT_MATCH_PATTERN,
            f"'{name}' is no pipeline name: use letters, digits, '-' and '_', beginning and ending with a letter or digit",
            {"name": name, "pattern": f"^{NAME.pattern}$"},
        )
    return name


def _fields(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise errors.invalid_param("The body must be a JSON object with the pipeline's fields")
    unknown = sorted(str(key) for key in body if key not in FIELDS)
    if unknown:
        raise errors.invalid_param(f"Unknown fields {', '.join(unknown)}; a pipeline has {', '.join(FIELDS)}", {"unknown": unknown})
    return body


def text_field(values: Mapping[str, Any], field: str) -> str | None:
    """Return a program text of a body.

    :param values: the body
    :param field: the name of the field
    :returns: the text; None if it is missing
    :raises Problem: when it is not a text, or too large
    """
    value = values.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise errors.invalid_param(f"The field '{field}' must be a string")
    errors.check_size(f"The field '{field}'", value, MAX_PROGRAM_BYTES, "make several pipelines of it, or keep data in a table")
    return value


def files_field(values: Mapping[str, Any]) -> tuple[SourceFile, ...] | None:
    """Return the files of a stream program in a body.

    :param values: the body
    :returns: the files; empty for no stream program, None if the field is missing
    :raises Problem: when it is not an object of texts by paths, a path is invalid, or the files are too large
    """
    value = values.get("stream_files")
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise errors.invalid_param(
            "The field 'stream_files' must be an object with the text of each file by its path, the program's first file first"
        )
    try:
        return stream_files(value)
    except StreamFilesTooLarge as error:
        raise Problem(ErrorCode.PAYLOAD_TOO_LARGE, f"The field 'stream_files': {error}", {"limit": MAX_BYTES}) from error
    except StreamFilesError as error:
        raise errors.invalid_param(f"The field 'stream_files': {error}") from error


def arguments_field(values: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the command line of a stream program in a body.

    :param values: the body
    :returns: the arguments; None if the field is missing
    :raises Problem: when it is not a list of texts, or too large
    """
    value = values.get("stream_arguments")
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(argument, str) for argument in value):
        raise errors.invalid_param("The field 'stream_arguments' must be a list of strings")
    advice = "give the program what it needs as a file, or through a source"
    errors.check_size("The field 'stream_arguments'", "\n".join(value), MAX_ARGUMENT_BYTES, advice)
    return tuple(value)


def _check_description(value: Any) -> str:
    if not isinstance(value, str):
        raise errors.invalid_param("The field 'description' must be a string")
    if len(value) > MAX_DESCRIPTION:
        raise Problem(
            ErrorCode.TOO_LONG_DESCRIPTION, f"A description has at most {MAX_DESCRIPTION} characters, this one has {len(value)}"
        )
    return value


def _check_tags(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise errors.invalid_param("The field 'tags' must be a list of strings")
    if len(value) > MAX_TAGS:
        raise Problem(ErrorCode.TOO_MANY_TAGS, f"A pipeline has at most {MAX_TAGS} tags, these are {len(value)}")
    for tag in value:
        if not isinstance(tag, str) or len(tag) > MAX_TAG or not TAG.fullmatch(tag):
            raise Problem(
                ErrorCode.INVALID_TAG,
                f"{tag!r} is no tag: use up to {MAX_TAG} letters, digits, spaces and . _ / | \\ : = -",
                {"tag": tag},
            )
    return tuple(value)


def _check_optional(value: Any, check: Any) -> Any:
    return None if value is None else check(value)


def _check_storage(record: PipelineRecord, core: Mapping[str, Any]) -> None:
    if record.storage_status is StorageStatus.CLEARED:
        return
    not_allowed = ["`name`"] if "name" in core else []
    if "runtime_config" in core:
        not_allowed += [
            f"`runtime_config.{'.'.join(path)}`"
            for path in NEEDS_CLEARED_STORAGE
            if _at(record.runtime_config, path) != _at(core["runtime_config"], path)
        ]
    if not_allowed:
        raise Problem(
            ErrorCode.EDIT_RESTRICTED_TO_CLEARED_STORAGE,
            f"{', '.join(not_allowed)} cannot be changed while the storage of pipeline '{record.name}' is "
            f"{record.storage_status.value}: what is stored depends on it. Clear the storage first",
            {"not_allowed": not_allowed},
        )


def _at(config: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = config
    for key in path:
        value = (value or {}).get(key)
    return value
