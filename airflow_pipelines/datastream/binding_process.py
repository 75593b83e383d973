"""Executes the file of a program so that it is bound to its pipeline, and writes how that went.

Run with the file as first argument and its own arguments after it, in the folder with the program's files.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from airflow_pipelines.datastream import binding
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import user_traceback

REPORT = "report.json"
"""The file of :data:`~airflow_pipelines.datastream.binding.BINDING_FOLDER` that says how it went."""
_HEADING = "Traceback (most recent call last):\n"


@dataclass(frozen=True)
class BindingFailure:
    """Why a program cannot be bound. Lines and columns count from 1, the last ones included; 0 for no place.

    :param type: the class of the error
    :param message: what it says
    :param file: the file of the program in which it was raised; empty for none
    :param line: where it begins
    :param column: where it begins
    :param end_line: where it ends
    :param end_column: where it ends
    :param traceback: as Python writes it, without the frames of this package
    :param module: the name of the module that could not be imported; empty for another error
    """

    type: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    traceback: str = ""
    module: str = ""


@dataclass(frozen=True)
class BindingReport:
    """How it went.

    :param failure: why the program cannot be bound; None when it was
    :param warnings: what its author should know
    """

    failure: BindingFailure | None
    warnings: tuple[str, ...] = ()


def execute_file(path: str) -> BindingFailure | None:
    """Execute the file of a program as ``python FILE`` does.

    :param path: of the file, from this folder
    :returns: why it cannot be bound; None when it was
    """
    main = ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    try:
        exec(compile(Path(path).read_bytes(), path, "exec", dont_inherit=True), vars(main))  # noqa: S102 (what this process is for)
    except SystemExit as end:
        if end.code not in (None, 0):
            return _failure(end, f"The program ended itself with sys.exit({end.code!r})")
    except BaseException as error:  # noqa: BLE001 (whatever it is, the author is told)
        return _failure(error, str(error))
    places = binding.executions()
    if not places:
        message = "The program has come to its end without executing anything: call execute() of its StreamExecutionEnvironment."
        return BindingFailure("BindingError", message, path)
    # A program may have caught the error of the second call.
    return BindingFailure("BindingError", binding.executed_twice(places), path) if len(places) > 1 else None


def _failure(error: BaseException, message: str) -> BindingFailure:
    trace = user_traceback(error)
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    module = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    places = [frame for frame in traceback.extract_tb(trace) if _is_own(frame.filename)]
    if isinstance(error, StreamProgramError):
        # The error is about the program, and how this package has found it helps nobody.
        lines = [_HEADING, *traceback.format_list(places), *traceback.format_exception_only(error)]
    else:
        lines = traceback.format_exception(type(error), error, trace)
    text = _relative("".join(lines))
    if isinstance(error, SyntaxError) and error.filename is not None:
        end = max(error.end_offset or 0, (error.offset or 1) + 1) - 1
        place = (error.lineno or 0, error.offset or 1, error.end_lineno or error.lineno or 0, end)
        return BindingFailure(type(error).__name__, error.msg, _relative(error.filename), *place, text)
    if not places:
        return BindingFailure(type(error).__name__, message, traceback=text, module=module)
    frame = places[-1]
    return BindingFailure(
        type(error).__name__,
        message,
        _relative(frame.filename),
        frame.lineno or 0,
        (frame.colno or 0) + 1,
        frame.end_lineno or frame.lineno or 0,
        frame.end_colno or 1,
        text,
        module,
    )


def _is_own(filename: str) -> bool:
    path = Path(filename)
    return not filename.startswith("<") and (not path.is_absolute() or path.is_relative_to(Path.cwd()))


def _relative(text: str) -> str:
    """Paths as the author of the program knows them."""
    return text.replace(f"{Path.cwd()}{os.sep}", "")


class _Warnings(logging.Handler):
    """Tells the author of the program what the core of streams has to say of it."""

    def emit(self, record: logging.LogRecord) -> None:
        binding.warn(record.getMessage())


def main() -> None:
    """Execute the file that the first argument names, and report."""
    logging.getLogger("airflow_pipelines.streams").addHandler(_Warnings(logging.WARNING))
    del sys.argv[0]
    path = sys.argv[0]
    sys.path.insert(0, str(Path.cwd()))
    failure = execute_file(path)
    sys.stdout.flush()
    sys.stderr.flush()
    report = Path(os.environ[binding.BINDING_FOLDER]) / REPORT
    report.write_text(json.dumps(asdict(BindingReport(failure, tuple(binding.warnings())))))
    # Threads that the program has left must not hold its end up.
    os._exit(0)


if __name__ == "__main__":
    main()
