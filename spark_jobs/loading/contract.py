"""A contract at work: the drift of a batch is judged before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from delta_core.errors import ConfigurationError, InvalidJobSpecError, SchemaMismatchError
from delta_core.policies.contract import Contract, MissingColumns, NewColumns, parse_contract
from delta_core.policies.drift import DriftReport, drift, written_schema
from delta_core.schema.types import StructType
from spark_jobs.schema import from_spark
from spark_jobs.writer.columns import conform_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
                "description": "a type by its Delta or SQL name, or a nested type in the schema's JSON form",
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
    "description": "what the rows must be; the columns become the schema of a new table",
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
            "description": "whether text of CSV and JSON is refused that its column's type would round or "
            "cut; default true",
        },
        "show_rows": {
            "type": "boolean",
            "description": "whether an error may show rows that break the contract; default true",
        },
    },
}
"""JSON Schema of a contract in a job's parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBatch:
    """A batch that was held against its contract.

    Attributes:
        frame: the rows with exactly the columns of `schema`, when the drift is allowed; else as they came.
        schema: what is written, NOT NULL as the contract says; None when neither contract nor table says.
        report: the drift; None when there was nothing to compare with.
    """

    frame: DataFrame
    schema: StructType | None = None
    report: DriftReport | None = field(default=None)

    def output(self) -> dict[str, Any]:
        """The report under its key in `JobResult.output`."""
        return {} if self.report is None else {"drift": self.report.to_json()}


def contract_of(document: Mapping[str, Any] | None) -> Contract:
    """The contract in a job's parameters; an empty one when there is none.

    Raises:
        InvalidJobSpecError: a type does not exist, or a name stands twice.
    """
    try:
        return parse_contract(document or {})
    except ConfigurationError as error:
        raise InvalidJobSpecError(error.problem, cause=error.cause, fix=error.fix) from error


def fit_to_contract(
    frame: DataFrame, contract: Contract, *, table: StructType | None, merge_schema: bool = False
) -> FittedBatch:
    """Hold a batch against its contract, and give it the contract's columns when its drift is allowed.

    Args:
        frame: the rows as the source has them.
        contract: without columns and evolution nothing is compared.
        table: the schema of the table that is written to; None when it is new or gets the batch's schema.
        merge_schema: the load may add columns to the table, whatever the contract says.

    Raises:
        SchemaError: a type of the source has no counterpart in Delta.
    """
    if contract.columns is None and (contract.evolution is None or table is None):
        return FittedBatch(frame=frame)
    found = from_spark(frame.schema)
    report = drift(contract, found, table, merge_schema=merge_schema)
    schema = contract.columns or table
    if report.allowed:
        schema = written_schema(contract, found, table)
        frame = conform_columns(frame, schema)
    return FittedBatch(frame=frame, schema=schema, report=report)


def adds_columns(contract: Contract) -> bool:
    """Whether the contract lets a load add columns to the table."""
    return contract.rules.new_columns is NewColumns.ADD


def drift_error(report: DriftReport) -> SchemaMismatchError:
    """The error of a batch whose drift is not allowed; names every difference that is not."""
    return SchemaMismatchError(
        "The batch drifted from its contract: " + "; ".join(str(change) for change in report.refused) + ".",
        cause="The contract's evolution does not allow this",
        fix="Correct the files, or change the contract's columns or its evolution (docs/contracts.md)",
    )
