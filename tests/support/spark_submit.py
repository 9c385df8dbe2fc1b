"""A `spark-submit` that starts no Spark: it keeps what it was given and reports success."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = f"""#!{sys.executable} -S
import json, os, sys

def value(name):
    return sys.argv[sys.argv.index(name) + 1]

kept = {{"arguments": sys.argv[1:], "environment": dict(os.environ)}}
if "--keytab" in sys.argv:
    path = value("--keytab")
    kept["keytab"] = [oct(os.stat(path).st_mode & 0o777), open(path).read()]
with open(os.environ["KEPT_SUBMISSION"], "w") as file:
    json.dump(kept, file)
with open(value("--spec")) as file:
    spec = json.load(file)
result = {{"format_version": 1, "job_id": spec["job_id"], "kind": spec["kind"], "status": "succeeded"}}
with open(value("--result"), "w") as file:
    json.dump(result, file)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a spark-submit was given."""

    arguments: list[str]
    environment: dict[str, str]
    keytab: list[str] | None = None

    def options(self) -> dict[str, str]:
        """The options and their values, without `--conf`."""
        pairs = self._pairs()
        return {name: value for name, value in pairs if name != "--conf"}

    def conf(self) -> dict[str, str]:
        """The settings of all `--conf`."""
        return dict(value.split("=", 1) for name, value in self._pairs() if name == "--conf")

    def _pairs(self) -> list[tuple[str, str]]:
        end = next(number for number, word in enumerate(self.arguments) if word.endswith("main.py"))
        return list(zip(self.arguments[:end:2], self.arguments[1:end:2], strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSubmission:
    """Where the program keeps what it was given."""

    path: Path

    def read(self) -> Submission:
        kept: dict[str, Any] = json.loads(self.path.read_text())
        return Submission(**kept)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, *, name: str = "spark-submit") -> KeptSubmission:
    """Put the program on PATH, before any other."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    kept = folder / "kept.json"
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))
    monkeypatch.setenv("KEPT_SUBMISSION", str(kept))
    return KeptSubmission(path=kept)
