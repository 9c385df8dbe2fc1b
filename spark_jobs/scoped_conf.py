"""Session settings for the time of an action.

Spark reads a session's settings when an action runs, and a session is shared: by the user's own queries
and by several of our jobs in threads. So a setting is put in place by the first job that needs it and
restored by the last one, whatever the order in which they end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Held:
    value: str
    before: str | None
    holders: int


_LOCK = threading.Lock()
_HELD: dict[tuple[str, str], _Held] = {}


@contextmanager
def scoped_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Hold `settings` in the session while the block runs.

    Raises:
        ConfigurationError: another job of this session holds a different value at the same moment.
    """
    identity = session_identity(spark)
    with _LOCK:
        for key, value in settings.items():
            held = _HELD.get((identity, key))
            if held is not None and held.value != value:
                raise ConfigurationError(
                    f"Another job of this session needs {key}={held.value}, this one {value}.",
                    fix="Run the two jobs one after the other, or in two sessions.",
                )
        for key, value in settings.items():
            held = _HELD.get((identity, key))
            if held is None:
                _HELD[identity, key] = _Held(value, spark.conf.get(key, None), 1)
                spark.conf.set(key, value)
            else:
                held.holders += 1
    try:
        yield
    finally:
        with _LOCK:
            for key in settings:
                held = _HELD[identity, key]
                held.holders -= 1
                if held.holders == 0:
                    del _HELD[identity, key]
                    _restore(spark, key, held.before)


def session_identity(spark: SparkSession) -> str:
    """A text that two Python objects of one session share and two sessions do not."""
    session_id = getattr(spark, "session_id", None)
    if isinstance(session_id, str):
        return session_id
    return f"classic-{id(spark)}"


def _restore(spark: SparkSession, key: str, before: str | None) -> None:
    if before is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, before)
