"""Limits of the nesting of expressions: the parser and the evaluation recurse once for each level."""

from __future__ import annotations

import sqlglot
from sqlglot import TokenType

from delta_core.expressions.ast import Expression, Like
from delta_core.expressions.columns import children

MAX_NESTING = 64
"""The maximum number of nested parentheses, or of consecutive signs."""

MAX_LEVELS = 200
"""The maximum number of nested operators."""


def check_nesting(text: str) -> None:
    """Raise RecursionError for deep nesting, before the recursive parser reads the expression."""
    depth = prefix = 0
    opening = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
    closing = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
    prefixes = (TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS)
    for token in sqlglot.tokenize(text, read="spark"):
        if token.token_type in opening:
            depth += 1
        elif token.token_type in closing:
            depth -= 1
        prefix = prefix + 1 if token.token_type in prefixes else 0
        if depth > MAX_NESTING or prefix > MAX_NESTING:
            raise RecursionError


def levels(expression: Expression) -> int:
    """The depth of the tree, which is the recursion depth of its evaluation. Raises UnicodeEncodeError."""
    levels, row = 0, [expression]
    while row:
        levels += 1
        for one in row:
            string = one.pattern if isinstance(one, Like) else getattr(one, "value", None)
            if isinstance(string, str):
                string.encode()
        row = [child for one in row for child in children(one)]
    return levels
