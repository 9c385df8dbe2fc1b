"""Drift: the differences between data, or a table, and a contract, and which of them are allowed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from delta_core.errors import ExpressionError
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve
from delta_core.policies.contract import Contract, Evolution, MissingColumns, NewColumns
from delta_core.schema.enforcement import widens_losslessly
from delta_core.schema.evolution import merge_schemas
from delta_core.schema.types import VOID, ArrayType, DataType, MapType, StructField, StructType
from delta_core.table_features.enablement import CONSTRAINT_PREFIX


class Change(StrEnum):
    """The kinds of difference between data or a table and its contract."""

    NEW_COLUMN = "new_column"
    MISSING_COLUMN = "missing_column"
    DUPLICATE_COLUMN = "duplicate_column"
    TYPE_CHANGED = "type_changed"
    CASE_CHANGED = "case_changed"
    NULLABILITY_CHANGED = "nullability_changed"
    MISSING_ON_TABLE = "missing_on_table"
    TABLE_TYPE_DIFFERS = "table_type_differs"
    CONSTRAINT_MISSING_ON_TABLE = "constraint_missing_on_table"
    CONSTRAINT_CHANGED = "constraint_changed"
    CONSTRAINT_INVALID = "constraint_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """A difference between data or a table and its contract.

    Attributes:
        column: the column's path (`address.city`, `tags.element`), or the constraint's name.
        expected: the contract's definition; None when the contract has none.
        found: the definition in the data or the table; None when the column is missing.
        allowed: whether a load may continue despite the difference.
        why: the reason for `allowed`.
    """

    column: str
    change: Change
    expected: str | None
    found: str | None
    allowed: bool
    why: str

    def __str__(self) -> str:
        actual = "is missing" if self.found is None else f"is {self.found}"
        expected = "" if self.expected is None else f", the contract requires {self.expected}"
        return f"{self.column} {actual}{expected} ({self.change}: {self.why})"

    def to_json(self) -> dict[str, Any]:
        """The difference as a JSON object."""
        return {
            "column": self.column,
            "change": self.change.value,
            "expected": self.expected,
            "found": self.found,
            "allowed": self.allowed,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """All differences, in the order of the contract's columns. The order of columns is not compared."""

    changes: tuple[SchemaChange, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether every difference is allowed."""
        return all(change.allowed for change in self.changes)

    @property
    def refused(self) -> tuple[SchemaChange, ...]:
        """The differences that are not allowed."""
        return tuple(change for change in self.changes if not change.allowed)

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {"changes": [change.to_json() for change in self.changes], "allowed": self.allowed}


def drift(
    contract: Contract, found: StructType, table: StructType | None = None, *, merge_schema: bool = False
) -> DriftReport:
    """The differences between a batch and its contract or table.

    Args:
        contract: the expected columns; the table's columns when the contract has none.
        found: the schema of the rows. Its nullability is ignored, because the load checks the rows for nulls.
        table: the schema of the target table; None when the table is new or is overwritten with the rows'
            schema.
        merge_schema: the load may add columns to the table, regardless of the contract.
    """
    expected = contract.columns or table
    if expected is None:
        return DriftReport()
    adds = merge_schema or contract.rules.new_columns is NewColumns.ADD
    changes = [*_compare_structs(expected, found, "", contract.rules, table)]
    if table is not None and contract.columns is not None:
        changes += _against_table(contract.columns, table, "", contract.rules, adds=adds)
    return DriftReport(changes=tuple(changes))


def written_schema(contract: Contract, found: StructType, table: StructType | None = None) -> StructType:
    """The schema with which rows of `found` are written, when their drift is allowed.

    It has the contract's columns (the table's, when the contract has none), and after them new columns when
    the contract adds new columns. A new column with only nulls has no type and is left out.
    """
    expected = contract.columns or table
    if expected is None:
        return found
    if contract.rules.new_columns is not NewColumns.ADD:
        return expected
    return merge_schemas(expected, _without_unknown_void(found, expected))


def table_drift(contract: Contract, schema: StructType, configuration: Mapping[str, str]) -> DriftReport:
    """The differences between a table and its contract.

    Args:
        contract: the contract.
        schema: the table's schema.
        configuration: the table's properties, which include its CHECK constraints.
    """
    changes: list[SchemaChange] = []
    if contract.columns is not None:
        changes += _table_structs(contract.columns, schema, "", contract.rules)
    changes += _constraints(contract, schema, configuration)
    return DriftReport(changes=tuple(changes))


# ---------------------------------------------------------------- data against the contract


def _compare_structs(
    expected: StructType, found: StructType, prefix: str, rules: Evolution, table: StructType | None
) -> Iterator[SchemaChange]:
    present: dict[str, StructField] = {}
    for field in found:
        if field.name.casefold() in present:
            yield _change(
                prefix + field.name,
                Change.DUPLICATE_COLUMN,
                None,
                str(field.data_type),
                allowed=False,
                why="names are compared without case, so two columns have the same name",
            )
        present.setdefault(field.name.casefold(), field)
    for field in expected:
        data_field = present.get(field.name.casefold())
        known = None if table is None else table.find(field.name)
        if data_field is None:
            yield _missing(field, prefix, rules, known)
            continue
        if data_field.name != field.name:
            yield _case(prefix, field, data_field)
        yield from _compare(
            field.data_type,
            data_field.data_type,
            prefix + field.name,
            rules,
            None if known is None else known.data_type,
        )
    for field in found:
        if expected.find(field.name) is None:
            yield _new(field, prefix, rules, None if table is None else table.find(field.name))


def _compare(
    expected: DataType, found: DataType, path: str, rules: Evolution, table: DataType | None
) -> Iterator[SchemaChange]:
    match expected, found:
        case StructType(), StructType():
            inner = table if isinstance(table, StructType) else None
            yield from _compare_structs(expected, found, f"{path}.", rules, inner)
        case ArrayType(), ArrayType():
            known = table.element_type if isinstance(table, ArrayType) else None
            yield from _compare(expected.element_type, found.element_type, f"{path}.element", rules, known)
        case MapType(), MapType():
            key, value = (table.key_type, table.value_type) if isinstance(table, MapType) else (None, None)
            yield from _compare(expected.key_type, found.key_type, f"{path}.key", rules, key)
            yield from _compare(expected.value_type, found.value_type, f"{path}.value", rules, value)
        case _ if found not in (expected, VOID):
            allowed, why = _widening(found, expected, rules)
            yield _change(path, Change.TYPE_CHANGED, str(expected), str(found), allowed=allowed, why=why)


def _missing(field: StructField, prefix: str, rules: Evolution, table: StructField | None) -> SchemaChange:
    if not field.nullable:
        allowed, why = False, "the column is NOT NULL"
    elif table is not None and not table.nullable:
        allowed, why = False, "the column is NOT NULL in the table"
    elif rules.missing_columns is MissingColumns.REFUSE:
        allowed, why = False, "missing columns are refused"
    else:
        allowed, why = True, "missing columns are null"
    return _change(
        prefix + field.name, Change.MISSING_COLUMN, _declared(field), None, allowed=allowed, why=why
    )


def _new(field: StructField, prefix: str, rules: Evolution, table: StructField | None) -> SchemaChange:
    if rules.new_columns is NewColumns.REFUSE:
        allowed, why = False, "new columns are refused"
    elif rules.new_columns is NewColumns.IGNORE:
        allowed, why = True, "new columns are left out"
    elif table is not None and _is_incompatible(table.data_type, field.data_type, rules):
        allowed, why = False, f"the table has the column as {table.data_type}, and its types never change"
    elif table is not None:
        allowed, why = True, "an earlier batch added the column to the table"
    elif field.data_type == VOID:
        allowed, why = True, "the column has only nulls, so it has no type and is left out"
    else:
        allowed, why = True, "new columns are added to the table"
    return _change(
        prefix + field.name, Change.NEW_COLUMN, None, str(field.data_type), allowed=allowed, why=why
    )


def _is_incompatible(table: DataType, found: DataType, rules: Evolution) -> bool:
    return any(not change.allowed for change in _compare(table, found, "", rules, None))


def _without_unknown_void(found: StructType, expected: StructType) -> StructType:
    """The data's schema without new fields that have only nulls, also nested ones."""
    fields: list[StructField] = []
    for field in found:
        known = expected.find(field.name)
        data_type = field.data_type
        if isinstance(data_type, StructType):
            inner = known.data_type if known is not None else None
            data_type = _without_unknown_void(
                data_type, inner if isinstance(inner, StructType) else StructType(())
            )
        if known is not None or data_type not in (VOID, StructType(())):
            fields.append(replace(field, data_type=data_type))
    return StructType(tuple(fields))


# ---------------------------------------------------------------- the contract against the table


def _against_table(
    columns: StructType, table: StructType, prefix: str, rules: Evolution, *, adds: bool
) -> Iterator[SchemaChange]:
    """The differences because of which the table refuses rows that satisfy the contract."""
    for field in columns:
        path = prefix + field.name
        known = table.find(field.name)
        if known is None:
            why = "the column is added to the table" if adds else "the table does not have the column"
            yield _change(path, Change.MISSING_ON_TABLE, _declared(field), None, allowed=adds, why=why)
            continue
        match field.data_type, known.data_type:
            case (StructType() as inner, StructType() as inner_known):
                yield from _against_table(inner, inner_known, f"{path}.", rules, adds=adds)
            case (contract_type, table_type) if contract_type != table_type and not (
                table_type == VOID and adds
            ):
                yield from _table_type(contract_type, table_type, path, rules)
    for field in table:
        if columns.find(field.name) is None and not field.nullable:
            yield _change(
                prefix + field.name,
                Change.MISSING_COLUMN,
                None,
                _declared(field),
                allowed=False,
                why="the table's column is NOT NULL and is not in the contract",
            )


def _table_type(
    contract_type: DataType, table_type: DataType, path: str, rules: Evolution
) -> Iterator[SchemaChange]:
    """The type differences at the deepest paths: of a leaf, or inside an array or a map."""
    for change in _compare(table_type, contract_type, path, rules, None):
        if change.change is Change.TYPE_CHANGED:
            yield _change(
                change.column,
                Change.TABLE_TYPE_DIFFERS,
                change.found,
                change.expected,
                allowed=change.allowed,
                why=change.why,
            )
        elif not change.allowed:
            yield change


def _table_structs(
    columns: StructType, table: StructType, prefix: str, rules: Evolution
) -> Iterator[SchemaChange]:
    adds = rules.new_columns is NewColumns.ADD
    for field in columns:
        path = prefix + field.name
        known = table.find(field.name)
        if known is None:
            why = "the next load adds the column" if adds else "the table does not have the column"
            yield _change(path, Change.MISSING_COLUMN, _declared(field), None, allowed=adds, why=why)
            continue
        if known.name != field.name:
            yield _case(prefix, field, known)
        if known.nullable != field.nullable:
            yield _nullability(path, field, known, adds=adds)
        match field.data_type, known.data_type:
            case (StructType() as inner, StructType() as inner_known):
                yield from _table_structs(inner, inner_known, f"{path}.", rules)
            case (contract_type, table_type) if contract_type != table_type:
                yield from _table_type(contract_type, table_type, path, rules)
    for field in table:
        if columns.find(field.name) is None:
            yield _not_in_contract(field, prefix, rules)


def _nullability(path: str, field: StructField, known: StructField, *, adds: bool) -> SchemaChange:
    if known.nullable:
        why = (
            "an added column is null in older rows; loads check the newer rows"
            if adds
            else "the table may contain null, which the contract does not allow"
        )
        allowed = adds
    else:
        allowed, why = False, "the table refuses null, which the contract allows"
    return _change(
        path, Change.NULLABILITY_CHANGED, _declared(field), _declared(known), allowed=allowed, why=why
    )


def _not_in_contract(field: StructField, prefix: str, rules: Evolution) -> SchemaChange:
    if not field.nullable:
        allowed, why = False, "the column is NOT NULL and is not in the contract"
    elif rules.new_columns is NewColumns.REFUSE:
        allowed, why = False, "new columns are refused"
    elif rules.new_columns is NewColumns.ADD:
        allowed, why = True, "new columns are added to the table"
    else:
        allowed, why = True, "loads leave the column null"
    return _change(prefix + field.name, Change.NEW_COLUMN, None, _declared(field), allowed=allowed, why=why)


def _constraints(
    contract: Contract, schema: StructType, configuration: Mapping[str, str]
) -> Iterator[SchemaChange]:
    table_type = {
        key.removeprefix(CONSTRAINT_PREFIX).casefold(): predicate
        for key, predicate in configuration.items()
        if key.startswith(CONSTRAINT_PREFIX)
    }
    # Missing columns are reported separately, so constraints are resolved against the contract's columns.
    known = schema if contract.columns is None else contract.columns
    for name, predicate in contract.constraints:
        try:
            contract_type = to_spark_sql(resolve(parse_predicate(predicate, known), known))
        except ExpressionError as error:
            yield _change(
                name,
                Change.CONSTRAINT_INVALID,
                predicate,
                None,
                allowed=False,
                why=error.cause or error.problem,
            )
            continue
        found = table_type.get(name.casefold())
        if found is None:
            yield _change(
                name,
                Change.CONSTRAINT_MISSING_ON_TABLE,
                predicate,
                None,
                allowed=True,
                why="loads with the contract check the constraint, other writers do not",
            )
        elif _normal(found, schema) != contract_type:
            yield _change(
                name,
                Change.CONSTRAINT_CHANGED,
                predicate,
                found,
                allowed=True,
                why="loads check both predicates",
            )


def _normal(predicate: str, schema: StructType) -> str:
    try:
        return to_spark_sql(resolve(parse_predicate(predicate, schema), schema))
    except ExpressionError:
        return predicate


# ---------------------------------------------------------------- shared helpers


def _widening(found: DataType, expected: DataType, rules: Evolution) -> tuple[bool, str]:
    if not widens_losslessly(found, expected):
        return False, f"{found} cannot be cast to {expected} without changing values"
    if not rules.widen_types:
        return False, "widen_types is false"
    return True, f"values are cast to {expected} without a change of value"


def _case(prefix: str, field: StructField, data_field: StructField) -> SchemaChange:
    return _change(
        prefix + field.name,
        Change.CASE_CHANGED,
        field.name,
        data_field.name,
        allowed=True,
        why="names are compared without case",
    )


def _declared(field: StructField) -> str:
    return f"{field.data_type}{'' if field.nullable else ' NOT NULL'}"


def _change(
    column: str, change: Change, expected: str | None, found: str | None, *, allowed: bool, why: str
) -> SchemaChange:
    return SchemaChange(
        column=column, change=change, expected=expected, found=found, allowed=allowed, why=why
    )
