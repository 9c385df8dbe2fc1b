"""Schema contracts: requirements on each loaded row, and the allowed changes of the table's schema.

A contract has the same form in a YAML file and in the `contract` of a job's parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from delta_core.errors import ConfigurationError, SchemaError
from delta_core.policies.yaml_document import parse_mapping, read_file, validation_problems
from delta_core.schema.evolution import validate_schema
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import StructType

_WHAT = "contract"
_SQL_NAMES = {
    "bigint": "long",
    "int": "integer",
    "smallint": "short",
    "tinyint": "byte",
    "bool": "boolean",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_INNER_TYPES = ("elementType", "keyType", "valueType")


class NewColumns(StrEnum):
    """The treatment of a column that is not in the contract."""

    REFUSE = "refuse"
    ADD = "add"
    IGNORE = "ignore"


class MissingColumns(StrEnum):
    """The treatment of a column of the contract that is missing in the data."""

    NULL = "null"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """The differences between data, contract and table that a load accepts.

    Attributes:
        new_columns: refuse the batch, add the columns to the table, or leave the columns out.
        missing_columns: fill with null, which a NOT NULL column never allows, or refuse the batch.
        widen_types: cast data of a narrower type to the contract's type, when no value can change. The types
            of the table never change.
    """

    new_columns: NewColumns = NewColumns.REFUSE
    missing_columns: MissingColumns = MissingColumns.NULL
    widen_types: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A validated contract.

    Attributes:
        columns: the columns. A new table has them in this order, with the descriptions as column comments.
            None when the contract names no columns: the table's columns apply.
        constraints: pairs of a name and a SQL predicate that each row must pass; null passes.
        evolution: the allowed drift; None when the contract does not specify it.
        exact_string: whether to refuse strings that the column's type would round or truncate.
        show_rows: whether an error may show rows that violate the contract.
    """

    columns: StructType | None = None
    constraints: tuple[tuple[str, str], ...] = ()
    evolution: Evolution | None = None
    exact_string: bool = True
    show_rows: bool = True

    @property
    def rules(self) -> Evolution:
        """The evolution that applies. Without one, every drift is refused except missing nullable columns."""
        return self.evolution or Evolution()


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Column(_Section):
    name: Annotated[str, Field(min_length=1)]
    type: Annotated[str, Field(min_length=1)] | dict[str, Any]
    nullable: bool = True
    description: str | None = None


class _Constraint(_Section):
    name: Annotated[str, Field(min_length=1)]
    expression: Annotated[str, Field(min_length=1)]


class _Evolution(_Section):
    new_columns: Annotated[NewColumns, Field(strict=False)] = NewColumns.REFUSE
    missing_columns: Annotated[MissingColumns, Field(strict=False)] = MissingColumns.NULL
    widen_types: bool = False


class _Contract(_Section):
    columns: Annotated[tuple[_Column, ...], BeforeValidator(_as_tuple)] = ()
    constraints: Annotated[tuple[_Constraint, ...], BeforeValidator(_as_tuple)] = ()
    evolution: _Evolution | None = None
    exact_string: bool = True
    show_rows: bool = True


def load_contract(path: Path | str) -> Contract:
    """Read a contract from a YAML file.

    Raises:
        ConfigurationError: the file is unreadable or not YAML, a key is unknown, or a value is not valid.
    """
    source = str(path)
    document = parse_mapping(
        read_file(path, what=_WHAT),
        source=source,
        what=_WHAT,
        keys="columns, constraints, evolution, exact_string and show_rows",
        when_large="Describe fewer columns.",
    )
    return parse_contract(document, source=source)


def parse_contract(document: Mapping[str, Any], *, source: str = "the job's parameters") -> Contract:
    """Parse a contract from its object form; `source` names its origin in messages.

    Raises:
        ConfigurationError: a key is unknown or a value is not valid. The error names all such keys.
    """
    # A key without a value counts as missing, as in a YAML file with only comments below a key.
    present = {key: value for key, value in document.items() if value is not None}
    try:
        model = _Contract.model_validate(present)
    except ValidationError as error:
        problems = validation_problems(error)
        raise _invalid(
            source, problems[0][0], "; ".join(f"{key}: {cause}" for key, cause in problems)
        ) from error
    repeated = _repeated([item.name for item in model.constraints])
    if repeated is not None:
        raise _invalid(source, "constraints", f"The name {repeated!r} is used twice.")
    evolution = model.evolution
    return Contract(
        columns=_columns(model.columns, source),
        constraints=tuple((item.name, item.expression) for item in model.constraints),
        evolution=None
        if evolution is None
        else Evolution(
            new_columns=evolution.new_columns,
            missing_columns=evolution.missing_columns,
            widen_types=evolution.widen_types,
        ),
        exact_string=model.exact_string,
        show_rows=model.show_rows,
    )


def schema_of_columns(columns: Sequence[Mapping[str, Any]]) -> StructType:
    """The schema of columns that are objects with the keys of a contract's column (docs/contracts.md).

    A type is a name in Delta's or SQL's spelling, or a nested type in the JSON form of a schema.

    Raises:
        SchemaError: a type does not exist, or two columns have the same name.
    """
    fields = []
    for column in columns:
        description = column.get("description")
        fields.append(
            {
                "name": column["name"],
                "type": _delta_type(column["type"]),
                "nullable": column.get("nullable", True),
                "metadata": {} if description is None else {"comment": description},
            }
        )
    schema = schema_from_json(json.dumps({"type": "struct", "fields": fields}))
    # A name may contain a blank when the table has column mapping, which is not known here.
    validate_schema(schema, column_mapping=True)
    return schema


def _columns(columns: Sequence[_Column], source: str) -> StructType | None:
    if not columns:
        return None
    try:
        return schema_of_columns([column.model_dump() for column in columns])
    except SchemaError as error:
        raise _invalid(source, "columns", str(error)) from error


def _delta_type(node: Any) -> Any:
    """The type with SQL type names, at every depth, replaced by Delta's names."""
    if isinstance(node, str):
        folded = re.sub(r"\s+", "", node.casefold())
        if folded in ("decimal", "numeric"):
            return "decimal(10,0)"
        return _SQL_NAMES.get(folded, folded)
    if isinstance(node, list):
        return [_delta_field(item) for item in node]
    if not isinstance(node, dict):
        return node
    inner = {key: _delta_type(node[key]) for key in _INNER_TYPES if key in node}
    fields = {"fields": _delta_type(node["fields"])} if "fields" in node else {}
    return {**node, **inner, **fields}


def _delta_field(field: Any) -> Any:
    """A struct's field. The defaults of missing keys are those of a contract's column."""
    if not isinstance(field, dict):
        return field
    return {"nullable": True, "metadata": {}, **field, "type": _delta_type(field.get("type"))}


def _repeated(names: Sequence[str]) -> str | None:
    """A name that is used twice. Delta compares the names of constraints without case."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return None


def _invalid(source: str, key: str, cause: str) -> ConfigurationError:
    return ConfigurationError(
        f"The contract in {source} is not valid at {key}.",
        cause=cause,
        fix="See docs/contracts.md for the keys of a contract.",
    )
