"""The process that executes the file of a program to bind it to its pipeline, and writes a report.

Run it with the file as first argument and the file's own arguments after it, in the folder with the program's files.
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

from airflow_pipelines.streams.deploying import binding
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import user_traceback

REPORT = "report.json"
"""The file of :data:`~airflow_pipelines.streams.deploying.binding.BINDING_FOLDER` that contains the report."""
_HEADING = "Traceback (most recent call last):\n"


@dataclass(frozen=True)
class BindingFailure:
    """The reason why a program cannot be bound.

    Lines and columns count from 1, and the end is inclusive; 0 means no place.

    :param type: the class of the error
    :param message: the message of the error
    :param file: the file of the program in which it was raised; empty for none
    :param line: the first line
    :param column: the first column
    :param end_line: the last line
    :param end_column: the last column
    :param traceback: the traceback as Python writes it, without the frames of this package
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
    """The outcome of binding a program.

    :param failure: the reason why the program cannot be bound; None if it was bound
    :param warnings: the warnings for its author
    """

    failure: BindingFailure | None
    warnings: tuple[str, ...] = ()


def execute_file(path: str) -> BindingFailure | None:
    """Execute the file of a program as ``python FILE`` does.

    :param path: the path of the file, relative to this folder
    :returns: the reason why the program cannot be bound; None if it was bound
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
        # The error is about the program, so frames of this package do not help.
        lines = [_HEADING, *traceback.format_list(places), *traceback.format_exception_only(error)]
    else:
        lines = traceback.format_exception(type(error), error, trace)
    text = _make_relative("".join(lines))
    if isinstance(error, SyntaxError) and error.filename is not None:
        end = max(error.end_offset or 0, (error.offset or 1) + 1) - 1
        place = (error.lineno or 0, error.offset or 1, error.end_lineno or error.lineno or 0, end)
        return BindingFailure(type(error).__name__, error.msg, _make_relative(error.filename), *place, text)
    if not places:
        return BindingFailure(type(error).__name__, message, traceback=text, module=module)
    frame = places[-1]
    return BindingFailure(
        type(error).__name__,
        message,
        _make_relative(frame.filename),
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


def _make_relative(text: str) -> str:
    """Return a text with paths relative to the current folder, as the author of the program knows them."""
    return text.replace(f"{Path.cwd()}{os.sep}", "")


class _Warnings(logging.Handler):
    """A handler that passes log messages of the core of streams to the author of the program."""

    def emit(self, record: logging.LogRecord) -> None:
        binding.warn(record.getMessage())


def main() -> None:
    """Execute the file that the first argument names, and write the report."""
    logging.getLogger("airflow_pipelines.streams").addHandler(_Warnings(logging.WARNING))
    del sys.argv[0]
    path = sys.argv[0]
    sys.path.insert(0, str(Path.cwd()))
    failure = execute_file(path)
    sys.stdout.flush()
    sys.stderr.flush()
    report = Path(os.environ[binding.BINDING_FOLDER]) / REPORT
    report.write_text(json.dumps(asdict(BindingReport(failure, tuple(binding.warnings())))))
    # Threads that the program has left running must not delay the exit.
    os._exit(0)


if __name__ == "__main__":
    main()
