"""What the button *Test* of a connection looks at."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from delta_airflow.hooks.settings import ConnectionSettings, RunnerName
from delta_airflow.runners.driver import driver_program, spark_binary
from delta_core.errors import ConfigurationError, DeltaError
from delta_core.storage.open import open_store
from delta_core.storage.remote_uri import REMOTE_SCHEMES
from delta_core.storage.uri import canonical_table_uri, local_path_of_uri, uri_scheme

_OptionsOf = Callable[[str], Mapping[str, str]]

# A person waits for the answer.
_IMPATIENT = {"timeout": "10s", "connect_timeout": "5s"}
_HDFS_SCHEMES = ("hdfs", "webhdfs", "swebhdfs")
_BEHIND_ALL = "\U0010ffff"
_WEBHDFS_IMPATIENT = {"timeout_seconds": "10"}


def checked(settings: ConnectionSettings, options_of: _OptionsOf) -> str:
    """Check what a connection's jobs will need on this machine, and say what was found.

    Writes nothing into a store. A local `work_dir` is made.

    Raises:
        DeltaError: something is missing, or a store does not answer or refuses.
    """
    _check_work_dir(settings.work_dir, options_of)
    if settings.python is not None and not os.access(settings.python, os.X_OK):
        raise ConfigurationError("The driver's interpreter does not exist on this machine")
    if settings.runner is RunnerName.SPARK_SUBMIT:
        if spark_binary(settings) is None:
            raise ConfigurationError(f"{settings.spark_binary} is not on this machine's PATH")
        driver_program()
    elif settings.runner is RunnerName.SPARK_CONNECT:
        _check_connect(settings.connect_url)
    said = [f"Jobs run with the runner {settings.runner}"]
    root = _root_to_list(settings.allowed_roots)
    if root is not None:
        _list(f"The allowed root {root}", root, options_of)
        said.append(f"the allowed root {root} can be listed")
    elif settings.storage_conn_id is not None:
        said.append("no allowed_roots, so no store was asked")
    return "; ".join(said)


def _root_to_list(roots: tuple[str, ...]) -> str | None:
    """The root to list: the first in another store, else the first."""
    remote = [root for root in roots if uri_scheme(root) not in (None, "file")]
    return next(iter([*remote, *roots]), None)


def _list(what: str, uri: str, options_of: _OptionsOf) -> None:
    """List what is below a URI by one request. A local directory may be missing: other machines may have it.

    Raises:
        ConfigurationError: it cannot be listed.
    """
    try:
        canonical = canonical_table_uri(uri)
        if uri_scheme(canonical) == "file":
            with suppress(FileNotFoundError), os.scandir(local_path_of_uri(canonical)) as entries:
                next(entries, None)
            return
        store = open_store(canonical, storage_options=_impatient(uri, options_of(uri)))
        if uri_scheme(canonical) in _HDFS_SCHEMES:
            # A walk would ask for one directory after another until there is a file.
            store.list_directory("", start_after=_BEHIND_ALL)
            return
        # The first page alone.
        next(iter(store.walk()), None)
    except DeltaError as error:
        # The store names the path below the root, which is empty.
        problem = error.problem.rstrip(".").removesuffix(" ''")
        raise ConfigurationError(
            f"{what} cannot be listed: {problem}", cause=error.cause, fix=error.fix
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{what} cannot be listed", cause=str(error.strerror)) from error


def _impatient(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options with which a store that does not answer is given up soon; those that are given stay."""
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
        raise ConfigurationError("The work_dir cannot be written", cause=str(error.strerror)) from error


def _check_connect(connect_url: str | None) -> None:
    if connect_url is None:
        raise ConfigurationError(
            "The runner spark_connect needs a connect_url", fix="Set it, such as sc://127.0.0.1:15002"
        )
    parts = urlsplit(connect_url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 15002), timeout=3).close()
    except OSError as error:
        raise ConfigurationError(
            "The Spark Connect server does not answer",
            cause=str(error),
            fix="Start it, or correct connect_url",
        ) from error
