"""The function for each kind of statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.sql_statements import statements as kinds
from spark_jobs.sql_statements.execution import copying, definition, queries, shown, upkeep, writing
from spark_jobs.sql_statements.execution.roots import require_plain_expressions
from spark_jobs.sql_statements.execution.surroundings import Surroundings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EXECUTORS: Final[Mapping[type[kinds.Statement], Callable[[Any, Surroundings], Any]]] = {
    kinds.SelectStatement: queries.select,
    kinds.CreateView: queries.create_view,
    kinds.SparkStatement: queries.run_on_spark,
    kinds.CreateTable: definition.create,
    kinds.CloneTable: definition.clone,
    kinds.DropTable: definition.drop,
    kinds.AlterTable: definition.alter,
    kinds.Insert: writing.insert,
    kinds.Delete: writing.delete_rows,
    kinds.Update: writing.update_rows,
    kinds.Merge: writing.merge_rows,
    kinds.CopyInto: copying.copy_into,
    kinds.DescribeHistory: shown.history,
    kinds.DescribeDetail: shown.detail,
    kinds.DescribeTable: shown.describe,
    kinds.ShowTable: shown.show,
    kinds.Optimize: upkeep.optimize,
    kinds.Vacuum: upkeep.vacuum,
    kinds.Restore: upkeep.restore,
    kinds.Reorganize: upkeep.reorganize,
    kinds.ConvertToDelta: upkeep.convert,
    kinds.Generate: upkeep.generate,
    kinds.Repair: upkeep.repair,
}


def execute(statement: kinds.Statement, around: Surroundings) -> DataFrame:
    """Run a parsed statement and return its result.

    Raises:
        PathEscapeError: an expression may read a table that is not allowed.
        DeltaError: see the function of the statement.
    """
    require_plain_expressions(statement, around)
    executor = next(_EXECUTORS[kind] for kind in type(statement).__mro__ if kind in _EXECUTORS)
    frame: DataFrame = executor(statement, around)
    return frame
