"""Validation of a batch against its contract, before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delta_core.errors import SchemaMismatchError
from delta_core.policies.contract import Contract, NewColumns
from delta_core.policies.drift import DriftReport, drift, written_schema
from delta_core.schema.types import StructType
from spark_jobs.expressions.columns import conform_columns
from spark_jobs.schema import from_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBatch:
    """A batch that was compared with its contract.

    Attributes:
        frame: the rows with exactly the columns of `schema` when the drift is allowed, or else unchanged.
        schema: the schema to write, NOT NULL as in the contract; None when neither contract nor table defines
            one.
        report: the drift; None when there was nothing to compare with.
    """

    frame: DataFrame
    schema: StructType | None = None
    report: DriftReport | None = field(default=None)

    def output(self) -> dict[str, Any]:
        """The part of `JobResult.output` with the drift report."""
        return {} if self.report is None else {"drift": self.report.to_json()}


def fit_to_contract(
    frame: DataFrame, contract: Contract, *, table: StructType | None, merge_schema: bool = False
) -> FittedBatch:
    """Compare a batch with its contract, and conform it to the contract's columns when its drift is allowed.

    Args:
        frame: the rows of the source.
        contract: the contract. Without columns and evolution nothing is compared.
        table: the schema of the target table; None when the table is new or is overwritten with the batch's
            schema.
        merge_schema: the load may add columns to the table, regardless of the contract.

    Raises:
        SchemaError: Delta has no equivalent of a type of the source.
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
    """Whether the contract allows a load to add columns to the table."""
    return contract.rules.new_columns is NewColumns.ADD


def drift_error(report: DriftReport) -> SchemaMismatchError:
    """The error for a batch with drift that is not allowed. It names every such difference."""
    return SchemaMismatchError(
        "The batch does not match its contract: " + "; ".join(str(change) for change in report.refused) + ".",
        cause="The contract's evolution does not allow these differences.",
        fix="Correct the files, or change the contract's columns or its evolution (docs/contracts.md).",
    )
