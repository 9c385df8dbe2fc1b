"""The assignments of an UPDATE: new values of columns and of fields of structs, as columns of Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.data.row_plan import default_constants
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ConfigurationError, ExpressionError, SchemaMismatchError
from delta_core.expressions.ast import Column as ColumnName
from delta_core.expressions.parse import parse
from delta_core.expressions.typing import find_column
from delta_core.schema.column_paths import Path, display_path, is_related
from delta_core.schema.types import DataType, StructField, StructType
from spark_jobs.dml.condition import refuse_subqueries
from spark_jobs.dml.values import Caster
from spark_jobs.expressions.columns import quoted
from spark_jobs.expressions.predicates import to_column
from spark_jobs.failures import ViolationToken
from spark_jobs.schema import to_spark, to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.dml.clauses import Sql

_OPERATION = "UPDATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """One assignment. `value` None is the column's default."""

    path: Path
    data_type: DataType
    value: Sql | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The assignments of one statement. All values are computed from the old row.

    Attributes:
        columns: the assigned columns, as a whole or in part.
    """

    plan: WritePlan
    settings: tuple[_Setting, ...]
    defaults: Mapping[str, Column]

    @classmethod
    def of(cls, assigned: Mapping[str, Sql], *, plan: WritePlan, alias: str | None, now_us: int) -> Settings:
        """Check the names of the assignments.

        Args:
            assigned: SQL text (`DEFAULT` is the column's default) or a Column by column, or by the path of a
                field of a struct. A name may have the table's alias.
            plan: the write plan of the table.
            alias: the table's alias.
            now_us: the statement's time in microseconds since the epoch, for defaults.

        Raises:
            ConfigurationError: nothing is assigned, a column is assigned twice, or a value is neither SQL
                text nor a Column, or has a subquery.
            ExpressionError: a column does not exist, or a default cannot be evaluated.
            SchemaMismatchError: an identity column is assigned.
        """
        if not isinstance(assigned, Mapping) or not assigned:
            raise ConfigurationError(
                "The UPDATE assigns no column.",
                cause=f"`set` is {assigned!r}.",
                fix="Pass a mapping from column names to SQL expressions or Columns.",
            )
        settings = tuple(_setting(name, value, plan.schema, alias) for name, value in assigned.items())
        for index, setting in enumerate(settings):
            for other in settings[:index]:
                if is_related(setting.path, other.path):
                    raise ConfigurationError(
                        f"{display_path(setting.path)} and {display_path(other.path)} are both assigned.",
                        cause="They are the same column, or one of them is a field of the other.",
                        fix="Assign each column once.",
                    )
        names = {setting.path[0] for setting in settings}
        identity = next((item.name for item in plan.identity if item.name in names), None)
        if identity is not None:
            raise SchemaMismatchError(
                f"The identity column {identity} cannot be assigned.",
                cause="The table generates its values, and each row keeps its value.",
                fix="Remove the column from the assignments.",
            )
        wanted = frozenset(item.path[0] for item in settings if item.value is None and len(item.path) == 1)
        constants = default_constants(plan, wanted, now_us)
        defaults = {name: to_column(literal, plan.schema) for name, literal in constants}
        return cls(plan=plan, settings=settings, defaults=defaults)

    @property
    def columns(self) -> list[str]:
        """The assigned columns, as a whole or in part."""
        return list(dict.fromkeys(setting.path[0] for setting in self.settings))

    def require_valid(self, spark: SparkSession, alias: str | None) -> None:
        """Check the expressions, before any row is read.

        Raises:
            ExpressionError: Spark refuses an expression.
            SchemaMismatchError: a struct does not have the column's fields.
        """
        empty = spark.createDataFrame([], to_spark(self.plan.schema))
        self.values(empty if alias is None else empty.alias(alias), Caster(ViolationToken(), first=0))

    def values(self, frame: DataFrame, caster: Caster) -> dict[str, Column]:
        """The new values by column, for rows of the table.

        Raises:
            ExpressionError: Spark refuses an expression.
            SchemaMismatchError: a struct does not have the column's fields.
        """
        found = {}
        for field in self.plan.schema:
            chosen = [setting for setting in self.settings if setting.path[0] == field.name]
            if chosen:
                found[field.name] = self._value(frame, field, chosen, None, caster)
        return found

    def _value(
        self,
        frame: DataFrame,
        field: StructField,
        settings: Sequence[_Setting],
        struct: tuple[Column, int] | None,
        caster: Caster,
    ) -> Column:
        """The new value of a column, or of a field of the struct, for assignments to it or inside it.

        `struct` is the old value of the struct that contains the field, and the length of its path.
        """
        from pyspark.sql import functions as fn

        depth = 1 if struct is None else struct[1] + 1
        if len(settings[0].path) == depth:
            return self._assigned(frame, settings[0], field, caster)
        old = fn.col(quoted(field.name)) if struct is None else struct[0].getField(field.name)
        assert isinstance(field.data_type, StructType)
        parts = []
        for inner in field.data_type:
            chosen = [setting for setting in settings if setting.path[depth] == inner.name]
            if chosen:
                value = self._value(frame, inner, chosen, (old, depth), caster)
            else:
                value = old.getField(inner.name)
            parts.append(value.alias(inner.name))
        return fn.struct(*parts)

    def _assigned(self, frame: DataFrame, setting: _Setting, field: StructField, caster: Caster) -> Column:
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as fn

        if setting.value is None:
            default = self.defaults.get(field.name) if len(setting.path) == 1 else None
            return (fn.lit(None) if default is None else default).cast(to_spark_type(field.data_type))
        try:
            return caster.value(frame, setting.value, field)
        except PySparkException as error:
            raise ExpressionError(
                f"The value of {display_path(setting.path)} in the UPDATE is not valid.",
                cause=str(error).splitlines()[0][:500],
                fix="Use the table's columns by name and Spark's functions of one row.",
            ) from error


def _setting(name: object, value: Sql, schema: StructType, alias: str | None) -> _Setting:
    path, data_type = _column(name, schema, alias)
    refuse_subqueries(value, f"value of {display_path(path)}", _OPERATION)
    is_default = isinstance(value, str) and value.strip().upper() == "DEFAULT"
    if is_default and schema.find("default") is None:
        return _Setting(path=path, data_type=data_type, value=None)
    return _Setting(path=path, data_type=data_type, value=value)


def _column(name: object, schema: StructType, alias: str | None) -> tuple[Path, DataType]:
    if not isinstance(name, str):
        raise ConfigurationError(
            f"{name!r} does not name a column.", fix="Pass a string such as 'price' or 'address.city'."
        )
    found = schema.find(name)
    if found is not None:
        return (found.name,), found.data_type
    try:
        parsed = parse(name)
    except ExpressionError:
        parsed = None
    path = parsed.path if isinstance(parsed, ColumnName) else (name,)
    if alias is not None and len(path) > 1 and path[0].casefold() == alias.casefold():
        path = path if schema.find(path[1]) is None else path[1:]
    return find_column(path, schema)
