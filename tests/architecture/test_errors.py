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


def files(folders: Iterable[str]) -> Iterator[Path]:
    """The Python files of some folders."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), filename=str(file))


def made(folders: Iterable[str]) -> set[str]:
    """What is called by name: an error that nobody makes is only there to be caught."""
    calls = (
        node.func for file in files(folders) for node in ast.walk(tree_of(file)) if isinstance(node, ast.Call)
    )
    return {name for function in calls for name in names([function])}


def expected(folders: Iterable[str], wanted: Iterable[str]) -> set[str]:
    """Which of the words tests ask of an outcome: as an argument of a call, or as a string.

    `pytest.raises` and `isinstance` are such calls. Suites that compare names have errors as strings.
    """
    left, found = set(wanted), set[str]()
    for file in files(folders):
        text = file.read_text()
        if not any(word in text for word in left):
            continue
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Call):
                found.update(names([*node.args, *(keyword.value for keyword in node.keywords)]))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
        left -= found
    return found & set(wanted)


def all_errors() -> set[str]:
    return {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.DeltaError)
    }


def test_every_error_that_is_made_is_expected_by_a_test() -> None:
    raised = all_errors() & made(CODE)
    assert len(raised) > 40
    # A job's result has the error's code.
    codes = {name: getattr(errors, name).code for name in raised}
    asked = expected(["tests"], [*codes, *codes.values()])
    assert {name for name, code in codes.items() if name not in asked and code not in asked} == set()


def test_an_error_that_no_test_expects_is_found(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("raise errors.LogGapError('a')\nraise PathEscapeError('b')\n")
    (tmp_path / "tests.py").write_text("with pytest.raises(LogGapError):\n    pass\n")
    both = [str(tmp_path)]
    raised = all_errors() & made(both)
    assert raised - expected(both, raised) == {"PathEscapeError"}
