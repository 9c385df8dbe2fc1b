"""Default arguments of a DAG's tasks from the environment: retries, a pool, and the failure callback.

The variables are read when a DAG file is parsed. Set them for the DAG processor and for the workers.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import Param

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.retries import DeltaRetryPolicy
from delta_core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Context

CONN_ID_VARIABLE: Final = "DELTAWARD_CONN_ID"
POOL_VARIABLE: Final = "DELTAWARD_POOL"
RETRIES_VARIABLE: Final = "DELTAWARD_RETRIES"
RETRY_SECONDS_VARIABLE: Final = "DELTAWARD_RETRY_SECONDS"
ON_FAILURE_VARIABLE: Final = "DELTAWARD_ON_FAILURE"

CONN_ID: Final = "{{ params.connection }}"
"""The `conn_id` of tasks in a DAG that has `connection_param`."""


def connection_param(environment: Mapping[str, str] = os.environ) -> Param:
    """A DAG's parameter `connection`: the connection that a run uses."""
    default = environment.get(CONN_ID_VARIABLE) or DeltawardHook.default_conn_name
    return Param(default, type="string", minLength=1, description="The connection, of type deltaward")


def default_args(environment: Mapping[str, str] = os.environ, **others: Any) -> dict[str, Any]:
    """`default_args` of a DAG: tasks retry transient errors and fail at once with permanent errors.

    Args:
        environment: the environment variables.
        others: more arguments, which take precedence.

    Raises:
        ConfigurationError: a variable is not a number, or is not the dotted name of a callable.
    """
    arguments: dict[str, Any] = {
        "retries": _number(environment, RETRIES_VARIABLE, 2),
        "retry_delay": timedelta(seconds=_number(environment, RETRY_SECONDS_VARIABLE, 60)),
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(minutes=15),
        "retry_policy": DeltaRetryPolicy(),
        "pool": environment.get(POOL_VARIABLE) or "default_pool",
    }
    if hook := environment.get(ON_FAILURE_VARIABLE):
        _split(hook)
        arguments["on_failure_callback"] = notify_of_failure
    return {**arguments, **others}


def notify_of_failure(context: Context) -> None:
    """Call the function, or an instance of the class, in `DELTAWARD_ON_FAILURE` with the context.

    The name is resolved after a task has failed, so that parsing a DAG does not import its module.
    """
    dotted_name = os.environ.get(ON_FAILURE_VARIABLE)
    if not dotted_name:
        return
    module, attribute = _split(dotted_name)
    target = getattr(importlib.import_module(module), attribute)
    (target() if isinstance(target, type) else target)(context)


def _split(dotted_name: str) -> tuple[str, str]:
    module, _, attribute = dotted_name.strip().rpartition(".")
    if not module or not attribute.isidentifier():
        raise ConfigurationError(
            f"The environment variable {ON_FAILURE_VARIABLE} has the invalid value {dotted_name!r}.",
            cause="It must be the dotted name of a callable that takes the context of the failed task.",
            fix="Give a dotted name, such as company.alerts.page.",
        )
    return module, attribute


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    value = environment.get(name, "").strip()
    if not value:
        return default
    if not value.isdecimal():
        raise ConfigurationError(
            f"The environment variable {name} has the invalid value {value!r}.",
            fix="Set it to a whole number, or leave it unset.",
        )
    return int(value)
