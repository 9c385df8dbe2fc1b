"""Columns of a table to be created, with all that a definition can say of them.

The names are those of delta-spark's `DeltaTableBuilder.addColumn`.
"""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.errors import ConfigurationError
from delta_core.schema.field_metadata import COMMENT_KEY, CURRENT_DEFAULT_KEY, with_metadata
from delta_core.schema.given import GivenType, given_type
from delta_core.schema.types import StructField
from delta_core.table_features.generation import define_generated
from delta_core.table_features.identity import define_identity


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityGenerator:
    """How an identity column counts: from `start` on, in steps of `step`, which is not 0."""

    start: int = 1
    step: int = 1


def define_column(
    name: str,
    data_type: GivenType,
    *,
    nullable: bool = True,
    comment: str | None = None,
    default: str | None = None,
    generated_always_as: str | IdentityGenerator | None = None,
    generated_by_default_as: IdentityGenerator | None = None,
) -> StructField:
    """A column for the schema of `DeltaTable.create`, which checks it together with the others.

    Args:
        name: the column's.
        data_type: its type, ours or Arrow's.
        nullable: whether it may hold nulls.
        comment: what it is.
        default: SQL text; the value of rows that lack the column.
        generated_always_as: SQL text over other columns, from which every value follows; or the numbers of an
            identity column that takes none from callers.
        generated_by_default_as: the numbers of an identity column, where rows bring none.

    Raises:
        ConfigurationError: more than one of the last three.
        SchemaError: an identity column with step 0, or numbers that are no `long`; or a type that Delta does
            not have.
    """
    if sum(item is not None for item in (default, generated_always_as, generated_by_default_as)) > 1:
        raise ConfigurationError(
            f"Column {name} has more than one source of values.",
            cause="A column has a default, or a generation expression, or is an identity column.",
            fix="Pass one of default, generated_always_as and generated_by_default_as.",
        )
    field = StructField(name=name, data_type=given_type(data_type), nullable=nullable)
    if comment is not None:
        field = with_metadata(field, {COMMENT_KEY: comment})
    if default is not None:
        field = with_metadata(field, {CURRENT_DEFAULT_KEY: default})
    if isinstance(generated_always_as, str):
        field = define_generated(field, generated_always_as)
    numbers = generated_by_default_as or generated_always_as
    if isinstance(numbers, IdentityGenerator):
        explicit = generated_by_default_as is not None
        field = define_identity(field, start=numbers.start, step=numbers.step, allow_explicit_insert=explicit)
    return field
