"""The names of operations that the packages commit, as their sources have them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.repository import ROOT

_FORWARDING = (
    *("Transaction.begin", "Transaction.create", "_begin", "commit_new_files", "commit_change"),
    *("_change", "_commit", "self.commit", "drop.commit", "backfill.commit", "RowStatement"),
    *("run.begin", "self.run.begin", "run.create"),
)
_AS_A_VALUE = "Operation"
"""Made with the operation's name, and handed to what commits."""


def committed_names() -> set[str]:
    """Every text that some module gives as the name of a commit's operation."""
    return {name for path in _sources() for name in _committed_names(path)}


def _sources() -> Iterator[Path]:
    for package in ("delta_core", "spark_jobs"):
        yield from (ROOT / package).rglob("*.py")


def _committed_names(path: Path) -> Iterator[str]:
    """The texts that a module gives as the name of a commit's operation.

    That is what `Transaction.begin`, `create` and what forwards to them take as `operation`, as a literal, a
    constant of the module, or a default.
    """
    tree = ast.parse(path.read_text())
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        given: list[ast.expr | None] = []
        if isinstance(node, ast.Call) and any(word.arg in ("operation", "name") for word in node.keywords):
            function = ast.unparse(node.func)
            if function in _FORWARDING:
                given += [keyword.value for keyword in node.keywords if keyword.arg == "operation"]
            elif function == _AS_A_VALUE:
                given += [keyword.value for keyword in node.keywords if keyword.arg == "name"]
        elif isinstance(node, ast.FunctionDef):
            defaults = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if node.name in ("create", "commit_new_files"):
                given += [default for argument, default in defaults if argument.arg == "operation"]
        for value in given:
            found = constants.get(value.id) if isinstance(value, ast.Name) else value
            if isinstance(found, ast.Constant) and isinstance(found.value, str):
                yield found.value
