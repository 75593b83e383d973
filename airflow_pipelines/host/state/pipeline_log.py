"""The log of a pipeline: one readable line per event, in the file that the logs endpoint follows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from airflow_pipelines.contract.log_files import LOG_BYTES, LOG_FILES
from airflow_pipelines.engine.spark.failures import full_trace

_BURST = 10
_WINDOW_S = 10.0


class PipelineLog:
    """A log of lines ``time level message`` (UTC) in the file ``path``. Safe to use from any thread.

    Every line goes through ``redact``, which removes secrets from a text.
    """

    def __init__(self, path: str | Path, pipeline: str) -> None:
        self.path = Path(path)
        self.redact: Callable[[str], str] = str
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(self.path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
        formatter = _Formatter(lambda text: self.redact(text))
        handler.setFormatter(formatter)
        # Not from getLogger: this log belongs to one incarnation and must not be configured from elsewhere.
        self._logger = logging.Logger(pipeline, logging.INFO)
        self._logger.addHandler(handler)
        self._handler = handler
        self._lock = threading.Lock()
        self._recent: dict[str, tuple[float, int]] = {}

    def info(self, message: str, *args: object) -> None:
        """Log a normal event."""
        self._logger.info(message, *args)

    def warning(self, message: str, *args: object) -> None:
        """Log a condition that ends nothing, but that a user may want to change."""
        self._logger.warning(message, *args)

    def failure(self, message: str, *args: object, cause: BaseException | None = None) -> None:
        """Log an error that ends a connector or the incarnation; with ``cause``, also the stack of the cause."""
        self._logger.error(message, *args, exc_info=cause)

    def warn_limited(self, topic: str, message: str, *args: object) -> None:
        """Log a warning that may come in masses: at most ten per ``topic`` and ten seconds are written, then their number."""
        now = time.monotonic()
        with self._lock:
            start, count = self._recent.get(topic, (now, 0))
            suppressed = 0
            if now - start > _WINDOW_S:
                suppressed, start, count = max(0, count - _BURST), now, 0
            self._recent[topic] = (start, count + 1)
        if suppressed:
            self._logger.warning("%s: %d more messages were left out", topic, suppressed)
        if count < _BURST:
            self._logger.warning(message, *args)

    def close(self) -> None:
        """Close the file; later lines are dropped."""
        self._logger.removeHandler(self._handler)
        self._logger.addHandler(logging.NullHandler())
        self._handler.close()


class _Formatter(logging.Formatter):
    """A formatter that writes stack traces including those of Java, without secrets."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s [%(name)s] %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return self._redact(super().format(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802  logging's name
        """Return the stack traces of an error."""
        return full_trace(ei[1])
