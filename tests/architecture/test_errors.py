"""Every typed error that the code can raise is raised by a test, by its own name or code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from delta_core import errors
from tests.support.repository import ROOT

CODE = ("delta_core", "spark_jobs", "plugins", "dags")


def names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The last part of each name below some nodes: `errors.LogGapError` and `LogGapError` are one."""
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                yield part.id
            elif isinstance(part, ast.Attribute):
                yield part.attr


def all_nodes(folders: Iterable[str]) -> Iterator[ast.AST]:
    """Every node of the Python files of some folders."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield from ast.walk(ast.parse(file.read_text(), filename=str(file)))


def made(folders: Iterable[str]) -> set[str]:
    """What is called by name: an error that nobody makes is only there to be caught."""
    return {name for node in all_nodes(folders) if isinstance(node, ast.Call) for name in names([node.func])}


def expected(folders: Iterable[str]) -> set[str]:
    """What tests ask of an outcome: as an argument (of `pytest.raises`, of `isinstance`), or as a word.

    Suites that compare names have errors as words.
    """
    found: set[str] = set()
    for node in all_nodes(folders):
        if isinstance(node, ast.Call):
            found.update(names([*node.args, *(keyword.value for keyword in node.keywords)]))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def all_errors() -> set[str]:
    return {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.DeltaError)
    }


def test_every_error_that_is_made_is_expected_by_a_test() -> None:
    raised = all_errors() & made(CODE)
    assert len(raised) > 40
    asked = expected(["tests"])
    # A job's result has the error's code.
    assert {name for name in raised - asked if getattr(errors, name).code not in asked} == set()


def test_an_error_that_no_test_expects_is_found(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("raise errors.LogGapError('a')\nraise PathEscapeError('b')\n")
    (tmp_path / "tests.py").write_text("with pytest.raises(LogGapError):\n    pass\n")
    both = [str(tmp_path)]
    assert all_errors() & made(both) - expected(both) == {"PathEscapeError"}
