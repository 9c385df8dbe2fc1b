"""The parameter `deduplicate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from delta_core.errors import InvalidJobSpecError
from delta_core.jobs.params.row_expressions import require_row_expression

DEDUPLICATE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "required": ["keys"],
    "additionalProperties": False,
    "description": "keep one row per key",
    "properties": {
        "keys": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        "order_by": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "description": "Spark SQL, such as seq DESC NULLS LAST. The first row is kept; by default "
            "nulls are last",
        },
        "against_table": {
            "type": "boolean",
            "description": "also drop rows whose key is already in the table",
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplication:
    """The parameters of a deduplication: one row per key is kept.

    Attributes:
        keys: the key columns. A row with a null in a key column is always kept.
        order_by: the first row in this order is kept. Among rows that are equal in it, any row is kept.
        against_table: whether to drop rows whose key is already in the target table.
    """

    keys: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    against_table: bool = False


def parse_deduplicate(value: Mapping[str, Any] | None) -> Deduplication | None:
    """Parse the parameter `deduplicate`.

    Raises:
        InvalidJobSpecError: no key column is given, or the order has a subquery.
    """
    if value is None:
        return None
    if not value["keys"]:
        raise InvalidJobSpecError(
            "The parameter deduplicate has no keys.", fix="Name at least one column in keys."
        )
    return Deduplication(
        keys=tuple(value["keys"]),
        order_by=tuple(
            require_row_expression(item, what="order of deduplicate") for item in value.get("order_by") or ()
        ),
        against_table=value.get("against_table", False),
    )
