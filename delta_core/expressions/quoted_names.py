"""Column names in double quotes, which are strings in Spark SQL and names in other dialects.

Read as Spark SQL, a condition such as `"Status" <> 'done'` is true for every row or for none, so it is
a mistake. The deltalake package writes CHECK constraints with column names in double quotes, whatever quotes
their author used, and accepts predicates in this form.
"""

from __future__ import annotations

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import And, Column, Expression, Literal, Not, Or
from delta_core.expressions.columns import children, walk
from delta_core.schema.types import StructType


def quoted_name(condition: Expression, schema: StructType) -> str | None:
    """A string equal to a column name, in a part of the condition that refers to no column; else None."""
    pending = [condition]
    while pending:
        part = pending.pop()
        if isinstance(part, And | Or | Not):
            pending.extend(reversed(children(part)))
            continue
        nodes = list(walk(part))
        if any(isinstance(node, Column) for node in nodes):
            continue
        for node in nodes:
            string = node.value if isinstance(node, Literal) else None
            if isinstance(string, str) and schema.find(string) is not None:
                return string
    return None


def refuse_quoted_names(condition: Expression, schema: StructType) -> None:
    """Refuse a condition that compares a string in place of a column, so that it matches all rows or none.

    Raises:
        ExpressionError: the message shows how to write the column's name.
    """
    name = quoted_name(condition, schema)
    if name is not None:
        raise ExpressionError(
            f"The condition compares the string '{name}', and refers to no column.",
            cause=f"The table has a column {name}, but in Spark SQL double quotes enclose strings.",
            fix=f"Write the column's name in backticks, or without quotes: `{name}`.",
        )
