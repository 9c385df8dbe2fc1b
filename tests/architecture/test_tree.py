"""What holds for every tracked file: its size, its words, its place."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.support.repository import ROOT, python_files, string_of, tracked_files

MAX_LINES = 700
MAX_DAG_LINES = 120

# Spelled in pieces, so that this file does not contain what it looks for.
ADDRESSES = [
    "pypi" + ".org",
    "files." + "pythonhosted",
    "repo1?" + r"\.maven",
    "registry." + "npmjs",
    "proxy." + "golang",
    "deb." + "debian",
    r"--(extra-)?index" + "-url",
]
MACHINE_PATHS = [
    "/" + r"work/(main|shared|\.)",
    "/" + r"root/",
    "/" + r"farm/",
    "/" + r"home/[a-z]",
    "/" + r"Users/",
    "/" + "tmp/b/",
]
UNFINISHED = [
    "TO" + "DO",
    "FIX" + "ME",
    "XX" + "X",
    "raise NotImplemented" + "Error",
    "(?-i:place" + "holder(?!s))",  # the plural is a key of Airflow's connection form
    r"for now[,." + "]",
    "not (yet )?" + "implemented",
    "dummy " + "implementation",
    r"simplified (version|for" + " now)",
]


def _hits(patterns: list[str], paths: list[Path], *, flags: int = 0) -> list[str]:
    wanted = re.compile("|".join(patterns), flags)
    found = []
    for path in paths:
        for number, line in enumerate((string_of(path) or "").splitlines(), start=1):
            if match := wanted.search(line):
                found.append(f"{path}:{number}: {match.group(0)}")
    return found


def test_no_file_is_longer_than_700_lines() -> None:
    lengths = {path: (string_of(path) or "").count("\n") for path in python_files()}
    assert len(lengths) > 20
    assert {str(path): lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_tracked_file_names_a_registry_or_a_machine_path() -> None:
    hits = _hits(ADDRESSES + MACHINE_PATHS, list(tracked_files()))
    assert not hits, "\n".join(hits)


def test_no_tracked_file_says_that_it_is_unfinished() -> None:
    prose = {".py", ".md", ".yaml", ".yml", ".toml", ".sh"}
    paths = [path for path in tracked_files() if path.suffix in prose or path.name in ("Makefile", "run")]
    hits = _hits(UNFINISHED, paths, flags=re.IGNORECASE)
    assert not hits, "\n".join(hits)


@pytest.mark.parametrize("seeded", ["x = 1  # TO" + "DO: rest", "raise NotImplemented" + "Error"])
def test_the_search_for_unfinished_work_finds_it(seeded: str) -> None:
    assert re.search("|".join(UNFINISHED), seeded, re.IGNORECASE)


def test_only_the_clock_reads_the_time() -> None:
    readers = []
    for path in python_files("delta_core"):
        if path.name == "clock.py":
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called = (node.value.id, node.attr)
                if called in {
                    ("time", "time"),
                    ("time", "time_ns"),
                    ("time", "monotonic"),
                    ("time", "sleep"),
                    ("datetime", "now"),
                    ("datetime", "utcnow"),
                    ("date", "today"),
                }:
                    readers.append(f"{path}:{node.lineno}: {'.'.join(called)}")
    assert not readers, "\n".join(readers)


def _lines_of_code(path: Path) -> int:
    """Lines that are not blank, after the module's docstring."""
    text = string_of(path) or ""
    first = ast.parse(text).body[0]
    body = text.splitlines()[first.end_lineno if isinstance(first, ast.Expr) else 0 :]
    return sum(1 for line in body if line.strip())


def test_dag_files_are_thin() -> None:
    dags = [path for path in python_files("dags") if len(path.parts) == 2]
    assert dags, "no DAG files found"
    lengths = {str(path): _lines_of_code(path) for path in dags}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_DAG_LINES} == {}


def test_no_module_of_the_plugin_has_a_name_of_the_standard_library() -> None:
    # Airflow imports every file of a plugins folder under its bare name.
    names = {path.stem for path in python_files("plugins")} - {"__init__"}
    assert names & set(sys.stdlib_module_names) == set()


def test_the_plugins_folder_is_ignored_by_the_folder_loader() -> None:
    lines = (ROOT / "plugins" / ".airflowignore").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == ["**"]


def test_packages_have_no_logic_in_their_init_files() -> None:
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Expr, ast.If)
    bad = []
    for path in python_files("delta_core", "spark_jobs", "plugins"):
        if path.name != "__init__.py":
            continue
        for node in ast.parse((ROOT / path).read_text()).body:
            lazy = isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__")
            if not lazy and not isinstance(node, allowed):
                bad.append(f"{path}:{node.lineno}")
    assert not bad, "\n".join(bad)
