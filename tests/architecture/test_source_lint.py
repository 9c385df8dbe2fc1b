"""What shipped code never does: SQL put together from text, code made from data, a shell, a guessable name.

ruff's rules `S` are on, too; these are the ones that it does not have, or has only for literals.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.repository import ROOT, python_files

SHIPPED = ("delta_core", "spark_jobs", "plugins", "dags")
SQL_CALLS = frozenset({"sql", "expr", "selectExpr", "executeSQL"})
FILTERS = frozenset({"where", "filter"})
UNSAFE_MODULES = frozenset(
    {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "jsonpickle", "joblib", "code", "pty"}
)
UNSAFE_NAMES = frozenset({"eval", "exec", "compile", "__import__"})
UNSAFE_CALLS = frozenset(
    {
        *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "yaml.unsafe_load_all"),
        *("os.system", "os.popen", "tempfile.mktemp", "ssl._create_unverified_context"),
        *("pa.ipc.open_file", "pa.ipc.open_stream", "pa.deserialize", "pyarrow.ipc.open_file"),
        *("feather.read_table", "np.load", "numpy.load", "pd.read_pickle", "pd.eval", "pd.read_feather"),
    }
)
UNSAFE_TYPES = frozenset({"PyExtensionType", "UnknownExtensionType"})


def _is_put_together(node: ast.expr) -> bool:
    """Text made of parts: an f-string, a sum, `%`, `format` or `join`."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in node.values)
    if isinstance(node, ast.BinOp):
        strings = [node.left, node.right]
        return any(
            isinstance(text, ast.JoinedStr)
            or (isinstance(text, ast.Constant) and isinstance(text.value, str))
            for text in strings
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("format", "join", "format_map") and isinstance(
            node.func.value, ast.Constant | ast.JoinedStr
        )
    return False


def sql_put_together(tree: ast.Module) -> Iterator[int]:
    """Lines that hand an engine text made of parts, directly or by a name that was given such text."""
    made = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_put_together(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in SQL_CALLS | FILTERS:
            continue
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(
            _is_put_together(argument) or (isinstance(argument, ast.Name) and argument.id in made)
            for argument in arguments
        ):
            yield node.lineno


def unsafe_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines that make code or objects of data, run a shell, or do not check whom they speak to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] in UNSAFE_MODULES:
                    yield node.lineno, f"import {name.name}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE_MODULES:
            yield node.lineno, f"from {node.module}"
        elif isinstance(node, ast.Attribute) and node.attr in UNSAFE_TYPES:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in UNSAFE_NAMES | UNSAFE_CALLS:
                yield node.lineno, called
            for keyword in node.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if (keyword.arg, value) in {("shell", True), ("verify", False), ("allow_pickle", True)}:
                    yield node.lineno, f"{keyword.arg}={value}"


@cache
def _trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse((ROOT / path).read_text())) for path in python_files(*SHIPPED)]


def test_no_sql_is_put_together_from_text() -> None:
    hits = [
        f"{path}:{line}"
        for path, tree in _trees()
        if any(call in (ROOT / path).read_text() for call in SQL_CALLS | FILTERS)
        for line in sql_put_together(tree)
    ]
    assert hits == []


@pytest.mark.parametrize(
    "seeded",
    [
        'spark.sql(f"SELECT * FROM {name}")',
        'spark.sql("SELECT * FROM " + name)',
        'fn.expr("%s > 1" % name)',
        'frame.where("{} > 1".format(name))',
        'frame.filter(f"{name} > 1")',
        'frame.selectExpr(f"{name} AS x")',
        'text = f"DELETE FROM {name}"\nspark.sql(text)',
        'fn.expr(" AND ".join(parts))',
    ],
)
def test_the_search_for_sql_finds_it(seeded: str) -> None:
    assert list(sql_put_together(ast.parse(seeded)))


def test_the_search_for_sql_lets_what_was_parsed_pass() -> None:
    assert not list(
        sql_put_together(ast.parse('fn.expr(to_spark_sql(p))\nframe.where("n > 1")\npath.join(a)'))
    )


# What it opens it has written itself, a moment before, in a folder that only its user can enter or, on a
# cluster, under a random name in the table: who can write there can write the table's rows.
OWN_SPILLS = [
    ("delta_core/maintenance/clustering/runs.py", "pa.ipc.open_file"),
    ("delta_core/merge/source.py", "pa.ipc.open_file"),
]


def test_nothing_becomes_code_and_nobody_is_trusted_unseen() -> None:
    hits = [(str(path), what) for path, tree in _trees() for _, what in unsafe_uses(tree)]
    assert hits == OWN_SPILLS


@pytest.mark.parametrize(
    "seeded",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import marshal as m",
        "eval(text)",
        "exec(code)",
        "yaml.load(text)",
        "yaml.unsafe_load(text)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
        "httpx.get(url, verify=False)",
        "np.load(path, allow_pickle=True)",
        "pa.ipc.open_file(source)",
        "class T(pa.PyExtensionType): ...",
        "tempfile.mktemp()",
    ],
)
def test_the_search_for_unsafe_uses_finds_it(seeded: str) -> None:
    assert list(unsafe_uses(ast.parse(seeded)))


def test_ruff_looks_for_the_others() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S" in lint["select"]
    excused = {name for name in lint["ignore"] if name.startswith("S") and name[1:].isdigit()}
    assert excused == {"S101", "S311", "S603"}
