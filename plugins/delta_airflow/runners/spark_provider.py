"""Starts drivers with the connections, arguments and command lines of the Spark provider's hooks.

The provider's hook builds the command line. `ProcessRunner` handles the process, its result and its errors.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException
from airflow.sdk.log import mask_secret

from delta_airflow.hooks.settings import ConnectionSettings, RunnerName
from delta_airflow.hooks.spark_connection import (
    SparkDefaults,
    defaults_of,
    require_reachable_job,
    spark_connection,
)
from delta_airflow.runners.driver import (
    SPARK_CONF_VARIABLE,
    driver_environment,
    driver_program,
    spark_binary,
)
from delta_airflow.runners.process import Command, CommandBuilder
from delta_airflow.runners.spark_connect import SparkConnectCommand
from delta_airflow.runners.spark_submit import LOCAL_CONF
from delta_airflow.spark_arguments import SparkArguments
from delta_airflow.spark_conf import holds_secret, is_redacted_by_spark
from delta_airflow.spark_parsing import parse_spark_arguments
from delta_core.errors import ConfigurationError
from delta_core.jobs import JobSpec

_OF_A_SESSION = frozenset({"spark_conn_id", "spark_conf", "name"})
"""Arguments that have an effect on a Connect server, whose application already runs."""

_DEFAULT_BINARY = "spark-submit"

_HOOK_ARGUMENTS = (
    *("files", "py_files", "archives", "driver_class_path", "jars", "packages", "exclude_packages"),
    *("repositories", "total_executor_cores", "executor_cores", "executor_memory", "driver_memory"),
    *("keytab", "principal", "proxy_user", "num_executors", "properties_file", "yarn_queue"),
    "use_krb5ccache",
)
"""Arguments that the provider's hook takes under the same name."""


def command_of(runner: RunnerName, spark: SparkArguments, settings: ConnectionSettings) -> CommandBuilder:
    """The command builder of a Spark runner, for an operator with Spark arguments.

    Raises:
        ConfigurationError: the Spark connection does not exist, or has a setting that is not supported.
    """
    defaults = SparkDefaults()
    if spark.spark_conn_id is not None:
        defaults = defaults_of(spark_connection(spark.spark_conn_id))
    if runner is RunnerName.SPARK_CONNECT:
        return _connect_command(spark, defaults, settings)
    return ProviderSubmitCommand(spark, defaults, settings)


class ProviderSubmitCommand:
    """Starts Deltaward's driver by spark-submit, with the arguments of the provider's SparkSubmitHook.

    Args:
        spark: the operator's arguments, which take precedence over the connection.
        defaults: settings in the connection's extra that the hook itself does not read.
        settings: the settings of the `deltaward` connection, for all that the Spark connection leaves open.
    """

    name = "spark_submit"

    def __init__(self, spark: SparkArguments, defaults: SparkDefaults, settings: ConnectionSettings) -> None:
        self._spark = spark
        self._merged = _merged(spark, defaults)
        self._defaults = defaults
        # A Spark cluster must not receive the token of a Connect server.
        self._settings = replace(settings, connect_token=None)

    def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
        settings, merged, private = self._settings, self._merged, self._defaults.private_conf
        deploy_mode = require_reachable_job(
            merged.deploy_mode or self._defaults.deploy_mode,
            spec=spec_path,
            secrets=bool(private or settings.storage_options),
        )
        name = merged.name or f"deltaward-{spec.kind}-{spec.job_id}"
        # Without --app-name, the driver's own session name would replace the name given to spark-submit.
        program = ["--spec", str(spec_path), "--result", str(result_path), "--app-name", name]
        keytab_path = spec_path.with_name("keytab")
        try:
            with _refusals_of_the_provider():
                hook = self._hook(
                    keytab_path=keytab_path,
                    conf=dict(merged.spark_conf),
                    application_args=program,
                    name=name,
                    env_vars=dict(merged.env_vars) or None,
                    deploy_mode=deploy_mode,
                    spark_binary=merged.spark_binary,
                    **{name: getattr(merged, name) for name in _HOOK_ARGUMENTS},
                )
                arguments = hook.command(str(driver_program()))
            return Command(
                arguments=(self._program(arguments[0]), *arguments[1:]),
                environment=self._environment(is_local=hook.is_local),
                private_file=keytab_path if keytab_path.exists() else None,
            )
        except BaseException:
            keytab_path.unlink(missing_ok=True)
            raise

    def _hook(self, **arguments: Any) -> DriverSubmitHook:
        conn_id = self._spark.spark_conn_id
        if conn_id is None:
            return SettingsSubmitHook(master=self._settings.master or "", **arguments)
        hook = DriverSubmitHook(conn_id=conn_id, **arguments)
        if not hook.master or hook.master.endswith("://"):
            raise ConfigurationError(
                f"The connection {conn_id} has no master.",
                fix="Set the host of the connection, such as spark://host or yarn.",
            )
        return hook

    def _program(self, binary: str) -> str:
        """The path of spark-submit on this worker."""
        settings = self._settings
        if binary != _DEFAULT_BINARY or self._merged.spark_binary:
            settings = replace(settings, spark_binary=binary)
        path = spark_binary(settings)
        if path is None:
            raise ConfigurationError(
                f"{settings.spark_binary} is not on this worker.",
                fix="Install Spark on the worker, or set spark_binary to an absolute path.",
            )
        return path

    def _environment(self, *, is_local: bool) -> dict[str, str]:
        variables = self._merged.env_vars
        environment = driver_environment(self._settings, base={**os.environ, **variables})
        # `driver_environment` has already added entries to PYTHONPATH.
        environment |= {name: value for name, value in variables.items() if name != "PYTHONPATH"}
        if is_local:
            environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if self._defaults.private_conf:
            environment[SPARK_CONF_VARIABLE] = json.dumps(dict(self._defaults.private_conf), sort_keys=True)
        return environment


class DriverSubmitHook(SparkSubmitHook):
    """The provider's hook, used only to build a command line. It starts no process.

    Args:
        keytab_path: the path to which a keytab from the connection is written.
        kwargs: the arguments of the provider's hook.
    """

    def __init__(self, *, keytab_path: Path, **kwargs: Any) -> None:
        self.keytab_path = keytab_path
        super().__init__(**kwargs)

    @property
    def master(self) -> str:
        """The Spark master."""
        return str(self._connection["master"] or "")

    @property
    def is_local(self) -> bool:
        """Whether Spark runs in the driver's own process."""
        return (self.master or "local").startswith("local")

    def command(self, application: str) -> list[str]:
        """The command line."""
        if self.is_local:
            # Binding to the first network interface would open the driver's ports to the network.
            self._conf = {**LOCAL_CONF, **self._conf}
        return [str(word) for word in self._build_spark_submit_command(application)]

    def _create_keytab_path_from_base64_keytab(self, base64_keytab: str, principal: str | None) -> str:
        # The provider would leave the keytab in the shared temporary directory, where every user can read it.
        try:
            content = base64.b64decode(base64_keytab)
        except (binascii.Error, ValueError):
            # Not chained: the original error could contain the keytab.
            raise ConfigurationError(
                "The keytab of the Spark connection is not valid base64.",
                fix="Set it to the output of `base64 KEYTAB`.",
            ) from None
        descriptor = os.open(self.keytab_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return str(self.keytab_path)


class SettingsSubmitHook(DriverSubmitHook):
    """`DriverSubmitHook` without a Spark connection. The master comes from the `deltaward` connection.

    Args:
        master: the Spark master; "" if Spark's own configuration decides.
        kwargs: those of `DriverSubmitHook`.
    """

    def __init__(self, *, master: str, **kwargs: Any) -> None:
        self._master = master
        super().__init__(**kwargs)

    def _resolve_connection(self) -> dict[str, Any]:
        return {
            "master": self._master,
            "queue": self._yarn_queue,
            "deploy_mode": self._deploy_mode,
            "spark_binary": self.spark_binary or _DEFAULT_BINARY,
            "namespace": self._conf.get("spark.kubernetes.namespace"),
            "principal": self._principal,
            "keytab": self._keytab,
            "rest_scheme": "http",
            "rest_port": 6066,
            "rest_endpoint": None,
        }

    def _build_spark_common_args(self) -> list[str]:
        arguments = super()._build_spark_common_args()
        return arguments if self._master else arguments[2:]


@contextmanager
def _refusals_of_the_provider() -> Iterator[None]:
    """Turn errors of the provider's hook into a ConfigurationError."""
    try:
        yield
    except NameError as error:
        # The provider raises this NameError if it cannot import the Kubernetes client.
        if error.name != "kube_client":
            raise
        raise ConfigurationError(
            "The Spark provider needs the Kubernetes provider for a master that begins with k8s://.",
            fix="Run `pip install apache-airflow-providers-cncf-kubernetes` on the workers.",
        ) from error
    except (AirflowException, ValueError, RuntimeError) as error:
        raise ConfigurationError(
            "The Spark provider refuses the arguments or the connection.",
            cause=str(error),
            fix="Correct the argument, or the field of the connection, that the cause names.",
        ) from error


def _merged(spark: SparkArguments, defaults: SparkDefaults) -> SparkArguments:
    """The operator's arguments, completed with the defaults in the connection's extra."""
    try:
        given = parse_spark_arguments(defaults.arguments)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The extra of the connection {spark.spark_conn_id} cannot be used.",
            cause=str(error),
            fix="Correct the value that the cause names.",
        ) from error
    missing = {name: getattr(given, name) for name in given.given() if name not in spark.given()}
    return replace(spark, **missing, spark_conf={**defaults.conf, **spark.spark_conf})


def _connect_command(
    spark: SparkArguments, defaults: SparkDefaults, settings: ConnectionSettings
) -> SparkConnectCommand:
    if meaningless := [name for name in spark.given() if name not in _OF_A_SESSION]:
        raise ConfigurationError(
            f"Spark Connect has no use for {', '.join(meaningless)}.",
            cause="These arguments configure the start of an application, but the server already runs.",
            fix="Leave them out, or set them when the server is started.",
        )
    if shown := sorted(name for name in defaults.private_conf if not is_redacted_by_spark(name)):
        raise ConfigurationError(
            f"The connection {spark.spark_conn_id} has a secret in {', '.join(shown)}.",
            cause="The UI of the Connect server would show it.",
            fix="Set it when the server is started.",
        )
    if spark.spark_conn_id is not None:
        url, token = connect_target(spark.spark_conn_id)
        settings = replace(settings, connect_url=url, connect_token=token)
    conf = {**defaults.conf, **defaults.private_conf, **spark.spark_conf}
    return SparkConnectCommand(settings, conf=conf, app_name=spark.name)


def connect_target(conn_id: str) -> tuple[str, str | None]:
    """The Connect server's URL from the provider's hook, without its token; and the token.

    Raises:
        ConfigurationError: the connection contains no server address, or a password in its host.
    """
    try:
        url = SparkConnectHook(conn_id).get_connection_url()
    except (AttributeError, ValueError) as error:
        # A connection without a host makes the hook fail with an AttributeError.
        raise ConfigurationError(
            f"The connection {conn_id} has no address of a Spark Connect server.",
            fix="Set the host of the connection, and the port if it is not 15002.",
        ) from error
    if holds_secret(url.split(";")[0]):
        raise ConfigurationError(
            f"The connection {conn_id} has a password in its host.",
            fix="Put the token into the password field of the connection.",
        )
    address, *parameters = url.split(";")
    prefix = f"{SparkConnectHook.PARAM_TOKEN}="
    token = next((unquote(part.removeprefix(prefix)) for part in parameters if part.startswith(prefix)), None)
    if token is not None:
        mask_secret(token)
    shown = [part for part in parameters if not part.startswith(prefix)]
    return ";".join([address, *shown]), token
