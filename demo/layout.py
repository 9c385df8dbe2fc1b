"""Where everything of one demonstration lies, all of it under one directory."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
DEFAULT_HOME = REPOSITORY / ".demo"

OWN_MARK = ".deltaward-demo"
"""An empty file in a home that a demonstration made, and so may clear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The paths under `home`."""

    home: Path

    @property
    def airflow_home(self) -> Path:
        return self.home / "airflow"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def pids(self) -> Path:
        return self.home / "pids"

    @property
    def tables(self) -> Path:
        return self.home / "tables"

    @property
    def landing(self) -> Path:
        return self.home / "landing"

    @property
    def deliveries(self) -> Path:
        return self.home / "deliveries"

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    @property
    def sabotage(self) -> Path:
        return self.home / "sabotage"

    @property
    def driver_socket(self) -> Path | None:
        """Of the process that forks the drivers; None where the path is longer than a socket's may be."""
        path = self.home / "drivers.sock"
        return path if len(os.fsencode(path)) <= 100 else None

    @property
    def facts(self) -> Path:
        return self.home / "facts.json"

    @property
    def report(self) -> Path:
        return self.home / "report.json"

    @property
    def login(self) -> Path:
        return self.home / "login.json"

    def table(self, feed: str) -> Path:
        return self.tables / feed

    def make(self) -> None:
        """Create the directories; those that hold secrets or logs are the owner's alone."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o700)
        (self.home / OWN_MARK).touch()
        for path in (self.airflow_home, self.logs, self.pids, self.tables, self.landing, self.deliveries):
            path.mkdir(parents=True, exist_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Replace `path` with `content`, never leaving half of it; readable by the owner alone."""
    scratch = path.with_name(path.name + ".tmp")
    scratch.touch(mode=0o600)
    scratch.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    os.replace(scratch, path)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())
