"""The driver's check of a job's parameters, in the worker, before a driver starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from delta_core.errors import ConfigurationError, InvalidJobSpecError
from delta_core.jobs.json_schema import JsonSchema, check_params


def checked_params(
    kind: str, params: Mapping[str, Any], *, schema: JsonSchema, parse: Callable[[Mapping[str, Any]], object]
) -> Mapping[str, Any]:
    """Check the parameters as the driver does, and return them unchanged.

    Args:
        schema: the JSON Schema of the kind's parameters.
        parse: the function by which the driver parses parameters that conform to the schema.

    Raises:
        ConfigurationError: the driver would refuse the parameters.
    """
    try:
        check_params(kind, params, schema)
        parse(params)
    except InvalidJobSpecError as error:
        raise ConfigurationError(error.problem, cause=error.cause, fix=error.fix) from error
    return params
