"""The hook for connections of type `deltaward`. It provides typed settings, run directories and runners."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from delta_airflow.hooks.connection_checks import checked
from delta_airflow.hooks.connection_extra import extra_of
from delta_airflow.hooks.run_state import RunState
from delta_airflow.hooks.settings import ConnectionSettings, RunnerName, parse_settings
from delta_airflow.hooks.storage_connections import require_store_of, secrets_of, with_storage_of
from delta_airflow.runners.base import Runner
from delta_airflow.runners.run_directory import RunDirectory, read_result_file, read_state_file
from delta_airflow.runners.stored_run import StoredRun, read_stored_result, read_stored_state
from delta_airflow.spark_arguments import SparkArguments
from delta_core.errors import ConfigurationError, DeltaError
from delta_core.jobs import JobResult
from delta_core.jobs.uris import uris_of
from delta_core.storage import canonical_table_uri, options_for, uri_scheme

_ENGINES = {
    RunnerName.SPARK_SUBMIT: "delta_airflow.runners.spark_submit:SparkSubmitCommand",
    RunnerName.SPARK_CONNECT: "delta_airflow.runners.spark_connect:SparkConnectCommand",
}


class DeltawardHook(BaseHook):
    """Gives operators the settings of a connection, a directory for a run's files, and a runner.

    Args:
        conn_id: the connection; only extras on an allow-list are accepted.
        spark: an operator's Spark arguments, for its runner.
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
        """The connection's settings, with the storage options of the connection that `storage_conn_id` names.

        Raises:
            ConfigurationError: the connection, or its storage connection, does not exist or is not valid.
        """
        try:
            connection = self.get_connection(self.conn_id)
        except AirflowNotFoundException as error:
            raise _no_connection(self.conn_id) from error
        settings = settings_of(connection)
        if settings.storage_conn_id is None:
            return settings
        try:
            referenced = self.get_connection(settings.storage_conn_id)
        except AirflowNotFoundException as error:
            raise _no_storage_connection(self.conn_id, settings.storage_conn_id) from error
        return _masked(with_storage_of(settings, referenced))

    @classmethod
    async def aload(cls, conn_id: str) -> DeltawardHook:
        """A hook whose settings are already read, for callers on an event loop (triggers).

        Raises:
            ConfigurationError: the connection, or its storage connection, does not exist or is not valid.
        """
        try:
            connection = await cls.aget_connection(conn_id)
        except AirflowNotFoundException as error:
            raise _no_connection(conn_id) from error
        settings = settings_of(connection)
        if settings.storage_conn_id is not None:
            try:
                referenced = await cls.aget_connection(settings.storage_conn_id)
            except AirflowNotFoundException as error:
                raise _no_storage_connection(conn_id, settings.storage_conn_id) from error
            settings = _masked(with_storage_of(settings, referenced))
        hook = cls(conn_id)
        hook.__dict__["settings"] = settings
        return hook

    def get_conn(self) -> ConnectionSettings:
        """The connection's settings."""
        return self.settings

    def storage_options(self, table_uri: str) -> Mapping[str, str]:
        """The storage options for a table or another directory; empty for a local path.

        Raises:
            ConfigurationError: the connection's `storage_conn_id` is for a different kind of store.
        """
        require_store_of(self.settings, table_uri)
        return options_for(table_uri, self.settings.storage_options)

    def table_uri(self, uri: str) -> str:
        """Check that the connection may be used for a table, and return the canonical URI of the table.

        Raises:
            ConfigurationError: the path is relative (the worker's current directory has no meaning for a
                DAG), the table is outside the connection's `allowed_roots`, or its `storage_conn_id` is for
                a different kind of store than the URI.
            InvalidUriError: no store supports the URI.
        """
        if uri_scheme(uri) is None and not os.path.isabs(uri):
            raise ConfigurationError(
                f"The table URI {uri!r} is a relative path.", fix="Give an absolute path or a URI."
            )
        canonical = canonical_table_uri(uri)
        if not self._allows(canonical):
            raise self._outside(f"the table {uri!r}")
        require_store_of(self.settings, canonical)
        return canonical

    def require_allowed(self, params: Mapping[str, Any]) -> None:
        """Check every URI among a job's parameters against the connection's `allowed_roots`.

        Raises:
            ConfigurationError: a URI is outside the roots, or is a relative path.
            InvalidUriError: no store supports a URI, so its location cannot be checked.
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
            f"The connection {self.conn_id} may not be used for {what}.",
            cause="The location is outside the connection's allowed_roots.",
            fix="Use a connection that allows the location, or add its root to allowed_roots.",
        )

    def get_runner(self, name: RunnerName | None = None, *, directory: RunDirectory) -> Runner:
        """A runner for one job. Its engine is `name`, or the connection's runner by default.

        Raises:
            ConfigurationError: the connection lacks a setting that the engine needs.
        """
        settings = self.settings
        chosen = name or settings.runner
        if chosen is RunnerName.INLINE:
            # Imported here, because only a task that runs inline needs the maintenance code.
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

    def run_directory(
        self, *, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int, job_id: str
    ) -> RunDirectory:
        """A new directory for the files of one try, below the `work_dir`. The caller must `discard` it.

        Raises:
            JobFailedError: the directory cannot be created.
            ConfigurationError: the `work_dir` is a URI, and the connection's options cannot open its store.
        """
        parts: dict[str, Any] = {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
            "job_id": job_id,
        }
        work_dir = self.settings.work_dir
        if isinstance(work_dir, Path):
            return RunDirectory.create(work_dir, **parts)
        return StoredRun.begin(work_dir, **parts, storage_options=self.storage_options(work_dir))

    def read_result(self, result_uri: str) -> JobResult:
        """The result at the `result_uri` of an operator's XCom. The worker needs access to the `work_dir`.

        Raises:
            ConfigurationError: the URI is outside the connection's `work_dir`.
            JobFailedError: the file is missing or damaged.
            StorageError: the `work_dir` is a URI, and its store does not answer.
        """
        place = self._in_work_dir(result_uri)
        if isinstance(place, Path):
            return read_result_file(place)
        return read_stored_result(place, storage_options=self.storage_options(place))

    def read_state(self, result_uri: str) -> RunState:
        """The last state of the run that has this `result_uri`. Raises the errors of `read_result`."""
        place = self._in_work_dir(result_uri)
        if isinstance(place, Path):
            return read_state_file(place.with_name("state.json"))
        return read_stored_state(place, storage_options=self.storage_options(place))

    def _in_work_dir(self, result_uri: str) -> Path | str:
        """Check that `result_uri` is below the `work_dir`.

        Returns:
            The local path, or the canonical URI if the `work_dir` is a URI.

        Raises:
            ConfigurationError: the URI is outside the `work_dir`.
        """
        work_dir = self.settings.work_dir
        if isinstance(work_dir, Path):
            parts = urlsplit(result_uri)
            path = Path(unquote(parts.path)).resolve()
            if parts.scheme == "file" and path.is_relative_to(work_dir.resolve()):
                return path
        elif uri_scheme(result_uri) not in (None, "file"):
            uri = canonical_table_uri(result_uri)
            if uri.startswith(f"{work_dir}/"):
                return uri
        raise ConfigurationError(
            "The result URI is outside the connection's work_dir.",
            fix="Pass the `result_uri` of an operator's XCom, with the same connection.",
        )

    def test_connection(self) -> tuple[bool, str]:
        """Check the settings, the engine's requirements, and that one allowed root can be listed.

        Starts no job, reads no table and writes nothing to a store.
        """
        try:
            return True, checked(self.settings, self.storage_options)
        except DeltaError as error:
            return False, str(error)


def settings_of(connection: Connection) -> ConnectionSettings:
    """The settings of an Airflow connection. Also masks its secrets in logs from now on.

    Raises:
        ConfigurationError: the connection is not valid.
    """
    # `airflow connections add` stores the type generic if this package is missing where it runs.
    if connection.conn_type not in (DeltawardHook.conn_type, "generic", "", None):
        raise ConfigurationError(
            f"The connection {connection.conn_id} is of the type {connection.conn_type}, not deltaward.",
            fix="Use a connection of the type deltaward. Its storage_conn_id can refer to a connection for a "
            "store, and an operator's spark_conn_id to one for Spark.",
        )
    extra = extra_of(connection)
    for name in ("host", "schema", "login", "port"):
        if getattr(connection, name):
            raise ConfigurationError(
                f"The connection sets {name}, which deltaward does not use.", fix="Leave the field empty."
            )
    return _masked(parse_settings(extra, password=connection.password))


def _masked(settings: ConnectionSettings) -> ConnectionSettings:
    """Mask the secrets of the settings in logs from now on; returns the settings."""
    for secret in secrets_of(settings.storage_options):
        mask_secret(secret)
    if settings.connect_token:
        mask_secret(settings.connect_token)
    return settings


def _no_connection(conn_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"The connection {conn_id} does not exist.",
        fix=(
            "Add one of type deltaward, in the UI or as the environment variable "
            f'AIRFLOW_CONN_{conn_id.upper()}=\'{{"conn_type": "deltaward"}}\'.'
        ),
    )


def _no_storage_connection(conn_id: str, storage_conn_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"The connection {storage_conn_id}, to which storage_conn_id of {conn_id} refers, does not exist.",
        fix="Add the connection, or correct storage_conn_id.",
    )
