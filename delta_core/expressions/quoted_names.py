"""Names of columns in double quotes, which are texts in Spark SQL and names in other dialects.

A condition such as `"Status" <> 'done'` holds for every row or for none when it is read as Spark SQL, so
nobody writes it for Spark on purpose. The deltalake package writes CHECK constraints so, whatever quotes
their author used, and takes predicates so.
"""

from __future__ import annotations

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import And, Column, Expression, Literal, Not, Or
from delta_core.expressions.columns import children, walk
from delta_core.schema.types import StructType


def quoted_name(condition: Expression, schema: StructType) -> str | None:
    """A text that is called as a column, in a part of the condition that names no column; None without."""
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
            text = node.value if isinstance(node, Literal) else None
            if isinstance(text, str) and schema.find(text) is not None:
                return text
    return None


def refuse_quoted_names(condition: Expression, schema: StructType) -> None:
    """Refuse what would match every row or none, and was meant to look at a column.

    Raises:
        ExpressionError: says which name to write otherwise.
    """
    name = quoted_name(condition, schema)
    if name is not None:
        raise ExpressionError(
            f"The condition compares the text '{name}', and looks at no column",
            cause=f"There is a column {name}, but in Spark SQL double quotes make a text, as single ones do",
            fix=f"Write the column's name in backticks, or without quotes: `{name}`",
        )
