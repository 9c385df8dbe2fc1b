"""What an existing Airflow connection of type `spark` or `spark_connect` says, and its runner."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.spark_arguments import SparkArguments
from delta_airflow.spark_conf import FIXED_CONF, PLACES, holds_secret, is_secret, settings_of
from delta_core.errors import ConfigurationError
from delta_core.storage.uri import uri_scheme

_LOGGER = logging.getLogger(__name__)

_RUNNERS: Mapping[str, RunnerName] = {
    "spark": RunnerName.SPARK_SUBMIT,
    "k8s": RunnerName.SPARK_SUBMIT,  # what Airflow makes of a connection that is given as k8s://host
    "spark_connect": RunnerName.SPARK_CONNECT,
}

_ARGUMENTS = (
    *("packages", "exclude_packages", "repositories", "jars", "files", "py_files", "archives"),
    *("driver_class_path", "total_executor_cores", "executor_cores", "executor_memory", "driver_memory"),
    *("num_executors", "proxy_user", "properties_file"),
)
"""Arguments for which a connection's extra may have defaults, in this spelling or with hyphens."""

_SET_BEFORE_THE_DRIVER = re.compile(
    r"spark\.(jars|files|archives|submit|(driver|executor|yarn\.am)\.(extra|default))"
)
"""Settings that are in force before the driver could set them, or become arguments of other processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkDefaults:
    """What a connection's extra says beside what the provider's hook reads.

    Attributes:
        arguments: by the names of `SparkArguments`.
        conf: settings that anyone may see.
        private_conf: settings that are secrets: they go by the driver's environment.
        deploy_mode: as the extra has it.
    """

    arguments: Mapping[str, object] = field(default_factory=dict, hash=False)
    conf: Mapping[str, str] = field(default_factory=dict, hash=False)
    private_conf: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    deploy_mode: str | None = None


def chosen_runner(spark: SparkArguments, *, named: RunnerName | None, otherwise: RunnerName) -> RunnerName:
    """The runner of an operator: its Spark connection's, or the one it names, or `otherwise`.

    Raises:
        ConfigurationError: the operator names another runner than its Spark connection's, or says
            something to Spark and runs without.
    """
    if spark.spark_conn_id is None:
        runner = named or otherwise
        if runner is RunnerName.INLINE and spark.given():
            raise ConfigurationError(
                f"The runner inline has no Spark, so it can do nothing with {', '.join(spark.given())}",
                fix="Give a spark_conn_id or another runner, or leave these arguments out",
            )
        return runner
    runner = runner_of(spark_connection(spark.spark_conn_id))
    if named not in (None, runner):
        raise ConfigurationError(
            f"The runner {named} contradicts the connection {spark.spark_conn_id}, which is for {runner}",
            fix="Leave the runner out, or spark_conn_id",
        )
    return runner


def spark_connection(conn_id: str) -> Connection:
    """The connection, which must be of a type that leads to Spark.

    Raises:
        ConfigurationError: there is none of that name, or it is of another type.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        # The provider's hook would take YARN in its place.
        raise ConfigurationError(
            f"There is no connection {conn_id}", fix="Name one of type spark or spark_connect"
        ) from error
    runner_of(connection)
    return connection


def runner_of(connection: Connection) -> RunnerName:
    """The runner for a connection of that type.

    Raises:
        ConfigurationError: it does not lead to Spark.
    """
    try:
        return _RUNNERS[connection.conn_type or ""]
    except KeyError as error:
        raise ConfigurationError(
            f"The connection {connection.conn_id} is of type {connection.conn_type}",
            fix="Give spark_conn_id the name of one of type spark or spark_connect",
        ) from error


def defaults_of(connection: Connection) -> SparkDefaults:
    """The extra's settings and defaults for arguments. Secrets among them are masked from here on.

    Settings are the names that begin with `spark.`, as the provider's `@task.pyspark` has it, and those of
    the object `conf`. Unknown names are ignored.

    Raises:
        ConfigurationError: a value is not valid, or a secret is where it would become an argument.
    """
    extra: dict[str, Any] = connection.extra_dejson
    where = f"extra conf of the connection {connection.conn_id}"
    given = {name: value for name, value in extra.items() if name.startswith("spark.")}
    conf = {**settings_of(where, extra.get("conf")), **settings_of(where, given)}
    arguments = {}
    for name in _ARGUMENTS:
        value = extra.get(name, extra.get(name.replace("_", "-")))
        if value not in (None, "", []):
            _require_plain(connection, name, value)
            arguments[name] = value
    deploy_mode = extra.get("deploy-mode") or conf.pop("spark.submit.deployMode", None)
    private = {name: value for name, value in conf.items() if is_secret(name, value)}
    for name, value in private.items():
        mask_secret(value)
        if _SET_BEFORE_THE_DRIVER.match(name):
            raise _exposed(connection, name)
    if fixed := sorted(conf.keys() & FIXED_CONF):
        _LOGGER.warning(
            "The connection %s sets %s: jobs set it themselves, so that their SQL means the same everywhere",
            connection.conn_id,
            ", ".join(fixed),
        )
    left_out = FIXED_CONF | PLACES | private.keys()
    return SparkDefaults(
        arguments=arguments,
        conf={name: value for name, value in conf.items() if name not in left_out},
        private_conf=private,
        deploy_mode=None if deploy_mode is None else str(deploy_mode),
    )


def require_reachable_job(mode: str | None, *, spec: Path | str, secrets: bool) -> str:
    """The deploy mode, when a driver in that mode can read its job and write its result.

    In mode `cluster` the driver runs on another machine: it sees no directory and no environment variable of
    this one.

    Args:
        mode: `client`, `cluster`, or None for `client`.
        spec: the file that the driver gets: a path of this machine, or the URI of a store that all reach.
        secrets: whether the job needs any.

    Raises:
        ConfigurationError: the mode does not exist, or the driver could not do the job.
    """
    if mode in (None, "", "client"):
        return "client"
    if mode != "cluster":
        raise ConfigurationError(f"There is no deploy mode {mode!r}", fix="Use client")
    if uri_scheme(str(spec)) in (None, "file"):
        raise ConfigurationError(
            "A job cannot be handed over in the deploy mode cluster",
            cause="The driver runs on another machine, where the job's files are not",
            fix="Use client mode: deploy_mode='client', or `deploy-mode` in the Spark connection's extra",
        )
    if secrets:
        raise ConfigurationError(
            "Secrets cannot be handed over in the deploy mode cluster",
            cause="They go by the driver's environment, and the driver runs on another machine",
            fix="Use client mode, or give the cluster's machines their own credentials",
        )
    return "cluster"


def _require_plain(connection: Connection, name: str, value: object) -> None:
    strings = value if isinstance(value, list) else [value]
    if any(holds_secret(str(text)) for text in strings):
        mask_secret(str(value))
        raise _exposed(connection, name)


def _exposed(connection: Connection, name: str) -> ConfigurationError:
    return ConfigurationError(
        f"The connection {connection.conn_id} has a secret in {name}",
        cause="It would become an argument of a process, which every user of the machine can read",
        fix="Put it into a file that Spark reads, such as spark-defaults.conf or Ivy's settings",
    )
