"""The validation of ``runtime_config`` and ``program_config`` in requests, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.runtime_config import RuntimeConfig, effects
from airflow_pipelines.contract.validation import mistakes

C = TypeVar("C", bound=BaseModel)


class ProgramConfig(BaseModel):
    """The compiler configuration of a program."""

    model_config = ConfigDict(extra="forbid")

    profile: Literal["dev", "unoptimized", "optimized", "optimized_symbols"] | None = None
    cache: bool = True
    runtime_version: str | None = None
    use_platform_compiler: bool = False


def runtime_config(value: Any) -> dict[str, Any]:
    """Check a runtime configuration and fill in defaults.

    :param value: the value in a request; None means all defaults
    :returns: the configuration in wire form
    :raises Problem: ``InvalidRuntimeConfig`` when a value is invalid
    """
    return _validate(RuntimeConfig, value, ErrorCode.INVALID_RUNTIME_CONFIG, "runtime_config").to_wire()


def program_config(value: Any, platform_version: str) -> dict[str, Any]:
    """Check a program configuration and fill in defaults.

    :param value: the value in a request; None means all defaults
    :param platform_version: the release of this service
    :returns: the configuration in wire form
    :raises Problem: ``InvalidProgramConfig`` when a value is invalid
    """
    config = _validate(ProgramConfig, value, ErrorCode.INVALID_PROGRAM_CONFIG, "program_config")
    if config.runtime_version not in {None, platform_version}:
        raise Problem(
            ErrorCode.INVALID_PROGRAM_CONFIG,
            f"program_config.runtime_version '{config.runtime_version}' is not available: leave it out, "
            f"because this service runs {platform_version} only",
        )
    return config.model_dump(mode="json")


def without_effect(wire: Mapping[str, Any]) -> list[str]:
    """Describe the settings of a runtime configuration that have no effect here, for its author.

    :param wire: a configuration as returned by :func:`runtime_config`
    :returns: one line per such field that differs from its default, and per unknown tweak
    """
    defaults = RuntimeConfig().to_wire()
    lines = [
        f"runtime_config.{path} has no effect: {effect.text}"
        for path, effect in effects()
        if not effect.active and at(wire, path) not in (None, at(defaults, path))
    ]
    tweaks = RuntimeConfig.from_stored(wire).dev_tweaks
    known = ", ".join(type(tweaks).model_fields)
    return lines + [
        f"runtime_config.dev_tweaks.{name} has no effect: it is not known here (known: {known})" for name in tweaks.unknown()
    ]


def at(config: Any, path: str) -> Any:
    """Return the value at a path of a configuration in wire form.

    :param config: the configuration
    :param path: names, separated by dots
    :returns: the value; None if there is none
    """
    for name in path.split("."):
        if not isinstance(config, Mapping):
            return None
        config = config.get(name)
    return config


def _validate(model: type[C], value: Any, code: ErrorCode, what: str) -> C:
    if value is not None and not isinstance(value, Mapping):
        raise Problem(code, f"{what} must be a JSON object, not {type(value).__name__}")
    try:
        return model.model_validate({} if value is None else dict(value))
    except ValidationError as error:
        entries = mistakes(model, error)
        text = "; ".join(each.text for each in entries)
        raise Problem(code, f"Invalid {what}: {text}", {"errors": [each.path for each in entries]}) from None
