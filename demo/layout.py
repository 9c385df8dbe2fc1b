"""The paths of a demonstration. All of them are in one directory."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

REPOSITORY = Path(__file__).resolve().parent.parent
DEFAULT_HOME = REPOSITORY / ".demo"

STORES = ("local", "s3")
"""Where the tables can be: in a directory, or in a bucket of an S3 server that the demonstration starts."""

BUCKET = "deltaward-demo"

OWN_MARK = ".deltaward-demo"
"""An empty file that marks a directory that a demonstration has created and may clear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The paths under `home`.

    Attributes:
        store: one of `STORES`.
    """

    home: Path
    store: str = "local"

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
    def buckets(self) -> Path:
        """The directory of the S3 server. Each bucket is a directory in it, and each object a file."""
        return self.home / "buckets"

    @property
    def tables(self) -> Path:
        """The directory that contains the tables, also on S3: the server keeps an object as a plain file."""
        return self.buckets / BUCKET / "tables" if self.store == "s3" else self.home / "tables"

    @property
    def tables_uri(self) -> str:
        """The tables as jobs open them."""
        return f"s3://{BUCKET}/tables" if self.store == "s3" else str(self.tables)

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
    def facts(self) -> Path:
        return self.home / "facts.json"

    @property
    def report(self) -> Path:
        return self.home / "report.json"

    @property
    def login(self) -> Path:
        return self.home / "login.json"

    @property
    def keys(self) -> Path:
        return self.home / "keys.json"

    def table(self, feed: str) -> Path:
        return self.tables / feed

    def table_uri(self, feed: str) -> str:
        return f"{self.tables_uri}/{feed}"

    def path_of(self, uri: str) -> Path:
        """The file on this machine that a job named by its URI. Of an S3 object, the server's file."""
        parts = urlsplit(uri)
        path = unquote(parts.path)
        return self.buckets / parts.netloc / path.lstrip("/") if parts.scheme == "s3" else Path(path)

    def make(self) -> None:
        """Create the directories. Only the owner can access them, because they contain secrets and logs."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o700)
        (self.home / OWN_MARK).touch()
        for path in (self.airflow_home, self.logs, self.pids, self.tables, self.landing, self.deliveries):
            path.mkdir(parents=True, exist_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write `content` to `path` atomically, readable only by the owner."""
    scratch = path.with_name(path.name + ".tmp")
    scratch.touch(mode=0o600)
    scratch.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    os.replace(scratch, path)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())
