"""Settings from an existing Airflow connection of type `spark` or `spark_connect`, and its runner."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from delta_airflow.hooks.connection_extra import extra_of
from delta_airflow.hooks.settings import RunnerName
from delta_airflow.spark_arguments import SparkArguments
from delta_airflow.spark_conf import FIXED_CONF, PLACES, holds_secret, is_secret, settings_of
from delta_core.errors import ConfigurationError
from delta_core.storage import uri_scheme

_LOGGER = logging.getLogger(__name__)

_RUNNERS: Mapping[str, RunnerName] = {
    "spark": RunnerName.SPARK_SUBMIT,
    "k8s": RunnerName.SPARK_SUBMIT,  # the type that Airflow gives to a connection with the URI k8s://host
    "spark_connect": RunnerName.SPARK_CONNECT,
}

_ARGUMENTS = (
    *("packages", "exclude_packages", "repositories", "jars", "files", "py_files", "archives"),
    *("driver_class_path", "total_executor_cores", "executor_cores", "executor_memory", "driver_memory"),
    *("num_executors", "proxy_user", "properties_file"),
)
"""Arguments for which a connection's extra may hold defaults, spelled like this or with hyphens."""

_SET_BEFORE_THE_DRIVER = re.compile(
    r"spark\.(jars|files|archives|submit|(driver|executor|yarn\.am)\.(extra|default))"
)
"""Settings that take effect before the driver could set them, or that become arguments of other processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkDefaults:
    """The settings in a connection's extra that the provider's hook does not read.

    Attributes:
        arguments: default arguments, by the names of `SparkArguments`.
        conf: settings without secrets.
        private_conf: settings that are secrets. They reach the driver through its environment.
        deploy_mode: the deploy mode in the extra.
    """

    arguments: Mapping[str, object] = field(default_factory=dict, hash=False)
    conf: Mapping[str, str] = field(default_factory=dict, hash=False)
    private_conf: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    deploy_mode: str | None = None


def chosen_runner(spark: SparkArguments, *, named: RunnerName | None, otherwise: RunnerName) -> RunnerName:
    """The runner of an operator: that of its Spark connection, or else `named`, or else `otherwise`.

    Raises:
        ConfigurationError: the operator names a runner that differs from its Spark connection's, or has Spark
            arguments although its runner is `inline`.
    """
    if spark.spark_conn_id is None:
        runner = named or otherwise
        if runner is RunnerName.INLINE and spark.given():
            raise ConfigurationError(
                f"The runner inline does not use Spark, so it cannot use {', '.join(spark.given())}.",
                fix="Give a spark_conn_id or a runner with Spark, or leave these arguments out.",
            )
        return runner
    runner = runner_of(spark_connection(spark.spark_conn_id))
    if named not in (None, runner):
        raise ConfigurationError(
            f"The runner {named} contradicts the connection {spark.spark_conn_id}, which is for {runner}.",
            fix="Leave out either runner or spark_conn_id.",
        )
    return runner


def spark_connection(conn_id: str) -> Connection:
    """The connection with this id, which must be of a Spark type.

    Raises:
        ConfigurationError: the connection does not exist, or is not of a Spark type.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        # Without this error, the provider's hook would fall back to YARN.
        raise ConfigurationError(
            f"The connection {conn_id} does not exist.",
            fix="Set spark_conn_id to a connection of type spark or spark_connect.",
        ) from error
    runner_of(connection)
    return connection


def runner_of(connection: Connection) -> RunnerName:
    """The runner for a connection, by its type.

    Raises:
        ConfigurationError: the connection is not of a Spark type.
    """
    try:
        return _RUNNERS[connection.conn_type or ""]
    except KeyError as error:
        raise ConfigurationError(
            f"The connection {connection.conn_id} is of type {connection.conn_type}, "
            "which is not a Spark type.",
            fix="Set spark_conn_id to a connection of type spark or spark_connect.",
        ) from error


def defaults_of(connection: Connection) -> SparkDefaults:
    """The settings and default arguments in a connection's extra. Masks their secrets in logs from now on.

    Settings are the entries whose names begin with `spark.`, as in the provider's `@task.pyspark`, and the
    entries of the object `conf`. Other unknown names are ignored.

    Raises:
        ConfigurationError: a value is not valid, or a secret would become a process argument.
    """
    extra = extra_of(connection)
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
            "A setting in the connection %s has no effect: %s. Jobs set it themselves, so that their SQL "
            "has the same meaning everywhere.",
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
    """Return the deploy mode if a driver in that mode can read its job specification and write its result.

    In mode `cluster` the driver runs on another machine. It has no access to the directories and environment
    variables of this machine.

    Args:
        mode: `client`, `cluster`, or None for `client`.
        spec: the file that the driver reads: a path on this machine, or a URI that all machines can access.
        secrets: whether the job needs secrets.

    Raises:
        ConfigurationError: the mode does not exist, or the driver could not run the job in that mode.
    """
    if mode in (None, "", "client"):
        return "client"
    if mode != "cluster":
        raise ConfigurationError(
            f"The deploy mode {mode!r} does not exist.", fix="Use the deploy mode client."
        )
    if uri_scheme(str(spec)) in (None, "file"):
        raise ConfigurationError(
            "The deploy mode cluster cannot be used for this job.",
            cause="The driver runs on another machine, which cannot read the job's local files.",
            fix="Use client mode: deploy_mode='client', or `deploy-mode` in the Spark connection's extra.",
        )
    if secrets:
        raise ConfigurationError(
            "The deploy mode cluster cannot be used for a job that needs secrets.",
            cause="Secrets are passed in the driver's environment, and the driver runs on another machine.",
            fix="Use client mode, or give the machines of the cluster their own credentials.",
        )
    return "cluster"


def _require_plain(connection: Connection, name: str, value: object) -> None:
    strings = value if isinstance(value, list) else [value]
    if any(holds_secret(str(string)) for string in strings):
        mask_secret(str(value))
        raise _exposed(connection, name)


def _exposed(connection: Connection, name: str) -> ConfigurationError:
    return ConfigurationError(
        f"The connection {connection.conn_id} has a secret in {name}.",
        cause="It would become an argument of a process, which every user of the machine can read.",
        fix="Put the secret into a file that Spark reads, such as spark-defaults.conf or the Ivy settings.",
    )
