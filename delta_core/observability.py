"""Logging and counters: standard library only, nothing configured at import.

Modules log through `logging.getLogger(__name__)` with structured fields in `extra`; `configure_logging`
is for programs (the CLI, job drivers), never for library code. Counters are plain in-process numbers
that a program exports in any format.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, TextIO

from delta_core.errors import escape_control_characters
from delta_core.forks import renew_lock_in_children

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

COMMIT_RECOVERED_TOTAL = "commit_recovered_total"
"""Commits whose response was lost and that were found in the log by their transaction id."""

COMMIT_UNKNOWN_TOTAL = "commit_unknown_total"
"""Commits whose outcome could not be determined."""

COMMIT_SPURIOUS_EXISTS_TOTAL = "commit_spurious_exists_total"
"""Times a store reported that a version exists, but the version could not be read."""

COMMIT_CONFLICT_TOTAL = "commit_conflict_total"
"""Commits that failed because a concurrent commit conflicts."""

COMMIT_REBASE_TOTAL = "commit_rebase_total"
"""Times a commit was rebased on another writer's version."""

COMMIT_TOTAL = "commit_total"
"""Commits that succeeded."""

CHECKPOINT_FAILED_TOTAL = "checkpoint_failed_total"
"""Checkpoints that could not be written after a commit. The commit itself is valid."""


class Metrics:
    """Named counters of one process. Thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    def increment(self, name: str, amount: int = 1) -> None:
        """Add `amount` to a counter. A new counter starts at zero."""
        with self._lock:
            self._counts[name] += amount

    def value(self, name: str) -> int:
        """The counter's value; zero when it was never incremented."""
        with self._lock:
            return self._counts[name]

    def snapshot(self) -> dict[str, int]:
        """All counters by name, sorted."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    def reset(self) -> None:
        """Set every counter back to zero."""
        with self._lock:
            self._counts.clear()


METRICS = Metrics()
"""The process's counters."""


def structured_fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields that the caller passed in `extra`."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}


class TextFormatter(logging.Formatter):
    """One line per record: time, level, logger, message, then `key=value` fields.

    The lines of a traceback are indented, so an error message cannot imitate another record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line; a traceback follows on its own lines."""
        fields = "".join(f" {key}={_plain(value)}" for key, value in structured_fields(record).items())
        head = f"{self.formatTime(record)} {record.levelname} {record.name}: "
        line = head + escape_control_characters(record.getMessage() + fields)
        if record.exc_info:
            traceback = self.formatException(record.exc_info)
            line += "".join(f"\n  {escape_control_characters(part)}" for part in traceback.split("\n"))
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        document: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **structured_fields(record),
        }
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)


def configure_logging(*, level: str = "INFO", json_lines: bool = False, stream: TextIO | None = None) -> None:
    """Send deltaward's log records to a stream. For programs; calling it again replaces the handler.

    Args:
        level: a standard level name.
        json_lines: one JSON object per line, instead of `key=value` lines.
        stream: where to; standard error by default.
    """
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter() if json_lines else TextFormatter())
    handler.set_name("deltaward")
    for name in ("delta_core", "spark_jobs", "delta_airflow"):
        logger = logging.getLogger(name)
        logger.handlers = [h for h in logger.handlers if h.get_name() != "deltaward"] + [handler]
        logger.setLevel(level.upper())


def _plain(value: object) -> str:
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, default=str)
    string = str(value)
    return json.dumps(string) if " " in string else string
