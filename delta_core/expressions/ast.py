"""The one predicate tree.

SQL is parsed into these nodes (`parse`) and resolved against a schema (`typing`). The nodes are then
evaluated on Arrow data (`evaluate`), turned into a test of file statistics (`skipping`), or written as Spark
SQL (`render`). Nodes are immutable values. Conditions have three-valued logic.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from delta_core.schema.types import DataType

LiteralValue = object
"""None, bool, int, float, str, bytes, decimal.Decimal, datetime.date or datetime.datetime."""


class ComparisonOperator(StrEnum):
    """Binary comparisons; EQ_NULL_SAFE is SQL's `<=>`."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ_NULL_SAFE = "<=>"


class ArithmeticOperator(StrEnum):
    """Binary arithmetic."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a nested field: `("a", "b")` is `a.b`."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `data_type` has the value None until `typing.resolve` gives it one."""

    value: LiteralValue
    data_type: DataType | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left operator right` on numbers."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of two or more terms."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of two or more terms."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Negation; NULL stays NULL."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand IS NULL`; never NULL itself."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (values)`, where the values are literals."""

    operand: Expression
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Like:
    r"""`operand LIKE pattern`; `%` matches any characters, `_` one character, and `\` escapes."""

    operand: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(operand AS data_type)`."""

    operand: Expression
    data_type: DataType


@dataclass(frozen=True, slots=True)
class Call:
    """A function from the allow-list of `typing`, by lower-case name."""

    name: str
    arguments: tuple[Expression, ...]


Expression = Column | Literal | Comparison | Arithmetic | And | Or | Not | IsNull | In | Like | Cast | Call

TRUE = Literal(True)
FALSE = Literal(False)
