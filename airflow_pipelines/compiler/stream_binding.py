"""The execution of a stream program's files in a process of its own, to find the parts of the program."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_pipelines.common.cpu_time import OwnTime
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.messages import COMPILATION_ERROR, ProgramErrors, ProgramMessage
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.program.spans import Span
from airflow_pipelines.program.stream_files import StreamFilesError, write_stream_files
from airflow_pipelines.program.streams import StreamProgram
from airflow_pipelines.streams.deploying.binding import BINDING_FOLDER, DESCRIPTION, PLAN
from airflow_pipelines.streams.deploying.binding_process import REPORT
from airflow_pipelines.streams.loaded_code import LoadedCodeChangedError, refuse_changed_code

EXECUTION_SECONDS = 90.0
"""The seconds that the script of a program may take, with its imports. Time in which it waits for a processor does not count."""
GUARD = 36.0
"""The factor of this limit after which it is ended in any case."""
LOOK_S = 0.25
"""The seconds between two checks of the process."""
MOST_OUTPUT = 20_000
"""The maximum number of characters of a script's output that are shown."""
_ROOT = str(Path(__file__).parents[2])
_MAIN = (
    # Use the package of this process, even if another version is installed.
    f"import sys; sys.path.insert(0, {_ROOT!r}); import airflow_pipelines; sys.path.append(sys.path.pop(0)); "
    "from airflow_pipelines.streams.deploying.binding_process import main; main()"
)
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""The environment variables of this process that a script gets. The others may be secrets of the host."""
_PYTHON_ERROR = "Error parsing Python"
_log = logging.getLogger("airflow_pipelines.compiler")


@dataclass(frozen=True, slots=True)
class BoundStreams:
    """A stream program that was executed.

    :param program: the parts of the program, with the types of columns as it wrote them
    :param warnings: the warnings for its author
    """

    program: StreamProgram
    warnings: tuple[ProgramMessage, ...] = ()


def bind_streams(files: Sequence[SourceFile], arguments: Sequence[str] = (), limit_s: float = EXECUTION_SECONDS) -> BoundStreams:
    """Execute a stream program.

    :param files: its files: the first one is executed, it may import and read the others
    :param arguments: its command line
    :param limit_s: the seconds that it may run, without those in which it waits for a processor
    :returns: the parts of the program
    :raises ProgramErrors: if it cannot be executed, or asks for a feature that a pipeline cannot have
    :raises Problem: if it would be executed by another version of this package than that of the host
    """
    try:
        refuse_changed_code()
    except LoadedCodeChangedError as error:
        # The program may be correct; another host can check it.
        raise Problem(ErrorCode.COMPILER_UNAVAILABLE, str(error)) from error
    texts = {file.path: file.text for file in files}
    limit_s = min(limit_s, EXECUTION_SECONDS)
    with tempfile.TemporaryDirectory(prefix="airflow-pipelines-") as temporary:
        folder, result = Path(temporary) / "program", Path(temporary) / "result"
        result.mkdir()
        try:
            write_stream_files(files, folder)
        except StreamFilesError as error:
            raise ProgramErrors([ProgramMessage(None, COMPILATION_ERROR, str(error))]) from error
        environment = {
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            # Keeps stdout and stderr in order.
            "PYTHONUNBUFFERED": "1",
            "HOME": temporary,
            "TMPDIR": temporary,
            BINDING_FOLDER: str(result),
        }
        command = [sys.executable, "-P", "-c", _MAIN, files[0].path, *arguments]
        ended = _run(command, folder, environment, limit_s)
        report = _read(result / REPORT)
        if report is None:
            raise ProgramErrors(
                [_make_message(texts, files[0].path, f"{ended.how} while its script was executed{_quote_output(ended.output)}")]
            )
        if report["failure"] is not None:
            raise ProgramErrors([_failure(report["failure"], texts, ended.output)])
        if ended.output:
            _log.info("%s printed while it was executed: %s", files[0].path, ended.output)
        program = StreamProgram.from_json(_read(result / DESCRIPTION) or {}, (result / PLAN).read_bytes())
        warnings = [ProgramMessage(None, COMPILATION_ERROR, text, warning=True) for text in report["warnings"]]
        return BoundStreams(program, tuple(warnings))


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of a process.

    :param how: the beginning of a sentence
    :param output: its output, or the end of it if that is long
    """

    how: str
    output: str


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float) -> _Ended:
    """Run a process until it ends, and kill the processes that it has started."""
    # A child process that the script leaves behind could hold a pipe open for ever, but a file does not block.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code = _wait(process, limit_s)
            how = f"The program ended with exit code {code}" if code >= 0 else f"The program was ended by {_name_signal(-code)}"
        except subprocess.TimeoutExpired:
            how = f"The program has not come to its end within {limit_s:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - 4 * MOST_OUTPUT))
        return _Ended(how, output.read().decode("utf-8", "replace").strip()[-MOST_OUTPUT:].replace(f"{folder}{os.sep}", ""))


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> int:
    """Wait for the end of a process.

    :returns: its exit code
    :raises subprocess.TimeoutExpired: if it takes too long
    """
    until, own_time = time.monotonic() + GUARD * limit_s, OwnTime(process.pid)
    while True:
        try:
            return process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            own = own_time.look()
            if own.used + own.idle > limit_s or time.monotonic() > until:
                raise


def _name_signal(number: int) -> str:
    name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
    return f"{name}, as the system ends one that takes too much memory" if number == signal.SIGKILL else name


def _read(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None


def _failure(failure: Mapping[str, Any], texts: Mapping[str, str], output: str) -> ProgramMessage:
    kind, message = failure["type"], failure["message"]
    is_syntax = kind in _SYNTAX_ERRORS
    told = [message if kind in _OWN_ERRORS else f"{kind}: {message}", *_find_hints(failure["module"], texts)]
    text = ". ".join(part.rstrip(".") for part in told)
    if failure["traceback"] and not is_syntax:
        text += f"\n{failure['traceback'].rstrip()}"
    span = Span(failure["line"], failure["column"], failure["end_line"], failure["end_column"]) if failure["line"] else None
    return _make_message(
        texts, failure["file"], text + _quote_output(output), span, _PYTHON_ERROR if is_syntax else COMPILATION_ERROR
    )


_SYNTAX_ERRORS = frozenset({"SyntaxError", "IndentationError", "TabError"})
_REQUIREMENTS = "set_python_requirements"
_OWN_ERRORS = frozenset({"BindingError", "StreamProgramError", "SystemExit"})


def _find_hints(module: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield advice about a module that does not exist."""
    if not module:
        return
    top = module.partition(".")[0]
    if any(_REQUIREMENTS in text for text in texts.values()):
        yield (
            "The script is executed before what set_python_requirements() names is installed, for functions alone. Import"
            f" {top} in the functions that use it, not at the top of a file, or install its package for the host. If it is the"
            f" program's own, add {top}.py to its files (they are: {', '.join(texts)})"
        )
        return
    yield (
        f"Add {top}.py to the files of the program if it is the program's own (they are: {', '.join(texts)}). If it belongs to a"
        " package, install that for the host, or import it in the functions that use it and name the package with"
        " set_python_requirements()"
    )


def _quote_output(output: str) -> str:
    return f"\nIt printed:\n{output}" if output else ""


def _make_message(
    texts: Mapping[str, str], file: str, text: str, span: Span | None = None, error_type: str = COMPILATION_ERROR
) -> ProgramMessage:
    """Return an error with its place in a file of the program."""
    source = texts.get(file)
    snippet = "" if span is None or source is None else SourceText(source).snippet(span)
    return ProgramMessage(span, error_type, text, snippet, file=file)
