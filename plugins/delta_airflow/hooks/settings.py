"""The validated settings of a connection of type `deltaward`.

Only extras on an allow-list are accepted. An unknown name is an error, so that a misspelled setting does not
silently use the default, and no other content of a connection reaches a driver by accident.
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
from delta_core.storage import canonical_table_uri, local_path_of_uri, uri_scheme
from delta_core.storage.option_names import ALL_OPTIONS, is_option
from delta_core.storage.store_options import option_strings


class RunnerName(StrEnum):
    """The engines that can run a job."""

    INLINE = "inline"
    SPARK_SUBMIT = "spark_submit"
    SPARK_CONNECT = "spark_connect"


STORAGE_OPTIONS = ALL_OPTIONS
"""Storage options that a connection may hold, in any spelling that the stores of `delta_core` accept.
They are passed to the store, and never appear in a job specification or an argument."""

_OPTIONS = "a JSON object whose values are strings, numbers, true or false"
_SPARK_BINARIES = frozenset({"spark-submit", "spark2-submit", "spark3-submit"})
_PYTHON_NAME = re.compile(r"python(\d+(\.\d+)?)?")
_MASTER = re.compile(r"(local(\[[\d*,]+\])?|yarn|(spark|k8s)://\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """The settings of one connection.

    Attributes:
        runner: the engine for operators that do not choose one.
        master: Spark master for spark_submit; None: Spark's own configuration decides.
        connect_url: `sc://host:port` for spark_connect, without a token.
        connect_token: the Connect server's bearer token (the connection's password).
        python: absolute path of the driver's interpreter; None: the worker's own interpreter.
        spark_binary: spark-submit's name on PATH or its absolute path.
        work_dir: where the specifications, results and states of runs are stored: a local directory, or the
            canonical URI of a directory in another store.
        allowed_roots: table URIs must be under one of these; empty allows every table.
        storage_options: options of the tables' store. Once `storage_conn_id` is resolved, they include the
            options of that connection.
        storage_conn_id: a connection of another provider with the store's address and credentials.
        storage_type: the type of that connection, once it is resolved.
        deadline_seconds: the time after which a job is stopped; None sets no limit.
    """

    runner: RunnerName = RunnerName.INLINE
    master: str | None = None
    connect_url: str | None = None
    connect_token: str | None = field(default=None, repr=False)
    python: str | None = None
    spark_binary: str = "spark-submit"
    work_dir: Path | str = field(default_factory=lambda: default_work_dir())
    allowed_roots: tuple[str, ...] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    storage_conn_id: str | None = None
    storage_type: str | None = None
    deadline_seconds: float | None = None


def default_work_dir() -> Path:
    """The default `work_dir`: the directory `deltaward` in Airflow's home."""
    return Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser().absolute() / "deltaward"


def parse_settings(extra: Mapping[str, Any], *, password: str | None = None) -> ConnectionSettings:
    """The settings in a connection's extra and password. Empty values count as not given.

    Raises:
        ConfigurationError: an extra is unknown or its value is not valid. The message contains no values.
    """
    given = {name: value for name, value in extra.items() if value not in (None, "", [], {})}
    unknown = sorted(set(given) - set(_PARSERS))
    if unknown:
        raise ConfigurationError(
            f"The connection has extras that deltaward does not know: {', '.join(unknown)}.",
            fix=f"Remove them. The known extras are {', '.join(sorted(_PARSERS))}.",
        )
    parsed = {name: _PARSERS[name](value) for name, value in given.items()}
    return ConnectionSettings(**parsed, connect_token=password or None)


def _invalid(name: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"The connection's extra {name} is not valid.", fix=f"Set it to {expected}.")


def _runner(value: object) -> RunnerName:
    try:
        return RunnerName(str(value))
    except ValueError as error:
        raise _invalid("runner", f"one of {', '.join(RunnerName)}") from error


def _string(name: str, value: object) -> str:
    if not isinstance(value, str) or "\0" in value or "\n" in value:
        raise _invalid(name, "a string of one line")
    return value.strip()


def _master(value: object) -> str:
    master = _string("master", value)
    if not _MASTER.fullmatch(master):
        raise _invalid("master", "local[N], yarn, spark://host:port or k8s://...")
    return master


def _connect_url(value: object) -> str:
    url = _string("connect_url", value)
    expected = "sc://host:port, and put the token into the connection's password"
    try:
        parts = urlsplit(url)
        secret = parts.password is not None or "token=" in url.lower()
        valid = parts.scheme == "sc" and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError as error:
        raise _invalid("connect_url", expected) from error
    if secret or not valid:
        raise _invalid("connect_url", expected)
    return url


def _python(value: object) -> str:
    path = Path(_string("python", value))
    # A connection can hold any path, but it may only start a Python interpreter.
    if not path.is_absolute() or not _PYTHON_NAME.fullmatch(path.name):
        raise _invalid("python", "the absolute path of a Python interpreter")
    return str(path)


def _spark_binary(value: object) -> str:
    binary = _string("spark_binary", value)
    path = Path(binary)
    if path.name not in _SPARK_BINARIES or not (binary == path.name or path.is_absolute()):
        raise _invalid(
            "spark_binary", f"{', '.join(sorted(_SPARK_BINARIES))} or the absolute path of one of them"
        )
    return binary


def _work_dir(value: object) -> Path | str:
    place = _string("work_dir", value)
    expected = "an absolute path, or a URI of a directory in a store, such as s3://bucket/runs"
    if (scheme := uri_scheme(place)) is not None:
        try:
            uri = canonical_table_uri(place)
        except InvalidUriError as error:
            raise _invalid("work_dir", expected) from error
        return local_path_of_uri(uri) if scheme == "file" else uri
    path = Path(place).expanduser()
    if not path.is_absolute():
        raise _invalid("work_dir", expected)
    return path


def _allowed_roots(value: object) -> tuple[str, ...]:
    expected = "a list of absolute paths and URIs, as JSON or separated by commas"
    entries: object = value
    if isinstance(value, str):
        try:
            entries = json.loads(value) if value.lstrip().startswith("[") else value.split(",")
        except ValueError as error:
            raise _invalid("allowed_roots", expected) from error
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise _invalid("allowed_roots", expected)
    roots = tuple(entry.strip() for entry in entries if entry.strip())
    for root in roots:
        try:
            canonical_table_uri(root)
        except InvalidUriError as error:
            raise _invalid("allowed_roots", expected) from error
        if uri_scheme(root) is None and not os.path.isabs(os.path.expanduser(root)):
            raise _invalid("allowed_roots", expected)
    return roots


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
            f"The connection has storage options that are not allowed: {', '.join(unknown)}.",
            fix=f"Remove them. The allowed options are {', '.join(sorted(STORAGE_OPTIONS))}.",
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
    "runner": _runner,
    "master": _master,
    "connect_url": _connect_url,
    "python": _python,
    "spark_binary": _spark_binary,
    "work_dir": _work_dir,
    "allowed_roots": _allowed_roots,
    "storage_options": _storage_options,
    "storage_conn_id": _storage_conn_id,
    "deadline_seconds": _deadline_seconds,
}

EXTRA_NAMES = frozenset(_PARSERS)
"""The extras that a connection may have."""
