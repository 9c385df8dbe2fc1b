"""From an expectation to the rule that judges it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from delta_core.errors import DeltaError, QualitySuiteError
from delta_core.schema.arrow import to_arrow
from delta_core.schema.types import StructType
from spark_jobs.quality.arguments import Arguments
from spark_jobs.quality.batch_expectations import BATCH_EXPECTATIONS, library_rule
from spark_jobs.quality.params import ExpectationSpec
from spark_jobs.quality.row_expectations import ROW_EXPECTATIONS
from spark_jobs.quality.rules import RowRule, Rows, Rule, SettledRule, needed_columns
from spark_jobs.quality.suite_values import MisfitError
from spark_jobs.quality.type_names import is_called, is_type_name

TYPE_EXPECTATIONS: Final = frozenset(
    {
        "expect_column_type_to_be",
        "expect_column_values_to_be_of_type",
        "expect_column_values_to_be_in_type_list",
    }
)
"""Answered from the schema that the staged files have."""

_NO_ORDER = (
    "It asks for an order of the rows, and the rows of a batch have none: they lie in files as many tasks "
    "wrote them"
)
_REFUSED: Final = {
    "expect_column_values_to_be_increasing": (_NO_ORDER, "Compare two columns of a row instead"),
    "expect_column_values_to_be_decreasing": (_NO_ORDER, "Compare two columns of a row instead"),
}


def compile_rule(spec: ExpectationSpec, made: Any, schema: StructType) -> Rule:
    """The rule of an expectation.

    Args:
        spec: its columns in the table's spelling.
        made: the library's object.
        schema: the rows'.

    Raises:
        QualitySuiteError: it has no meaning that does not depend on how the rows lie.
        MisfitError: it does not fit the columns that it is about.
    """
    if spec.type in _REFUSED:
        cause, fix = _REFUSED[spec.type]
        raise QualitySuiteError(f"The expectation {spec.name} cannot be judged.", cause=cause, fix=fix)
    if spec.type in TYPE_EXPECTATIONS:
        return _of_type(spec, schema)
    arguments = Arguments(spec=spec, made=made, schema=schema)
    compiler = ROW_EXPECTATIONS.get(spec.type) or BATCH_EXPECTATIONS.get(spec.type) or library_rule
    rule = compiler(arguments)
    _try_out(rule, schema)
    return rule


def type_names(spec: ExpectationSpec) -> list[str]:
    """The types that a type expectation names.

    Raises:
        QualitySuiteError: no column can have one of them.
    """
    kwargs = spec.kwargs
    names = list(kwargs.get("type_list") or ()) if "type_list" in kwargs else [str(kwargs.get("type_"))]
    unknown = [name for name in names if not is_type_name(name)]
    if unknown:
        raise QualitySuiteError(
            f"The expectation {spec.name} names a type {unknown[0]!r} that no column can have.",
            fix="Use the table's names, such as long, double, string, date or decimal(10,2)",
        )
    return names


def _of_type(spec: ExpectationSpec, schema: StructType) -> SettledRule:
    field = schema.find(spec.columns[0])
    assert field is not None  # the suite's columns are checked before
    names = type_names(spec)
    success = any(is_called(field.data_type, name) for name in names)
    return SettledRule(success=success, observed=str(field.data_type))


def _try_out(rule: Rule, schema: StructType) -> None:
    """Ask no rows at all: types that do not go together show themselves now, and not after the load."""
    if not isinstance(rule, RowRule):
        return
    names = needed_columns([rule])
    fields = StructType(tuple(field for field in schema if field.name in names))
    nothing = pa.RecordBatch.from_pylist([], schema=to_arrow(fields))
    try:
        asked, _ = rule.judge(Rows(nothing))
    except (DeltaError, pa.ArrowException) as error:
        raise MisfitError(f"it does not apply to its columns: {error}") from error
    assert asked.dtype == np.bool_
