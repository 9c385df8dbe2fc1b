"""Typed errors that are also Spark's errors, with delta-spark's error conditions.

Code that catches `AnalysisException` or `ParseException`, `TypeError` or `ValueError`, as it does with
delta-spark, catches these.
"""

from __future__ import annotations

from pyspark.errors import (
    AnalysisException,
    ParseException,
    PySparkException,
    UnsupportedOperationException,
)

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


class SparkConditionError(PySparkException, DeltaError):
    """A typed error with Spark's error condition; its message begins with the condition.

    Attributes:
        condition: the name of the condition, as `getCondition()` returns it.
        sql_state: its SQLSTATE, as `getSqlState()` returns it.
    """

    condition = ""
    sql_state = ""

    def __init__(self, problem: str, *, cause: str = "", fix: str = "") -> None:
        DeltaError.__init__(self, problem, cause=cause, fix=fix)
        # PySparkException's methods read these; DeltaError's constructor passed the message to it.
        self._message = DeltaError.__str__(self)
        self._errorClass = self.condition
        self._messageParameters = {}
        self._contexts = []

    def getSqlState(self) -> str | None:  # noqa: N802 - Spark's name
        """The SQLSTATE of the condition."""
        return self.sql_state or None

    def getMessage(self) -> str:  # noqa: N802
        """The message with its condition."""
        return str(self)

    def __str__(self) -> str:
        return f"[{self.condition}] {DeltaError.__str__(self)}"


class NamedTableExistsError(SparkConditionError, AnalysisException, TableExistsError):
    """A table or a view has the name already."""

    condition = "TABLE_OR_VIEW_ALREADY_EXISTS"
    sql_state = "42P07"


class NamedTableNotFoundError(SparkConditionError, AnalysisException, TableNotFoundError):
    """No table has the name."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"
    sql_state = "42P01"


class NotADeltaTableError(SparkConditionError, AnalysisException, TableNotFoundError):
    """The name belongs to a view, or to a table of another format."""

    condition = "DELTA_MISSING_DELTA_TABLE"
    sql_state = "42P01"


class ColumnTypeError(SparkConditionError, ParseException, SchemaError):
    """A column's type cannot be parsed."""

    condition = "PARSE_SYNTAX_ERROR"
    sql_state = "42601"


class IdentityTypeError(SparkConditionError, UnsupportedOperationException, SchemaError):
    """An identity column has a type other than `bigint`."""

    condition = "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"
    sql_state = "428H2"


class PartitionPredicateError(SparkConditionError, AnalysisException, ExpressionError):
    """A predicate of OPTIMIZE names a column that the table is not partitioned by."""

    condition = "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    sql_state = "42P10"


class PartitionZOrderError(SparkConditionError, AnalysisException, ConfigurationError):
    """A Z-order names a partition column."""

    condition = "DELTA_ZORDERING_ON_PARTITION_COLUMN"
    sql_state = "42P10"


class TimestampError(SparkConditionError, AnalysisException, ConfigurationError):
    """A string is not a timestamp."""

    condition = "DELTA_TIMESTAMP_INVALID"
    sql_state = "42816"


class UnknownFeatureError(SparkConditionError, AnalysisException, UnsupportedTableFeatureError):
    """A feature that is to be added is not known."""

    condition = "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"
    sql_state = "56038"


class UnknownFeatureDropError(SparkConditionError, AnalysisException, FeatureRemovalError):
    """A feature that is to be dropped is not known."""

    condition = "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"
    sql_state = "0AKDC"


class FeatureNotPresentError(SparkConditionError, AnalysisException, FeatureRemovalError):
    """A feature that is to be dropped is not in the table's protocol."""

    condition = "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
    sql_state = "55000"


class PathNotATableError(SparkConditionError, AnalysisException, TableNotFoundError):
    """There is no table at a path."""

    condition = "DELTA_MISSING_DELTA_TABLE"
    sql_state = "42P01"


class NonRemovableFeatureError(SparkConditionError, AnalysisException, FeatureRemovalError):
    """A feature that no table can lose."""

    condition = "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"
    sql_state = "0AKDC"


class HistoryTruncationError(SparkConditionError, AnalysisException, FeatureRemovalError):
    """A feature leaves no history to truncate."""

    condition = "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
    sql_state = "42000"
