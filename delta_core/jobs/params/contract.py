"""The parameter `contract`, and the form of columns in it and in a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from delta_core.errors import ConfigurationError, InvalidJobSpecError
from delta_core.policies.contract import Contract, MissingColumns, NewColumns, parse_contract

COLUMNS_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "type"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "type": {
                "type": ["string", "object"],
                "description": "a type by its Delta or SQL name, or a nested type in the JSON form of a "
                "schema",
            },
            "nullable": {"type": "boolean"},
            "description": {
                "type": ["string", "null"],
                "description": "the column's comment in a new table",
            },
        },
    },
}

CONTRACT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "description": "requirements on the rows; the columns become the schema of a new table",
    "properties": {
        "columns": COLUMNS_SCHEMA,
        "constraints": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "expression"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "expression": {"type": "string", "minLength": 1},
                },
            },
        },
        "evolution": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "description": "which differences between data, contract and table are allowed",
            "properties": {
                "new_columns": {"enum": [item.value for item in NewColumns]},
                "missing_columns": {"enum": [item.value for item in MissingColumns]},
                "widen_types": {"type": "boolean"},
            },
        },
        "exact_string": {
            "type": "boolean",
            "description": "whether to refuse strings of CSV and JSON that the column's type would round or "
            "truncate; default true",
        },
        "show_rows": {
            "type": "boolean",
            "description": "whether an error may show rows that violate the contract; default true",
        },
    },
}
"""JSON Schema of a contract in a job's parameters."""


def contract_of(document: Mapping[str, Any] | None) -> Contract:
    """The contract in a job's parameters; an empty contract for None.

    Raises:
        InvalidJobSpecError: a type does not exist, or a name is used twice.
    """
    try:
        return parse_contract(document or {})
    except ConfigurationError as error:
        raise InvalidJobSpecError(error.problem, cause=error.cause, fix=error.fix) from error
