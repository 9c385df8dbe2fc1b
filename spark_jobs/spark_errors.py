"""Typed errors that are also Spark's errors, with delta-spark's error conditions.

Code that catches `AnalysisException` or `ParseException`, `TypeError` or `ValueError`, as it does with
delta-spark, catches these.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException, UnsupportedOperationException

from delta_core.errors import (
    ConfigurationError,
    DeltaError,
    ExpressionError,
    FeatureRemovalError,
    SchemaError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableFeatureError,
)


class ArgumentTypeError(ConfigurationError, TypeError):
    """An argument has a type that the call does not take."""


class ArgumentValueError(ConfigurationError, ValueError):
    """An argument has a value or a type that the call does not take."""


class SparkConditionError(DeltaError):
    """A typed error with Spark's error condition; its message begins with the condition.

    Attributes:
        condition: the name of the condition, as `getCondition()` returns it.
    """

    condition = ""

    def __init__(self, problem: str, *, cause: str = "", fix: str = "") -> None:
        super().__init__(problem, cause=cause, fix=fix)
        # What PySparkException's methods read; DeltaError's constructor has set the message only.
        self._message = super().__str__()
        self._errorClass = self.condition
        self._messageParameters: dict[str, str] = {}
        self._contexts: list[object] = []

    def __str__(self) -> str:
        return f"[{self.condition}] {super().__str__()}"


class NamedTableExistsError(SparkConditionError, TableExistsError, AnalysisException):
    """A table or a view has the name already."""

    condition = "TABLE_OR_VIEW_ALREADY_EXISTS"


class NamedTableNotFoundError(SparkConditionError, TableNotFoundError, AnalysisException):
    """No table has the name."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"


class NotADeltaTableError(SparkConditionError, TableNotFoundError, AnalysisException):
    """The name belongs to a view, or to a table of another format."""

    condition = "DELTA_MISSING_DELTA_TABLE"


class ColumnTypeError(SparkConditionError, SchemaError, ParseException):
    """A column's type cannot be parsed."""

    condition = "PARSE_SYNTAX_ERROR"


class IdentityTypeError(SparkConditionError, SchemaError, UnsupportedOperationException):
    """An identity column has a type other than `bigint`."""

    condition = "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"


class PartitionPredicateError(SparkConditionError, ExpressionError, AnalysisException):
    """A predicate of OPTIMIZE names a column that the table is not partitioned by."""

    condition = "DELTA_NON_PARTITION_COLUMN_REFERENCE"


class PartitionZOrderError(SparkConditionError, ConfigurationError, AnalysisException):
    """A Z-order names a partition column."""

    condition = "DELTA_ZORDERING_ON_PARTITION_COLUMN"


class TimestampError(SparkConditionError, ConfigurationError, AnalysisException):
    """A string is not a timestamp."""

    condition = "DELTA_TIMESTAMP_INVALID"


class UnknownFeatureError(SparkConditionError, UnsupportedTableFeatureError, AnalysisException):
    """A feature that is to be added is not known."""

    condition = "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"


class UnknownFeatureDropError(SparkConditionError, FeatureRemovalError, AnalysisException):
    """A feature that is to be dropped is not known."""

    condition = "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"


class FeatureNotPresentError(SparkConditionError, FeatureRemovalError, AnalysisException):
    """A feature that is to be dropped is not in the table's protocol."""

    condition = "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"


class NonremovableFeatureError(SparkConditionError, FeatureRemovalError, AnalysisException):
    """A feature cannot be dropped."""

    condition = "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"


class HistoryTruncationError(SparkConditionError, FeatureRemovalError, AnalysisException):
    """A feature leaves no history to truncate."""

    condition = "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
