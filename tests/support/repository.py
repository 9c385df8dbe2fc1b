"""The repository seen as files: what is tracked, and what the documents contain."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_FOLDERS = ("delta_core", "spark_jobs", "plugins", "dags", "demo", "benchmarks", "tests")

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def import_path(*folders: str) -> str:
    """PYTHONPATH of a program of this repository: what this process was given comes last.

    Args:
        folders: more folders of the repository, besides its root.
    """
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join(
        [str(ROOT), *(str(ROOT / folder) for folder in folders), *([given] if given else [])]
    )


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file that git tracks or would track, relative to the root; without git, every file."""
    answer = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if answer.returncode == 0:
        names = [Path(name) for name in answer.stdout.decode().split("\0") if name]
    else:
        names = [
            path.relative_to(ROOT)
            for path in ROOT.rglob("*")
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
        ]
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


def python_files(*folders: str) -> list[Path]:
    """Tracked Python files below the folders (all source folders when none is named)."""
    wanted = folders or SOURCE_FOLDERS
    return [path for path in tracked_files() if path.suffix == ".py" and path.parts[0] in wanted]


def string_of(path: Path) -> str | None:
    """A tracked file's text; None when it is not text."""
    data = (ROOT / path).read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBlock:
    """A fenced block: its language, the words after it, its text and where it stands."""

    language: str
    tags: tuple[str, ...]
    body: str
    line: int


def code_blocks(document: str) -> list[CodeBlock]:
    """The fenced blocks of a document, in order."""
    text = (ROOT / document).read_text()
    blocks = []
    for match in _FENCE.finditer(text):
        words = match["info"].split() or [""]
        blocks.append(
            CodeBlock(
                language=words[0],
                tags=tuple(words[1:]),
                body=match["body"],
                line=text.count("\n", 0, match.start()) + 1,
            )
        )
    return blocks
