"""Parsing of an operator's rendered arguments into `SparkArguments`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from airflow.sdk import log as airflow_log

from delta_airflow.hooks.settings import parse_settings
from delta_airflow.operators.rendered import as_bool, as_optional_int, as_optional_string
from delta_airflow.spark_arguments import SparkArguments
from delta_airflow.spark_conf import (
    CONF_OF_ARGUMENTS,
    FIXED_CONF,
    PLACES,
    holds_secret,
    require_no_secrets,
    secret_error,
    settings_of,
)
from delta_core.errors import ConfigurationError


def parse_spark_arguments(values: Mapping[str, object]) -> SparkArguments:
    """The arguments, parsed from rendered values. A missing, None or empty value counts as not given.

    Raises:
        ConfigurationError: an argument is not valid or holds a secret. The message contains no secret.
    """
    parsed = {name: _PARSERS[name](name, value) for name, value in values.items()}
    return SparkArguments(**{name: value for name, value in parsed.items() if value is not None})


def require_plain_settings(argument: str, value: object) -> None:
    """Refuse secrets in settings that are not rendered yet, before Airflow stores them.

    Raises:
        ConfigurationError: a setting is a secret by its name or by its value.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            # A template or invalid JSON: only an assignment or a URL can be recognised as a secret.
            value = {argument: value}
    if isinstance(value, Mapping):
        require_no_secrets(argument, {str(name): str(entry) for name, entry in value.items()})


def _line(name: str, value: object) -> str | None:
    string = value if value is None or isinstance(value, str) else str(value)
    string = as_optional_string(name, string)
    if string is None:
        return None
    if holds_secret(string):
        raise secret_error(name)
    if "\0" in string or "\n" in string:
        raise _invalid(name, "a single line")
    return string


def _list(name: str, value: object) -> str | None:
    """Comma-separated strings, as the provider accepts them, or a list of strings."""
    if not isinstance(value, (list, tuple)):
        return _line(name, value)
    if not all(isinstance(entry, str) and entry.strip() and "," not in entry for entry in value):
        raise _invalid(name, "comma-separated strings")
    return _line(name, ",".join(entry.strip() for entry in value))


def _count(name: str, value: object) -> int | None:
    return as_optional_int(name, value, minimum=1)


def _flag(name: str, value: object) -> bool:
    return as_bool(name, value) if _line(name, value) is not None else False


def _deploy_mode(name: str, value: object) -> str | None:
    mode = _line(name, value)
    if mode is not None and mode not in ("client", "cluster"):
        raise _invalid(name, "client")
    return mode


def _spark_binary(name: str, value: object) -> str | None:
    binary = _line(name, value)
    if binary is None:
        return None
    try:
        # A template can render to any program, but an operator may only start spark-submit.
        return parse_settings({"spark_binary": binary}).spark_binary
    except ConfigurationError as error:
        raise _invalid(name, "spark-submit, its absolute path, or spark3-submit") from error


def _settings(name: str, value: object) -> dict[str, str]:
    settings = settings_of(f"argument {name}", value)
    require_no_secrets(name, settings)
    if masked := sorted(key for key, setting in settings.items() if _is_masked(setting)):
        raise secret_error(name, masked)
    return settings


def _is_masked(value: str) -> bool:
    """Whether a template has inserted a value that Airflow masks, such as a connection's password."""
    redact = getattr(airflow_log, "redact", None)  # not part of Airflow's public interface
    return redact is not None and redact(value) != value


def _conf(name: str, value: object) -> dict[str, str] | None:
    conf = _settings(name, value)
    for key in conf:
        if key in CONF_OF_ARGUMENTS:
            raise _refused(name, key, fix=f"Use the argument {CONF_OF_ARGUMENTS[key]}.")
        if key in FIXED_CONF:
            raise _refused(
                name, key, cause="Jobs set it themselves, so that their SQL has the same meaning everywhere."
            )
        if key in PLACES:
            raise _refused(name, key, fix="Set it in the Spark connection.")
        if not key.startswith("spark."):
            raise _refused(name, key, cause="spark-submit ignores names that do not begin with `spark.`.")
    return conf or None


def _variables(name: str, value: object) -> dict[str, str] | None:
    variables = _settings(name, value)
    for variable in variables:
        if variable.startswith("DELTAWARD_"):
            raise _refused(
                name, variable, cause="Names that begin with DELTAWARD_ are reserved for the driver."
            )
    return variables or None


def _refused(argument: str, key: str, *, cause: str = "", fix: str = "Leave it out") -> ConfigurationError:
    return ConfigurationError(f"The argument {argument} may not set {key}.", cause=cause, fix=fix)


def _invalid(name: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"The argument {name} is not valid after rendering.", fix=f"Give {expected}.")


_PARSERS: Mapping[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(("spark_conn_id", "name", "driver_class_path", "executor_memory"), _line),
    **dict.fromkeys(("driver_memory", "keytab", "principal", "proxy_user", "yarn_queue"), _line),
    "properties_file": _line,
    **dict.fromkeys(("packages", "exclude_packages", "repositories", "jars", "files"), _list),
    **dict.fromkeys(("py_files", "archives"), _list),
    **dict.fromkeys(("total_executor_cores", "executor_cores", "num_executors"), _count),
    "spark_conf": _conf,
    "env_vars": _variables,
    "use_krb5ccache": _flag,
    "deploy_mode": _deploy_mode,
    "spark_binary": _spark_binary,
}
