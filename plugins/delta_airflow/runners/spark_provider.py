"""Starts drivers as the Spark provider's hooks say: its connections, its arguments, its command line.

The provider decides the arguments. The process is `ProcessRunner`'s: its group, its result, its errors.
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
from delta_core.jobs.job_spec import JobSpec

_OF_A_SESSION = frozenset({"spark_conn_id", "spark_conf", "name"})
"""What an operator may say to a Connect server, whose application runs already."""

_DEFAULT_BINARY = "spark-submit"

_HOOK_ARGUMENTS = (
    *("files", "py_files", "archives", "driver_class_path", "jars", "packages", "exclude_packages"),
    *("repositories", "total_executor_cores", "executor_cores", "executor_memory", "driver_memory"),
    *("keytab", "principal", "proxy_user", "num_executors", "properties_file", "yarn_queue"),
    "use_krb5ccache",
)
"""What the provider's hook takes under the same name."""


def command_of(runner: RunnerName, spark: SparkArguments, settings: ConnectionSettings) -> CommandBuilder:
    """The command of a Spark runner, when the operator says something to Spark.

    Raises:
        ConfigurationError: the Spark connection does not exist, or says what cannot be done.
    """
    defaults = SparkDefaults()
    if spark.spark_conn_id is not None:
        defaults = defaults_of(spark_connection(spark.spark_conn_id))
    if runner is RunnerName.SPARK_CONNECT:
        return _connect_command(spark, defaults, settings)
    return ProviderSubmitCommand(spark, defaults, settings)


class ProviderSubmitCommand:
    """spark-submit with the arguments of the provider's SparkSubmitHook, for our driver.

    Args:
        spark: what the operator says; it wins over the connection.
        defaults: what the connection's extra says beside what the hook itself reads.
        settings: the `deltaward` connection's, for what the Spark connection does not say.
    """

    name = "spark_submit"

    def __init__(self, spark: SparkArguments, defaults: SparkDefaults, settings: ConnectionSettings) -> None:
        self._spark = spark
        self._merged = _merged(spark, defaults)
        self._defaults = defaults
        # A Connect server's token is nothing that another Spark should get.
        self._settings = replace(settings, connect_token=None)

    def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
        settings, merged, private = self._settings, self._merged, self._defaults.private_conf
        deploy_mode = require_reachable_job(
            merged.deploy_mode or self._defaults.deploy_mode,
            spec=spec_path,
            secrets=bool(private or settings.storage_options),
        )
        name = merged.name or f"deltaward-{spec.kind}-{spec.job_id}"
        # The driver's session has a name of its own, which would replace the one of spark-submit.
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
                f"The connection {conn_id} names no master", fix="Set its host, such as spark://host or yarn"
            )
        return hook

    def _program(self, binary: str) -> str:
        """Where spark-submit is on this worker."""
        settings = self._settings
        if binary != _DEFAULT_BINARY or self._merged.spark_binary:
            settings = replace(settings, spark_binary=binary)
        found = spark_binary(settings)
        if found is None:
            raise ConfigurationError(
                f"{settings.spark_binary} is not on this worker",
                fix="Install Spark here, or give its absolute path",
            )
        return found

    def _environment(self, *, is_local: bool) -> dict[str, str]:
        variables = self._merged.env_vars
        environment = driver_environment(self._settings, base={**os.environ, **variables})
        # To PYTHONPATH the driver's environment has added.
        environment |= {name: value for name, value in variables.items() if name != "PYTHONPATH"}
        if is_local:
            environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if self._defaults.private_conf:
            environment[SPARK_CONF_VARIABLE] = json.dumps(dict(self._defaults.private_conf), sort_keys=True)
        return environment


class DriverSubmitHook(SparkSubmitHook):
    """The provider's hook as far as it makes a command line; it starts nothing.

    Args:
        keytab_path: where a keytab that the connection holds is written.
        kwargs: the provider's.
    """

    def __init__(self, *, keytab_path: Path, **kwargs: Any) -> None:
        self.keytab_path = keytab_path
        super().__init__(**kwargs)

    @property
    def master(self) -> str:
        """Spark's master."""
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
        # The provider's file stays in the machine's folder of temporary files, for every user to read.
        try:
            content = base64.b64decode(base64_keytab)
        except (binascii.Error, ValueError):
            # Not chained: the error could show what it read.
            raise ConfigurationError(
                "The Spark connection's keytab is not base64", fix="Give it the output of `base64 KEYTAB`"
            ) from None
        descriptor = os.open(self.keytab_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return str(self.keytab_path)


class SettingsSubmitHook(DriverSubmitHook):
    """The same without a Spark connection: the master is the `deltaward` connection's.

    Args:
        master: "" leaves it to Spark's own configuration.
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
    """What the provider's hook raises is a ConfigurationError here."""
    try:
        yield
    except NameError as error:
        # How the provider says that it cannot import the client of Kubernetes.
        if error.name != "kube_client":
            raise
        raise ConfigurationError(
            "The Spark provider needs the Kubernetes provider for a master that is k8s://",
            fix="pip install apache-airflow-providers-cncf-kubernetes",
        ) from error
    except (AirflowException, ValueError, RuntimeError) as error:
        raise ConfigurationError("The Spark provider refuses this", cause=str(error)) from error


def _merged(spark: SparkArguments, defaults: SparkDefaults) -> SparkArguments:
    """What the operator says, and where it says nothing, what the connection's extra says."""
    try:
        given = parse_spark_arguments(defaults.arguments)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The extra of the connection {spark.spark_conn_id} cannot be used", cause=str(error)
        ) from error
    missing = {name: getattr(given, name) for name in given.given() if name not in spark.given()}
    return replace(spark, **missing, spark_conf={**defaults.conf, **spark.spark_conf})


def _connect_command(
    spark: SparkArguments, defaults: SparkDefaults, settings: ConnectionSettings
) -> SparkConnectCommand:
    if meaningless := [name for name in spark.given() if name not in _OF_A_SESSION]:
        raise ConfigurationError(
            f"On Spark Connect there is no use for {', '.join(meaningless)}",
            cause="They are about starting an application, and the server's runs already",
            fix="Leave them out, or set them where the server is started",
        )
    if shown := sorted(name for name in defaults.private_conf if not is_redacted_by_spark(name)):
        raise ConfigurationError(
            f"The connection {spark.spark_conn_id} has a secret in {', '.join(shown)}",
            cause="The Connect server's pages would show it",
            fix="Set it where the server is started",
        )
    if spark.spark_conn_id is not None:
        url, token = connect_target(spark.spark_conn_id)
        settings = replace(settings, connect_url=url, connect_token=token)
    conf = {**defaults.conf, **defaults.private_conf, **spark.spark_conf}
    return SparkConnectCommand(settings, conf=conf, app_name=spark.name)


def connect_target(conn_id: str) -> tuple[str, str | None]:
    """The Connect server's URL as the provider's hook makes it, without its token; and the token.

    Raises:
        ConfigurationError: the connection names no server.
    """
    try:
        url = SparkConnectHook(conn_id).get_connection_url()
    except (AttributeError, ValueError) as error:
        # A connection without a host makes the hook fail with an AttributeError.
        raise ConfigurationError(
            f"The connection {conn_id} names no Spark Connect server",
            fix="Set its host, and its port where that is not 15002",
        ) from error
    if holds_secret(url.split(";")[0]):
        raise ConfigurationError(
            f"The connection {conn_id} has a password in its host", fix="Put the token into its password"
        )
    address, *parameters = url.split(";")
    prefix = f"{SparkConnectHook.PARAM_TOKEN}="
    token = next((unquote(text.removeprefix(prefix)) for text in parameters if text.startswith(prefix)), None)
    if token is not None:
        mask_secret(token)
    shown = [text for text in parameters if not text.startswith(prefix)]
    return ";".join([address, *shown]), token
