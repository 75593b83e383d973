"""An error of a program as a message, with the information that a person needs to find the place in the program's files."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Sequence
from pathlib import Path

from airflow_pipelines.streams.failures import failed_operator, is_machinery
from airflow_pipelines.streams.worker.messages import Failure


def failure_of(error: BaseException, folders: Sequence[str]) -> Failure:
    """Return the message for an error.

    :param error: the error
    :param folders: the folders of the program's files, now or when it was bound
    :returns: the message
    """
    shown = traceback.TracebackException.from_exception(error)
    _show_user_frames(shown, folders)
    own = [frame for frame in shown.stack if not Path(frame.filename).is_absolute()]
    frame = own[-1] if own else shown.stack[-1] if shown.stack else None
    kind = type(error)
    return Failure(
        type=kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}",
        message=_text(error),
        notes=tuple(map(str, getattr(error, "__notes__", ()))),
        operator=failed_operator(error),
        place="" if frame is None or is_machinery(frame.filename) else f"{frame.filename}:{frame.lineno}",
        traceback="".join(shown.format()),
    )


def _text(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"A function of the program called sys.exit({error.code!r}): only the program's own file may."
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 (an error that has no text is still the one to tell of)
        return f"<its str() raised {type(failure).__name__}>"


def _show_user_frames(shown: traceback.TracebackException, folders: Sequence[str]) -> None:
    frames = [frame for frame in shown.stack if not is_machinery(frame.filename)]
    shown.stack = traceback.StackSummary.from_list([_shorten(frame, folders) for frame in frames or shown.stack])
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            _show_user_frames(other, folders)


def _shorten(frame: traceback.FrameSummary, folders: Sequence[str]) -> traceback.FrameSummary:
    """Return a frame whose file is relative to the folder of the program, as the program's author knows it."""
    path = Path(frame.filename)
    for folder in folders:
        if folder and path.is_relative_to(folder):
            name = str(path.relative_to(folder))
            line = frame.line or _line(name, frame.lineno or 0, folders)
            return traceback.FrameSummary(name, frame.lineno, frame.name, lookup_line=False, line=line)
    return frame


def _line(name: str, number: int, folders: Sequence[str]) -> str:
    """Return the text of a line. The file may have moved since the program was bound."""
    lines = (linecache.getline(str(Path(folder) / name), number).strip() for folder in folders if folder)
    return next((line for line in lines if line), "")
