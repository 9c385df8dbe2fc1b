"""House rules that a linter does not know."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.repository import ROOT, python_files

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
SHIPPED = ("delta_core", "spark_jobs", "plugins")


def _parsed(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in python_files(*folders):
        yield path, ast.parse((ROOT / path).read_text())


def _documented_methods() -> set[str]:
    """Names of methods that some class of ours documents: implementing one needs no second text."""
    return {
        method.name
        for _, tree in _parsed(*SHIPPED)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, FunctionNode) and ast.get_docstring(method)
    }


def _called(node: ast.expr) -> str:
    """The dotted name of what is called, or that the node itself is."""
    named = node.func if isinstance(node, ast.Call) else node
    names, inner = [], named
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        return ".".join([inner.id, *reversed(names)])
    return ast.unparse(named)


def test_every_public_method_is_documented_where_it_is_declared() -> None:
    documented = _documented_methods()
    # Airflow and click declare these; what they mean is documented there.
    inherited = {"execute", "on_kill", "get_conn", "get_link", "poke", "serialize", "run"}
    inherited |= {"list_commands", "get_command", "invoke"}
    missing = []
    for path, tree in _parsed(*SHIPPED):
        for node in tree.body:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            for method in node.body:
                if (
                    isinstance(method, FunctionNode)
                    and not method.name.startswith("_")
                    and not ast.get_docstring(method)
                    and method.name not in documented | inherited
                ):
                    missing.append(f"{path}:{method.lineno}: {node.name}.{method.name}")
    assert not missing, "\n".join(missing)


def test_public_functions_take_keywords_after_their_leading_objects() -> None:
    """At most four positional parameters; whatever more a caller says, it says by name.

    The package `deltalake` has the parameters of the calls that it stands for. A merge has five leading
    objects: session, table, source, condition and clauses.
    """
    leading = {"spark_jobs/dml/merge.py: merge": 5}
    loose = []
    for path, tree in _parsed("delta_core", "spark_jobs"):
        if {"cli", "deltalake"} & set(path.with_suffix("").parts):
            continue
        for node in tree.body:
            if not isinstance(node, FunctionNode) or node.name.startswith("_"):
                continue
            if len(node.args.args) > leading.get(f"{path}: {node.name}", 4):
                loose.append(f"{path}:{node.lineno}: {node.name}")
    assert not loose, "\n".join(loose)


def test_public_functions_raise_typed_errors() -> None:
    """A function that says so may raise ValueError to the caller that turns it into an error of ours."""
    builtin = {"ValueError", "TypeError", "RuntimeError", "KeyError", "Exception", "OSError"}
    raised = []

    def visit(node: ast.AST, path: Path, *, public: bool) -> None:
        if isinstance(node, FunctionNode):
            announced = "ValueError" in (ast.get_docstring(node) or "")
            public = public and not node.name.startswith("_") and not announced
        if isinstance(node, ast.Raise) and public and node.exc is not None and _called(node.exc) in builtin:
            raised.append(f"{path}:{node.lineno}: {_called(node.exc)}")
        for child in ast.iter_child_nodes(node):
            visit(child, path, public=public)

    for path, tree in _parsed("delta_core", "spark_jobs"):
        visit(tree, path, public=True)
    assert not raised, "\n".join(raised)


def test_first_party_imports_stand_at_the_top_of_the_file() -> None:
    """An import inside a function hides a cycle; package edges are lazy through `__getattr__`."""
    hidden = []
    for path, tree in _parsed("delta_core"):
        if path.name == "__init__.py":
            continue
        for function in ast.walk(tree):
            if not isinstance(function, FunctionNode):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("delta_core"):
                    hidden.append(f"{path}:{node.lineno}: {node.module}")
    assert not hidden, "\n".join(hidden)


def test_every_skip_and_expected_failure_says_why() -> None:
    silent = []
    for path in python_files("tests"):
        text = (ROOT / path).read_text()
        if not any(word in text for word in ("skip", "xfail")):
            continue
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name, given = _called(node), {keyword.arg for keyword in node.keywords}
                if name.endswith("pytest.skip") and not node.args and "reason" not in given:
                    silent.append(f"{path}:{node.lineno}: {name}")
                if name.endswith(("mark.skip", "mark.skipif", "mark.xfail")) and "reason" not in given:
                    silent.append(f"{path}:{node.lineno}: {name}")
                if name.endswith("importorskip"):
                    silent.append(f"{path}:{node.lineno}: {name} (a missing package is a broken environment)")
            elif isinstance(node, ast.Attribute) and _called(node) in (
                "pytest.mark.skip",
                "pytest.mark.xfail",
            ):
                called = any(isinstance(other, ast.Call) and other.func is node for other in ast.walk(tree))
                if not called:
                    silent.append(f"{path}:{node.lineno}: {_called(node)}")
    assert not silent, "\n".join(silent)


def _asserts(function: ast.AST, *, helpers: set[str]) -> bool:
    checks = ("assert", "check", "expect", "verify", "validate", "raises", "warns")
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = _called(node).rsplit(".", 1)[-1]
            if name in helpers or any(word in name.lower() for word in checks):
                return True
    return False


def test_every_test_asserts_something() -> None:
    idle = []
    for path, tree in _parsed("tests"):
        functions = [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]
        checking = {node for node in functions if _asserts(node, helpers=set())}
        helpers = {node.name for node in checking}
        for node in functions:
            if node in checking or not node.name.startswith("test_"):
                continue
            if not _asserts(node, helpers=helpers):
                idle.append(f"{path}:{node.lineno}: {node.name}")
    assert not idle, "\n".join(idle)
