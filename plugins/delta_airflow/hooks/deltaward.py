"""The hook: from a connection of type `deltaward` to typed settings, run directories and runners."""

from __future__ import annotations

import importlib
import os
import socket
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from delta_airflow.hooks.settings import ConnectionSettings, RunnerName, parse_settings
from delta_airflow.runners.base import Runner
from delta_airflow.runners.driver import driver_program, spark_binary
from delta_airflow.runners.run_directory import RunDirectory, read_result_file
from delta_airflow.spark_arguments import SparkArguments
from delta_core.errors import ConfigurationError, DeltaError
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.uris import uris_of
from delta_core.storage.option_names import is_secret
from delta_core.storage.uri import canonical_table_uri, uri_scheme

_ENGINES = {
    RunnerName.SPARK_SUBMIT: "delta_airflow.runners.spark_submit:SparkSubmitCommand",
    RunnerName.SPARK_CONNECT: "delta_airflow.runners.spark_connect:SparkConnectCommand",
}


class DeltawardHook(BaseHook):
    """Gives operators what a connection holds: settings, a place for a run's files, a runner.

    Args:
        conn_id: the connection; its extras are read by allow-list.
        spark: what an operator says to Spark, for its runner.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "deltaward_default"
    conn_type = "deltaward"
    hook_name = "Deltaward"

    def __init__(self, conn_id: str = default_conn_name, *, spark: SparkArguments | None = None) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.spark = spark

    @cached_property
    def settings(self) -> ConnectionSettings:
        """The connection's settings.

        Raises:
            ConfigurationError: the connection does not exist or is not valid.
        """
        try:
            connection = self.get_connection(self.conn_id)
        except AirflowNotFoundException as error:
            raise _no_connection(self.conn_id) from error
        return settings_of(connection)

    @classmethod
    async def aload(cls, conn_id: str) -> DeltawardHook:
        """The hook with its settings read, for callers on an event loop (triggers).

        Raises:
            ConfigurationError: the connection does not exist or is not valid.
        """
        hook = cls(conn_id)
        try:
            connection = await cls.aget_connection(conn_id)
        except AirflowNotFoundException as error:
            raise _no_connection(conn_id) from error
        hook.__dict__["settings"] = settings_of(connection)
        return hook

    def get_conn(self) -> ConnectionSettings:
        """The connection's settings."""
        return self.settings

    def table_uri(self, uri: str) -> str:
        """The canonical URI of a table that this connection may be used for.

        Raises:
            ConfigurationError: the path is relative (a worker's directory means nothing to a DAG) or the
                table lies outside the connection's `allowed_roots`.
            InvalidUriError: no store serves the URI.
        """
        if uri_scheme(uri) is None and not os.path.isabs(uri):
            raise ConfigurationError(
                f"The table URI {uri!r} is relative", fix="Give an absolute path or a file: URI"
            )
        canonical = canonical_table_uri(uri)
        if not self._allows(canonical):
            raise self._outside(f"the table {uri!r}")
        return canonical

    def require_allowed(self, params: Mapping[str, Any]) -> None:
        """Hold every URI among a job's parameters against the connection's `allowed_roots`.

        Raises:
            ConfigurationError: one lies outside, or is relative.
            InvalidUriError: no store serves one, so where it leads cannot be told.
        """
        if not self.settings.allowed_roots:
            return
        for place, uri in uris_of(params):
            relative = uri_scheme(uri) is None and not os.path.isabs(uri)
            if relative or not self._allows(canonical_table_uri(uri)):
                raise self._outside(f"{place} {uri!r}")

    def _allows(self, canonical: str) -> bool:
        roots = [canonical_table_uri(root).rstrip("/") for root in self.settings.allowed_roots]
        return not roots or any(f"{canonical}/".startswith(f"{root}/") for root in roots)

    def _outside(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"The connection {self.conn_id} may not be used for {what}",
            cause="It lies outside the connection's allowed_roots",
            fix="Use another connection, or add its root to allowed_roots",
        )

    def get_runner(self, name: RunnerName | None = None, *, directory: RunDirectory) -> Runner:
        """A runner for one job, of engine `name` or else of the connection's.

        Raises:
            ConfigurationError: the connection lacks what the engine needs.
        """
        settings = self.settings
        chosen = name or settings.runner
        if chosen is RunnerName.INLINE:
            # Loaded here: only a task that runs inline needs the maintenance code and its imports.
            inline = importlib.import_module("delta_airflow.runners.inline")
            runner: Runner = inline.InlineRunner(
                directory=directory, storage_options=settings.storage_options
            )
            return runner
        if self.spark is not None and self.spark.given():
            provider = importlib.import_module("delta_airflow.runners.spark_provider")
            builder = provider.command_of(chosen, self.spark, settings)
        else:
            module, _, attribute = _ENGINES[chosen].partition(":")
            builder = getattr(importlib.import_module(module), attribute)(settings)
        process = importlib.import_module("delta_airflow.runners.process")
        runner = process.ProcessRunner(builder, directory=directory, log=self.log)
        return runner

    def read_result(self, result_uri: str) -> JobResult:
        """The result that an operator's XCom names, read on a worker that sees the same `work_dir`.

        Raises:
            ConfigurationError: the URI leaves the connection's `work_dir`.
            JobFailedError: the file is missing or damaged.
        """
        parts = urlsplit(result_uri)
        path = Path(unquote(parts.path)).resolve()
        work_dir = self.settings.work_dir.resolve()
        if parts.scheme != "file" or not path.is_relative_to(work_dir):
            raise ConfigurationError(
                "The result URI lies outside the connection's work_dir",
                fix="Pass the `result_uri` of an operator's XCom, with the same connection",
            )
        return read_result_file(path)

    def test_connection(self) -> tuple[bool, str]:
        """Check the settings and what the engine needs. Starts no job and reads no table."""
        try:
            settings = self.settings
            _check_work_dir(settings.work_dir)
            if settings.python is not None and not os.access(settings.python, os.X_OK):
                raise ConfigurationError("The driver's interpreter does not exist on this machine")
            if settings.runner is RunnerName.SPARK_SUBMIT:
                if spark_binary(settings) is None:
                    raise ConfigurationError(f"{settings.spark_binary} is not on this machine's PATH")
                driver_program()
            elif settings.runner is RunnerName.SPARK_CONNECT:
                _check_connect(settings.connect_url)
        except DeltaError as error:
            return False, str(error)
        return True, f"Jobs run with the runner {settings.runner}"


def settings_of(connection: Connection) -> ConnectionSettings:
    """The settings of an Airflow connection; its secrets are masked in logs from here on.

    Raises:
        ConfigurationError: the connection is not valid.
    """
    extra: dict[str, Any] = connection.extra_dejson
    for name in ("host", "schema", "login", "port"):
        if getattr(connection, name):
            raise ConfigurationError(
                f"The connection sets {name}, which deltaward does not use", fix="Leave the field empty"
            )
    settings = parse_settings(extra, password=connection.password)
    for name, value in settings.storage_options.items():
        if is_secret(name):
            mask_secret(value)
    if settings.connect_token:
        mask_secret(settings.connect_token)
    return settings


def _no_connection(conn_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"There is no connection {conn_id}",
        fix=(
            "Add one of type deltaward, in the UI or as the environment variable "
            f'AIRFLOW_CONN_{conn_id.upper()}=\'{{"conn_type": "deltaward"}}\''
        ),
    )


def _check_work_dir(work_dir: Path) -> None:
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
