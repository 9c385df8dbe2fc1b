"""Defines columns of a table to be created, with comment, default and generated values.

The argument names are those of delta-spark's `DeltaTableBuilder.addColumn`.
"""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.arguments import require_string
from delta_core.boundary import public, public_class
from delta_core.errors import ConfigurationError
from delta_core.schema.field_metadata import COMMENT_KEY, CURRENT_DEFAULT_KEY, with_metadata
from delta_core.schema.schema_arguments import TypeLike, coerce_type
from delta_core.schema.types import StructField
from delta_core.table_features.generation import define_generated
from delta_core.table_features.identity import define_identity


@public_class
@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityGenerator:
    """The series of an identity column: it begins with `start` and increases by `step`, which is not 0."""

    start: int = 1
    step: int = 1

    def __post_init__(self) -> None:
        """Raises ConfigurationError when a value is not a whole number."""
        for name, value in (("start", self.start), ("step", self.step)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigurationError(
                    f"The {name} of an identity column cannot be {value!r}.",
                    cause=f"It is of type {type(value).__name__}.",
                    fix="Pass a whole number, such as 1.",
                )


@public
def define_column(
    name: str,
    data_type: TypeLike,
    *,
    nullable: bool = True,
    comment: str | None = None,
    default: str | None = None,
    generated_always_as: str | IdentityGenerator | None = None,
    generated_by_default_as: IdentityGenerator | None = None,
) -> StructField:
    """A column for the schema of `DeltaTable.create`, which checks all columns together.

    Args:
        name: the column's name.
        data_type: the column's type, as a type of this library or of Arrow.
        nullable: whether the column may hold nulls.
        comment: a description of the column.
        default: SQL text for the value of rows that lack the column.
        generated_always_as: SQL text on other columns that computes every value; or the series of an identity
            column that accepts no values from callers.
        generated_by_default_as: the series of an identity column, for rows without a value.

    Raises:
        ConfigurationError: more than one of the last three arguments is given, or an argument has a wrong
            type.
        SchemaError: an identity column has the step 0 or values that are not a `long`, or Delta does not
            support the type.
    """
    require_string(name, what="name of a column")
    _require_kinds(name, nullable=nullable, always=generated_always_as, by_default=generated_by_default_as)
    if sum(item is not None for item in (default, generated_always_as, generated_by_default_as)) > 1:
        raise ConfigurationError(
            f"The column {name} has more than one source of values.",
            cause="A column can have a default or a generation expression, or be an identity column.",
            fix="Pass only one of default, generated_always_as and generated_by_default_as.",
        )
    field = StructField(name=name, data_type=coerce_type(data_type), nullable=nullable)
    if comment is not None:
        field = with_metadata(field, {COMMENT_KEY: require_string(comment, what="comment")})
    if default is not None:
        _require_sql(name, default)
        field = with_metadata(field, {CURRENT_DEFAULT_KEY: default})
    if isinstance(generated_always_as, str):
        require_string(generated_always_as, what=f"generation expression of the column {name}")
        field = define_generated(field, generated_always_as)
    series = generated_by_default_as or generated_always_as
    if isinstance(series, IdentityGenerator):
        explicit = generated_by_default_as is not None
        field = define_identity(field, start=series.start, step=series.step, allow_explicit_insert=explicit)
    return field


def _require_kinds(name: str, *, nullable: object, always: object, by_default: object) -> None:
    """Refuse arguments of a wrong type. They would make a column of nulls, or one that readers refuse."""
    if not isinstance(nullable, bool):
        raise ConfigurationError(
            f"The argument `nullable` of the column {name} cannot be {nullable!r}.",
            cause=f"It is of type {type(nullable).__name__}.",
            fix="Pass True or False.",
        )
    for argument, value, kinds, fix in (
        (
            "generated_always_as",
            always,
            (str, IdentityGenerator),
            "Pass SQL text on other columns, or IdentityGenerator(start=1, step=1).",
        ),
        (
            "generated_by_default_as",
            by_default,
            (IdentityGenerator,),
            "Pass IdentityGenerator(start=1, step=1), or use generated_always_as for SQL text.",
        ),
    ):
        if value is not None and not isinstance(value, kinds):
            raise ConfigurationError(
                f"The column {name} cannot be generated by {value!r}.",
                cause=f"The argument `{argument}` is of type {type(value).__name__}.",
                fix=fix,
            )


def _require_sql(name: str, default: object) -> None:
    if not isinstance(default, str):
        raise ConfigurationError(
            f"The default of the column {name} cannot be {default!r}.",
            cause=f"It is of type {type(default).__name__}, but a default must be SQL text.",
            fix='Pass SQL text such as "5", "\'new\'" or "current_timestamp()".',
        )
    require_string(default, what=f"default of the column {name}")
