"""What the tasks of a DAG have in common, from the environment: retries, a pool, and the failure callback.

Read when a DAG file is parsed, so set it for the DAG processor and for the workers alike.
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
    """A DAG's parameter `connection`: which connection a run goes through."""
    default = environment.get(CONN_ID_VARIABLE) or DeltawardHook.default_conn_name
    return Param(default, type="string", minLength=1, description="The connection, of type deltaward")


def default_args(environment: Mapping[str, str] = os.environ, **others: Any) -> dict[str, Any]:
    """`default_args` of a DAG: errors that can pass are tried again, others fail at once.

    Args:
        environment: where the variables are looked up.
        others: more arguments, which win.

    Raises:
        ConfigurationError: a variable holds no number, or names nothing that can be called.
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
        arguments["on_failure_callback"] = tell_of_failure
    return {**arguments, **others}


def tell_of_failure(context: Context) -> None:
    """Call what the environment names: a function of the context, or a class whose objects are such ones.

    It is looked up when a task has failed, so what it imports costs no parsing.
    """
    named = os.environ.get(ON_FAILURE_VARIABLE)
    if not named:
        return
    module, attribute = _split(named)
    found = getattr(importlib.import_module(module), attribute)
    (found() if isinstance(found, type) else found)(context)


def _split(named: str) -> tuple[str, str]:
    module, _, attribute = named.strip().rpartition(".")
    if not module or not attribute.isidentifier():
        raise ConfigurationError(
            f"{ON_FAILURE_VARIABLE} is {named!r}",
            cause="It names what is called with the context of a task that failed",
            fix="Give a dotted name, such as company.alerts.page",
        )
    return module, attribute


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal():
        raise ConfigurationError(f"{name} is {text!r}", fix="Give a whole number, or leave it unset")
    return int(text)
