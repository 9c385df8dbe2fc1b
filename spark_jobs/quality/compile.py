"""Compilation of an expectation to the rule that evaluates it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from delta_core.errors import DeltaError, QualitySuiteError
from delta_core.jobs.params.quality import ExpectationSpec
from delta_core.schema.arrow import to_arrow
from delta_core.schema.types import StructType
from spark_jobs.quality.arguments import Arguments
from spark_jobs.quality.batch_expectations import BATCH_EXPECTATIONS, library_rule
from spark_jobs.quality.row_expectations import ROW_EXPECTATIONS
from spark_jobs.quality.rules import ConstantRule, RowRule, Rows, Rule, needed_columns
from spark_jobs.quality.suite_values import InapplicableError
from spark_jobs.quality.type_names import is_name_of, is_type_name

TYPE_EXPECTATIONS: Final = frozenset(
    {
        "expect_column_type_to_be",
        "expect_column_values_to_be_of_type",
        "expect_column_values_to_be_in_type_list",
    }
)
"""Expectations that are evaluated from the schema of the staged files."""

_NO_ORDER = (
    "The expectation needs an order of the rows, and the rows of a batch have no order: many tasks write "
    "them "
    "to files."
)
_REFUSED: Final = {
    "expect_column_values_to_be_increasing": (_NO_ORDER, "Compare two columns of a row instead."),
    "expect_column_values_to_be_decreasing": (_NO_ORDER, "Compare two columns of a row instead."),
}


def require_no_order(spec: ExpectationSpec) -> None:
    """Refuse an expectation that depends on the order of the rows.

    Raises:
        QualitySuiteError: the expectation depends on the order of the rows.
    """
    if spec.type in _REFUSED:
        cause, fix = _REFUSED[spec.type]
        raise QualitySuiteError(f"The expectation {spec.name} cannot be evaluated.", cause=cause, fix=fix)


def compile_rule(spec: ExpectationSpec, options: Mapping[str, Any], schema: StructType) -> Rule:
    """Compile an expectation to the rule that evaluates it.

    Args:
        spec: the expectation, with the table's column names.
        options: its keyword arguments with their defaults.
        schema: the rows' schema.

    Raises:
        QualitySuiteError: a type expectation names an unknown type.
        InapplicableError: the expectation does not apply to its columns.
    """
    if spec.type in TYPE_EXPECTATIONS:
        return _of_type(spec, schema)
    arguments = Arguments(spec=spec, options=options, schema=schema)
    compiler = ROW_EXPECTATIONS.get(spec.type) or BATCH_EXPECTATIONS.get(spec.type) or library_rule
    rule = compiler(arguments)
    _try_out(rule, schema)
    return rule


def type_names(spec: ExpectationSpec) -> list[str]:
    """The types that a type expectation names.

    Raises:
        QualitySuiteError: a name is not a type of a column.
    """
    kwargs = spec.kwargs
    names = list(kwargs.get("type_list") or ()) if "type_list" in kwargs else [str(kwargs.get("type_"))]
    unknown = [name for name in names if not is_type_name(name)]
    if unknown:
        raise QualitySuiteError(
            f"The expectation {spec.name} names an unknown type {unknown[0]!r}.",
            fix="Use Delta's type names, such as long, double, string, date or decimal(10,2).",
        )
    return names


def _of_type(spec: ExpectationSpec, schema: StructType) -> ConstantRule:
    field = schema.find(spec.columns[0])
    assert field is not None  # the suite's columns are checked before
    names = type_names(spec)
    success = any(is_name_of(field.data_type, name) for name in names)
    return ConstantRule(success=success, observed=str(field.data_type))


def _try_out(rule: Rule, schema: StructType) -> None:
    """Evaluate the rule on an empty batch, so that incompatible types fail now and not after the write."""
    if not isinstance(rule, RowRule):
        return
    names = needed_columns([rule])
    fields = StructType(tuple(field for field in schema if field.name in names))
    empty = pa.RecordBatch.from_pylist([], schema=to_arrow(fields))
    try:
        selection, _ = rule.evaluate(Rows(empty))
    except (DeltaError, pa.ArrowException) as error:
        raise InapplicableError(
            f"The expectation does not apply to its columns: {str(error).rstrip('.')}."
        ) from error
    assert selection.dtype == np.bool_
