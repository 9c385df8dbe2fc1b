"""What a connection of type `deltaward` says, checked.

Extras are read by allow-list: a name that is not known is refused, so that a typing error cannot turn
into a default, and nothing that a connection holds reaches a driver by accident.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.storage.option_names import ALL_OPTIONS, is_option
from delta_core.storage.store_options import option_strings
from delta_core.storage.uri import canonical_table_uri, local_path_of_uri, uri_scheme


class RunnerName(StrEnum):
    """The engines a job can be handed to."""

    INLINE = "inline"
    SPARK_SUBMIT = "spark_submit"
    SPARK_CONNECT = "spark_connect"


STORAGE_OPTIONS = ALL_OPTIONS
"""Storage options that a connection may hold, in any spelling that stores take: what the core's stores know.
Each goes to the store, never into a spec or an argument."""

_OPTIONS = "a JSON object of texts, numbers, true and false"
_SPARK_BINARIES = frozenset({"spark-submit", "spark2-submit", "spark3-submit"})
_PYTHON_NAME = re.compile(r"python(\d+(\.\d+)?)?")
_MASTER = re.compile(r"(local(\[[\d*,]+\])?|yarn|(spark|k8s)://\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """The settings of one connection.

    Attributes:
        runner: the engine used when an operator names none.
        master: Spark master for spark_submit; None leaves it to Spark's own configuration.
        connect_url: `sc://host:port` for spark_connect, without a token.
        connect_token: the Connect server's bearer token (the connection's password).
        python: absolute path of the driver's interpreter; None is the worker's own.
        driver_socket: where a driver host of this machine listens, for spark_connect; None starts each
            driver anew.
        spark_binary: spark-submit's name on PATH or its absolute path.
        work_dir: where specs, results and states of runs are kept: a local directory, or the canonical URI of
            one in another store.
        allowed_roots: table URIs must lie under one of these; empty allows every table.
        storage_options: for the tables' store; once `storage_conn_id` is resolved, with those of that
            connection beneath.
        storage_conn_id: a connection of another provider that says where the store is and who asks.
        storage_type: that connection's type, once it is resolved.
        deadline_seconds: a job is stopped after this long; None sets no limit.
    """

    runner: RunnerName = RunnerName.INLINE
    master: str | None = None
    connect_url: str | None = None
    connect_token: str | None = field(default=None, repr=False)
    python: str | None = None
    driver_socket: str | None = None
    spark_binary: str = "spark-submit"
    work_dir: Path | str = field(default_factory=lambda: default_work_dir())
    allowed_roots: tuple[str, ...] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    storage_conn_id: str | None = None
    storage_type: str | None = None
    deadline_seconds: float | None = None


def default_work_dir() -> Path:
    """`deltaward` in Airflow's home."""
    return Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser().absolute() / "deltaward"


def parse_settings(extra: Mapping[str, Any], *, password: str | None = None) -> ConnectionSettings:
    """The settings that a connection's extra and password hold. Empty values count as not given.

    Raises:
        ConfigurationError: an extra is not known or its value is not valid. Values are not in the message.
    """
    given = {name: value for name, value in extra.items() if value not in (None, "", [], {})}
    unknown = sorted(set(given) - set(_PARSERS))
    if unknown:
        raise ConfigurationError(
            f"The connection has extras that deltaward does not know: {', '.join(unknown)}",
            fix=f"Remove them; known are {', '.join(sorted(_PARSERS))}",
        )
    parsed = {name: _PARSERS[name](value) for name, value in given.items()}
    return ConnectionSettings(**parsed, connect_token=password or None)


def parse_runner(value: object) -> RunnerName:
    """A runner's name.

    Raises:
        ConfigurationError: there is no such runner.
    """
    try:
        return RunnerName(str(value))
    except ValueError as error:
        raise _invalid("runner", f"one of {', '.join(RunnerName)}") from error


def _invalid(name: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"The connection's extra {name} is not valid", fix=f"Set it to {expected}")


def _string(name: str, value: object) -> str:
    if not isinstance(value, str) or "\0" in value or "\n" in value:
        raise _invalid(name, "one line of text")
    return value.strip()


def _master(value: object) -> str:
    text = _string("master", value)
    if not _MASTER.fullmatch(text):
        raise _invalid("master", "local[N], yarn, spark://host:port or k8s://...")
    return text


def _connect_url(value: object) -> str:
    text = _string("connect_url", value)
    expected = "sc://host:port; the token belongs into the connection's password"
    try:
        parts = urlsplit(text)
        secret = parts.password is not None or "token=" in text.lower()
        valid = parts.scheme == "sc" and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError as error:
        raise _invalid("connect_url", expected) from error
    if secret or not valid:
        raise _invalid("connect_url", expected)
    return text


def _python(value: object) -> str:
    path = Path(_string("python", value))
    # Anything may be written into a connection; only an interpreter may be started from it.
    if not path.is_absolute() or not _PYTHON_NAME.fullmatch(path.name):
        raise _invalid("python", "the absolute path of a Python interpreter")
    return str(path)


def _driver_socket(value: object) -> str:
    text = _string("driver_socket", value)
    if not Path(text).is_absolute():
        raise _invalid("driver_socket", "the absolute path of a driver host's socket")
    return text


def _spark_binary(value: object) -> str:
    text = _string("spark_binary", value)
    path = Path(text)
    if path.name not in _SPARK_BINARIES or not (text == path.name or path.is_absolute()):
        raise _invalid("spark_binary", f"{', '.join(sorted(_SPARK_BINARIES))} or an absolute path to one")
    return text


def _work_dir(value: object) -> Path | str:
    text = _string("work_dir", value)
    expected = "an absolute path, or a URI of a directory in a store, such as s3://bucket/runs"
    if (scheme := uri_scheme(text)) is not None:
        try:
            uri = canonical_table_uri(text)
        except InvalidUriError as error:
            raise _invalid("work_dir", expected) from error
        return local_path_of_uri(uri) if scheme == "file" else uri
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise _invalid("work_dir", expected)
    return path


def _allowed_roots(value: object) -> tuple[str, ...]:
    entries: object = value.split(",") if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise _invalid("allowed_roots", "a list of URIs, or URIs with commas between them")
    return tuple(entry.strip() for entry in entries if entry.strip())


def _storage_options(value: object) -> dict[str, str]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise _invalid("storage_options", _OPTIONS) from error
    if not isinstance(value, dict):
        raise _invalid("storage_options", _OPTIONS)
    unknown = sorted(name for name in map(str, value) if not is_option(name))
    if unknown:
        raise ConfigurationError(
            f"The connection has storage options that are not allowed: {', '.join(unknown)}",
            fix=f"Remove them; allowed are {', '.join(sorted(STORAGE_OPTIONS))}",
        )
    try:
        return option_strings(value)
    except ConfigurationError as error:
        raise _invalid("storage_options", _OPTIONS) from error


def _storage_conn_id(value: object) -> str:
    return _string("storage_conn_id", value)


def _deadline_seconds(value: object) -> float:
    try:
        seconds = (
            float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else 0.0
        )
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise _invalid("deadline_seconds", "a number of seconds greater than 0")
    return seconds


_PARSERS: Mapping[str, Callable[[object], Any]] = {
    "runner": parse_runner,
    "master": _master,
    "connect_url": _connect_url,
    "python": _python,
    "driver_socket": _driver_socket,
    "spark_binary": _spark_binary,
    "work_dir": _work_dir,
    "allowed_roots": _allowed_roots,
    "storage_options": _storage_options,
    "storage_conn_id": _storage_conn_id,
    "deadline_seconds": _deadline_seconds,
}

EXTRA_NAMES = frozenset(_PARSERS)
"""The extras that a connection may have."""
