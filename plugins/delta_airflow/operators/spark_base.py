"""The Spark arguments of the operators. They are those of the Spark provider's own operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow.sdk import BaseOperator

from delta_airflow.spark_arguments import SPARK_ARGUMENTS, SparkArguments
from delta_airflow.spark_parsing import parse_spark_arguments, require_plain_settings


class SparkOperator(BaseOperator):
    """Takes the arguments of the Spark provider's SparkSubmitOperator, under its names; all are templated.

    Secrets in `spark_conf` and `env_vars` are refused when the DAG is parsed, because Airflow stores the
    arguments of operators in its database.

    Args:
        spark_conn_id: an Airflow connection of type `spark` or `spark_connect`. Its type decides the runner.
            None: the connection of type `deltaward` decides the runner and the Spark cluster (templated).
        spark_conf: Spark settings, a mapping or JSON; the provider calls it `conf` (templated).
        name: the name of the Spark application (templated).
        packages, exclude_packages, repositories: Maven coordinates and repositories (templated).
        jars, files, py_files, archives: comma-separated files that Spark distributes (templated).
        driver_class_path: entries of the driver's class path (templated).
        total_executor_cores, executor_cores, num_executors: whole numbers (templated).
        executor_memory, driver_memory: such as `4g` (templated).
        keytab, principal: the path of a keytab on the worker, and its principal (templated).
        proxy_user: the user on whose behalf the application runs (templated).
        yarn_queue: the YARN queue (templated).
        deploy_mode: `client`. `cluster` is refused if its driver could not read the job (templated).
        properties_file: a file that replaces spark-defaults.conf (templated).
        env_vars: environment variables of the driver and of the YARN application master (templated).
        use_krb5ccache: True takes Kerberos tickets from the ticket cache (templated).
        spark_binary: `spark-submit`, `spark3-submit` or an absolute path to one (templated).
    """

    template_fields: Sequence[str] = SPARK_ARGUMENTS
    template_fields_renderers: ClassVar[dict[str, str]] = {"spark_conf": "json", "env_vars": "json"}

    def __init__(
        self,
        *,
        spark_conn_id: str | None = None,
        spark_conf: Mapping[str, Any] | str | None = None,
        name: str | None = None,
        packages: str | Sequence[str] | None = None,
        exclude_packages: str | Sequence[str] | None = None,
        repositories: str | Sequence[str] | None = None,
        jars: str | Sequence[str] | None = None,
        files: str | Sequence[str] | None = None,
        py_files: str | Sequence[str] | None = None,
        archives: str | Sequence[str] | None = None,
        driver_class_path: str | None = None,
        total_executor_cores: int | str | None = None,
        executor_cores: int | str | None = None,
        executor_memory: str | None = None,
        driver_memory: str | None = None,
        num_executors: int | str | None = None,
        keytab: str | None = None,
        principal: str | None = None,
        proxy_user: str | None = None,
        yarn_queue: str | None = None,
        deploy_mode: str | None = None,
        properties_file: str | None = None,
        env_vars: Mapping[str, Any] | str | None = None,
        use_krb5ccache: bool | str = False,
        spark_binary: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require_plain_settings("spark_conf", spark_conf)
        require_plain_settings("env_vars", env_vars)
        self.spark_conn_id = spark_conn_id
        self.spark_conf = spark_conf
        self.name = name
        self.packages = packages
        self.exclude_packages = exclude_packages
        self.repositories = repositories
        self.jars = jars
        self.files = files
        self.py_files = py_files
        self.archives = archives
        self.driver_class_path = driver_class_path
        self.total_executor_cores = total_executor_cores
        self.executor_cores = executor_cores
        self.executor_memory = executor_memory
        self.driver_memory = driver_memory
        self.num_executors = num_executors
        self.keytab = keytab
        self.principal = principal
        self.proxy_user = proxy_user
        self.yarn_queue = yarn_queue
        self.deploy_mode = deploy_mode
        self.properties_file = properties_file
        self.env_vars = env_vars
        self.use_krb5ccache = use_krb5ccache
        self.spark_binary = spark_binary

    def spark_arguments(self) -> SparkArguments:
        """The Spark arguments, from the rendered arguments.

        Raises:
            ConfigurationError: an argument is not valid or holds a secret.
        """
        return parse_spark_arguments({name: getattr(self, name) for name in SPARK_ARGUMENTS})
