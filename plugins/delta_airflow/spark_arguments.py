"""The Spark arguments of one operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkArguments:
    """The Spark arguments of one operator, as in the Spark provider's SparkSubmitOperator.

    Attributes:
        spark_conn_id: an Airflow connection of type `spark` or `spark_connect`. None: the connection of type
            `deltaward` decides.
        spark_conf: the provider's `conf`.
    """

    spark_conn_id: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict, hash=False)
    name: str | None = None
    packages: str | None = None
    exclude_packages: str | None = None
    repositories: str | None = None
    jars: str | None = None
    files: str | None = None
    py_files: str | None = None
    archives: str | None = None
    driver_class_path: str | None = None
    total_executor_cores: int | None = None
    executor_cores: int | None = None
    executor_memory: str | None = None
    driver_memory: str | None = None
    num_executors: int | None = None
    keytab: str | None = None
    principal: str | None = None
    proxy_user: str | None = None
    yarn_queue: str | None = None
    deploy_mode: str | None = None
    properties_file: str | None = None
    env_vars: Mapping[str, str] = field(default_factory=dict, hash=False)
    use_krb5ccache: bool = False
    spark_binary: str | None = None

    def given(self) -> tuple[str, ...]:
        """The names of the arguments that have a value."""
        return tuple(entry.name for entry in fields(self) if getattr(self, entry.name))


SPARK_ARGUMENTS = tuple(entry.name for entry in fields(SparkArguments))
"""The names of all arguments. They are template fields of the operators."""
