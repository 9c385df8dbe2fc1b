"""Session settings for the duration of an action.

Spark reads a session's settings when an action runs. The user's queries and several jobs in threads share a
session. So the first job that needs a setting sets it, and the last job restores it, in whatever order they
end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import ConfigurationError
from delta_core.forks import ForkSafeLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Held:
    value: str
    previous_value: str | None
    holders: int


_LOCK = ForkSafeLock()
_HELD: dict[tuple[str, str], _Held] = {}


@contextmanager
def scoped_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set `settings` in the session while the `with` block runs, and then restore the previous values.

    Raises:
        ConfigurationError: another job of this session holds a different value at the same time.
    """
    identity = session_identity(spark)
    with _LOCK.held():
        for key, value in settings.items():
            held = _HELD.get((identity, key))
            if held is not None and held.value != value:
                raise ConfigurationError(
                    f"Another job of this session needs {key}={held.value}, and this job needs "
                    f"{key}={value}.",
                    fix="Run the jobs one after the other, or in different sessions.",
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
        with _LOCK.held():
            for key in settings:
                held = _HELD[identity, key]
                held.holders -= 1
                if held.holders == 0:
                    del _HELD[identity, key]
                    _restore(spark, key, held.previous_value)


def session_identity(spark: SparkSession) -> str:
    """An identifier that is equal for all Python objects of one session, and different for other sessions."""
    session_id = getattr(spark, "session_id", None)
    if isinstance(session_id, str):
        return session_id
    return f"classic-{id(spark)}"


def _restore(spark: SparkSession, key: str, previous_value: str | None) -> None:
    if previous_value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, previous_value)
