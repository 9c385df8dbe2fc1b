"""Columns of a table to be created, with all that a definition can say of them.

The names are those of delta-spark's `DeltaTableBuilder.addColumn`.
"""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.boundary import public, public_class
from delta_core.dml.arguments import require_string
from delta_core.errors import ConfigurationError
from delta_core.schema.field_metadata import COMMENT_KEY, CURRENT_DEFAULT_KEY, with_metadata
from delta_core.schema.given import TypeLike, coerce_type
from delta_core.schema.types import StructField
from delta_core.table_features.generation import define_generated
from delta_core.table_features.identity import define_identity


@public_class
@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityGenerator:
    """How an identity column counts: from `start` on, in steps of `step`, which is not 0."""

    start: int = 1
    step: int = 1

    def __post_init__(self) -> None:
        """Raises ConfigurationError for what is no whole number."""
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
        ConfigurationError: more than one of the last three, or one of another type.
        SchemaError: an identity column with step 0, or numbers that are no `long`; or a type that Delta does
            not have.
    """
    require_string(name, what="name of a column")
    _require_kinds(name, nullable=nullable, always=generated_always_as, by_default=generated_by_default_as)
    if sum(item is not None for item in (default, generated_always_as, generated_by_default_as)) > 1:
        raise ConfigurationError(
            f"Column {name} has more than one source of values.",
            cause="A column has a default, or a generation expression, or is an identity column.",
            fix="Pass one of default, generated_always_as and generated_by_default_as.",
        )
    field = StructField(name=name, data_type=coerce_type(data_type), nullable=nullable)
    if comment is not None:
        field = with_metadata(field, {COMMENT_KEY: require_string(comment, what="comment")})
    if default is not None:
        _require_sql(name, default)
        field = with_metadata(field, {CURRENT_DEFAULT_KEY: default})
    if isinstance(generated_always_as, str):
        require_string(generated_always_as, what=f"generation expression of column {name}")
        field = define_generated(field, generated_always_as)
    numbers = generated_by_default_as or generated_always_as
    if isinstance(numbers, IdentityGenerator):
        explicit = generated_by_default_as is not None
        field = define_identity(field, start=numbers.start, step=numbers.step, allow_explicit_insert=explicit)
    return field


def _require_kinds(name: str, *, nullable: object, always: object, by_default: object) -> None:
    """Refuse what would otherwise make a column of nulls, or one that other readers cannot open."""
    if not isinstance(nullable, bool):
        raise ConfigurationError(
            f"Column {name} cannot be nullable {nullable!r}.",
            cause=f"It is of type {type(nullable).__name__}.",
            fix="Pass True or False.",
        )
    for word, value, kinds, fix in (
        (
            "generated_always_as",
            always,
            (str, IdentityGenerator),
            "Pass SQL text over other columns, or IdentityGenerator(start=1, step=1).",
        ),
        (
            "generated_by_default_as",
            by_default,
            (IdentityGenerator,),
            "Pass IdentityGenerator(start=1, step=1); for SQL text there is generated_always_as.",
        ),
    ):
        if value is not None and not isinstance(value, kinds):
            raise ConfigurationError(
                f"Column {name} is not generated by {value!r}.",
                cause=f"{word} is of type {type(value).__name__}.",
                fix=fix,
            )


def _require_sql(name: str, default: object) -> None:
    if not isinstance(default, str):
        raise ConfigurationError(
            f"The default of column {name} cannot be {default!r}.",
            cause=f"It is of type {type(default).__name__}; a default is SQL text.",
            fix='Pass text such as "5", "\'new\'" or "current_timestamp()".',
        )
    require_string(default, what=f"default of column {name}")
