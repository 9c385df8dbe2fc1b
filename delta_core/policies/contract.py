"""Schema contracts: what each row that is loaded into a table must be, and how its schema may change.

A contract is the same object wherever it stands: a YAML file, or the `contract` of a job's parameters.
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
    """What becomes of a column that the contract does not have."""

    REFUSE = "refuse"
    ADD = "add"
    IGNORE = "ignore"


class MissingColumns(StrEnum):
    """What becomes of a column of the contract that the data does not have."""

    NULL = "null"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """Which differences between data, contract and table a load lives with.

    Attributes:
        new_columns: refuse the batch, add the columns to the table, or leave them out.
        missing_columns: null, which a NOT NULL column never allows, or refuse the batch.
        widen_types: cast data of a narrower type to the contract's, when no value can change. The
            table's own types never change.
    """

    new_columns: NewColumns = NewColumns.REFUSE
    missing_columns: MissingColumns = MissingColumns.NULL
    widen_types: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A contract that was checked.

    Attributes:
        columns: their order is that of a new table; a description is the column's comment there. None
            when the contract names none: then the table's own columns count.
        constraints: (name, SQL predicate) that each row must pass; null passes.
        evolution: which drift is allowed; None when the contract does not say.
        exact_string: whether text is refused that its column's type would round or cut.
        show_rows: whether an error may show rows that break the contract.
    """

    columns: StructType | None = None
    constraints: tuple[tuple[str, str], ...] = ()
    evolution: Evolution | None = None
    exact_string: bool = True
    show_rows: bool = True

    @property
    def rules(self) -> Evolution:
        """The evolution that holds: what is not said is refused."""
        return self.evolution or Evolution()


def _listed(value: Any) -> Any:
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
    columns: Annotated[tuple[_Column, ...], BeforeValidator(_listed)] = ()
    constraints: Annotated[tuple[_Constraint, ...], BeforeValidator(_listed)] = ()
    evolution: _Evolution | None = None
    exact_string: bool = True
    show_rows: bool = True


def load_contract(path: Path | str) -> Contract:
    """Read a contract from a YAML file.

    Raises:
        ConfigurationError: unreadable, not YAML, an unknown key, a bad value.
    """
    source = str(path)
    document = parse_mapping(
        read_file(path, what=_WHAT),
        source=source,
        what=_WHAT,
        keys="columns, constraints, evolution, exact_string and show_rows",
        when_large="describe fewer columns",
    )
    return parse_contract(document, source=source)


def parse_contract(document: Mapping[str, Any], *, source: str = "the job's parameters") -> Contract:
    """A contract from its object form; `source` is what messages call where it came from.

    Raises:
        ConfigurationError: names every key that is not known or has a bad value.
    """
    # A section without a value says nothing, as in a YAML file with only comments below a key.
    said = {key: value for key, value in document.items() if value is not None}
    try:
        model = _Contract.model_validate(said)
    except ValidationError as error:
        problems = validation_problems(error)
        raise _invalid(
            source, problems[0][0], "; ".join(f"{key}: {cause}" for key, cause in problems)
        ) from error
    repeated = _repeated([item.name for item in model.constraints])
    if repeated is not None:
        raise _invalid(source, "constraints", f"the name {repeated!r} stands twice")
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
    """The schema of columns given as objects with `name`, `type` and, where wanted, the other keys.

    A type is a name as Delta or SQL spells it, or a nested type in the schema's JSON form.

    Raises:
        SchemaError: a type does not exist, or two columns have one name.
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
    # Whether a name may hold a blank is the table's to say: with column mapping it may.
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
    """A type with its SQL names, at every depth, in Delta's spelling."""
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
    """A struct's field; what it leaves out is as in a contract's column."""
    if not isinstance(field, dict):
        return field
    return {"nullable": True, "metadata": {}, **field, "type": _delta_type(field.get("type"))}


def _repeated(names: Sequence[str]) -> str | None:
    """A name that stands twice; Delta compares the names of constraints without case."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return None


def _invalid(source: str, key: str, cause: str) -> ConfigurationError:
    return ConfigurationError(
        f"the contract in {source} is not valid at {key}",
        cause=cause,
        fix="docs/contracts.md lists the keys of a contract",
    )
