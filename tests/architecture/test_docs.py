"""Every code block of the documents runs, in order, in one directory per document."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.repository import ROOT, CodeBlock, code_blocks, tracked_files

# The README's DAG and its commands are a process each.
DOCUMENTS = [pytest.param("README.md", marks=pytest.mark.slow), "CONTRIBUTING.md", "docs/architecture.md"]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MAKE_TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


class Reader:
    """Follows a document the way its reader does: block by block, in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.program = ""
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
            "AIRFLOW_HOME": str(directory / "airflow"),
            "COLUMNS": "120",
        }

    def follow(self, block: CodeBlock) -> None:
        if block.language == "python":
            self._python(block)
        elif block.language == "sh":
            for line in block.body.splitlines():
                self._command(shlex.split(line))
        else:
            pytest.fail(f"line {block.line}: no way to run a block of language {block.language!r}")

    def _python(self, block: CodeBlock) -> None:
        """Later blocks see the names of earlier ones; what those did is not done again."""
        if "airflow" in block.tags:
            check = "import airflow.sdk\nassert DAGS, 'no DAG was made'"
            program = f"{block.body}\nDAGS = [keep_flights_healthy()]\n{check}\n"
            self._run([sys.executable, "-c", program])
            return
        imports = "\n".join(re.findall(r"^(?:import|from) .*$", self.program, re.MULTILINE))
        self._run([sys.executable, "-c", f"{imports}\n{block.body}"])
        self.program += block.body

    def _command(self, words: list[str]) -> None:
        match words:
            case ["make", target, *_]:
                assert target in MAKE_TARGETS, target
            case ["pip", "install", what, "--constraint", "constraints.txt"]:
                extras = re.fullmatch(r"\.(?:\[([a-z,]+)\])?", what)
                assert extras is not None, what
                assert set((extras[1] or "dev").split(",")) <= set(EXTRAS), what
            case ["export", setting]:
                name, _, value = setting.partition("=")
                self.environment[name] = value
            case ["deltaward", *arguments]:
                start = "import sys; from delta_core.cli.app import main; sys.exit(main())"
                self._run([sys.executable, "-c", start, *arguments])
            case _:
                pytest.fail(f"no way to run {shlex.join(words)}")

    def _run(self, command: list[str]) -> None:
        answer = subprocess.run(
            command, cwd=self.directory, capture_output=True, text=True, check=False, env=self.environment
        )
        assert answer.returncode == 0, f"{command}\n{answer.stdout}\n{answer.stderr}"


@pytest.mark.spark
@pytest.mark.airflow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_code_block_runs(document: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for block in code_blocks(document):
        if block.language != "text":
            reader.follow(block)
    assert code_blocks("README.md"), "the README shows no code"


def test_every_relative_link_leads_somewhere() -> None:
    broken = []
    for path in tracked_files():
        if path.suffix != ".md":
            continue
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / path).read_text()):
            if "://" not in target and not (ROOT / path.parent / target).exists():
                broken.append(f"{path}: {target}")
    assert not broken, "\n".join(broken)


def test_the_documents_import_what_packages_export() -> None:
    """Modules of packages are internal, as docs/architecture.md states."""
    internal = re.compile(r"^from delta_core(?:\.\w+){2,} import .*", re.MULTILINE)
    pages = [path for path in tracked_files() if path.suffix == ".md" and "adr" not in path.parts]
    found = [f"{path}: {line}" for path in pages for line in internal.findall((ROOT / path).read_text())]
    assert not found, "\n".join(found)


def test_every_folder_named_in_the_architecture_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(
        re.findall(r"`((?:delta_core|spark_jobs|plugins|dags|demo|tests|docker|benchmarks)/[\w/.]*)`", text)
    )
    assert len(named) > 10
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_module_named_in_the_architecture_is_there() -> None:
    """The page names a module by its path, or by the end of it."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([\w/.-]+\.py)`", text))
    assert len(named) > 10
    modules = [f"/{path.as_posix()}" for path in tracked_files() if path.suffix == ".py"]
    missing = {name for name in named if not any(module.endswith(f"/{name}") for module in modules)}
    assert missing == set()


def test_every_decision_record_is_listed_and_dated() -> None:
    records = {path.name for path in tracked_files() if path.match("docs/adr/*.md")} - {"README.md"}
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", (ROOT / "docs" / "adr" / "README.md").read_text()))
    assert records == listed
    assert all(re.fullmatch(r"\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.md", name) for name in records)
