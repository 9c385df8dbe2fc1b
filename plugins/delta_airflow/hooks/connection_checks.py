"""The checks behind the button *Test* of a connection."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from delta_airflow.hooks.settings import ConnectionSettings, RunnerName
from delta_airflow.runners.driver import driver_program, spark_binary
from delta_core.errors import ConfigurationError, DeltaError
from delta_core.storage import REMOTE_SCHEMES, canonical_table_uri, local_path_of_uri, open_store, uri_scheme

_OptionsOf = Callable[[str], Mapping[str, str]]

# Short timeouts, because a person waits for the result.
_IMPATIENT = {"timeout": "10s", "connect_timeout": "5s"}
_HDFS_SCHEMES = ("hdfs", "webhdfs", "swebhdfs")
_BEHIND_ALL = "\U0010ffff"
_WEBHDFS_IMPATIENT = {"timeout_seconds": "10"}


def checked(settings: ConnectionSettings, options_of: _OptionsOf) -> str:
    """Check the requirements of a connection's jobs on this machine; returns a summary for people.

    Writes nothing to a store. Creates a local `work_dir`.

    Raises:
        DeltaError: a requirement is missing, or a store does not answer or refuses the request.
    """
    _check_work_dir(settings.work_dir, options_of)
    if settings.python is not None and not os.access(settings.python, os.X_OK):
        raise ConfigurationError(
            "The Python interpreter of the driver does not exist on this machine, or is not executable.",
            fix="Correct the connection's extra `python`.",
        )
    if settings.runner is RunnerName.SPARK_SUBMIT:
        if spark_binary(settings) is None:
            raise ConfigurationError(
                f"{settings.spark_binary} is not on the PATH of this machine.",
                fix="Install Spark here, or set spark_binary to an absolute path.",
            )
        driver_program()
    elif settings.runner is RunnerName.SPARK_CONNECT:
        _check_connect(settings.connect_url)
    report = [f"Jobs run with the runner {settings.runner}"]
    root = _root_to_list(settings.allowed_roots)
    if root is not None:
        listed = _list(f"The allowed root {root}", root, options_of)
        found = "can be listed" if listed else "does not exist on this machine"
        report.append(f"the allowed root {root} {found}")
    elif settings.storage_conn_id is not None:
        report.append("allowed_roots is empty, so no store was checked")
    return "; ".join(report)


def _root_to_list(roots: tuple[str, ...]) -> str | None:
    """The root to list: the first remote root, or else the first root."""
    remote = [root for root in roots if uri_scheme(root) not in (None, "file")]
    return next(iter([*remote, *roots]), None)


def _list(what: str, uri: str, options_of: _OptionsOf) -> bool:
    """List the directory at a URI with one request.

    Returns:
        False if it is a local directory that is missing on this machine, because the worker may have it.

    Raises:
        ConfigurationError: the directory cannot be listed.
    """
    try:
        canonical = canonical_table_uri(uri)
        if uri_scheme(canonical) == "file":
            try:
                with os.scandir(local_path_of_uri(canonical)) as entries:
                    next(entries, None)
            except FileNotFoundError:
                return False
            return True
        store = open_store(canonical, storage_options=_impatient(uri, options_of(uri)))
        if uri_scheme(canonical) in _HDFS_SCHEMES:
            # A recursive walk would list one directory after another until it finds a file.
            store.list_directory("", start_after=_BEHIND_ALL)
            return True
        # Requests only the first page.
        next(iter(store.walk()), None)
        return True
    except DeltaError as error:
        # The store's message ends with the path below the root, which is empty here.
        problem = error.problem.rstrip(".").removesuffix(" ''")
        raise ConfigurationError(
            f"{what} cannot be listed: {problem}.", cause=error.cause, fix=error.fix
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{what} cannot be listed.",
            cause=str(error.strerror),
            fix="Give the worker's user access to the directory, or correct its path.",
        ) from error


def _impatient(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options with short timeouts, so that the check does not hang. Timeouts that are set are kept."""
    scheme = uri_scheme(uri)
    if scheme not in REMOTE_SCHEMES:
        return dict(options)
    short = _WEBHDFS_IMPATIENT if scheme in _HDFS_SCHEMES else _IMPATIENT
    given = {name.lower() for name in options}
    return {
        **{name: value for name, value in short.items() if not any(g.endswith(name) for g in given)},
        **options,
    }


def _check_work_dir(work_dir: Path | str, options_of: _OptionsOf) -> None:
    if isinstance(work_dir, str):
        _list("The work_dir", work_dir, options_of)
        return
    try:
        work_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=work_dir):
            return
    except OSError as error:
        raise ConfigurationError(
            f"The worker cannot write to the work_dir {work_dir}.",
            cause=str(error.strerror),
            fix="Give the worker's user write access to the directory, or set work_dir to another directory.",
        ) from error


def _check_connect(connect_url: str | None) -> None:
    if connect_url is None:
        raise ConfigurationError(
            "The runner spark_connect needs a connect_url.", fix="Set it, such as sc://127.0.0.1:15002."
        )
    parts = urlsplit(connect_url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 15002), timeout=3).close()
    except OSError as error:
        raise ConfigurationError(
            "The Spark Connect server does not answer.",
            cause=str(error),
            fix="Start the server, or correct connect_url.",
        ) from error
