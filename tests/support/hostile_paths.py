"""Paths that a log could name to get at files outside its table, and a store that sees what is opened."""

from __future__ import annotations

import os
from pathlib import Path

from delta_core.storage.local import LocalLogStore

_CLIMBS = (
    "../",
    "..%2f",
    "..%2F",
    "%2e%2e/",
    "%2e%2e%2f",
    "%2E%2E/",
    ".%2e/",
    "%2e./",
    "..\\",
    "..%5c",
    "%2e%2e%5c",
    "%2e%2e\\",
    "%252e%252e/",
    "%252e%252e%252f",
    "..%252f",
    "..%255c",
    "%25252e%25252e/",
    "..%c0%af",
    "%c0%ae%c0%ae/",
    "%ef%bc%8e%ef%bc%8e/",
    "..;/",
    "....//",
    "./../",
    "a/../../",
    "p=1/../../",
    "a//../..//",
    "x/%2e%2e/%2e%2e/",
    "..%00/",
    "../%2e/",
    "%20../",
    "..%20/",
    "\u2025/",
    "..%09/",
    "._delta_log/../../",
)
_SCHEMES = (
    "",
    "/",
    "//",
    "%2f",
    "%2F%2F",
    "file:",
    "file:/",
    "file://",
    "file:///",
    "file:////",
    "FILE://",
    "File:",
    "file://localhost",
    "file://localhost/",
    "file://host",
    "file://127.0.0.1",
    "file:%2f",
    "file:%2f%2f",
    "file://%00",
    "s3://other",
    "s3a://other",
    "gs://other",
    "abfss://c@other",
    "hdfs://n:8020",
    "http://other",
    "https://other",
    "ftp://other",
    "jar:file:",
    "viewfs://",
    "data:",
    "dbfs:",
    "\\\\host\\share",
    "C:\\",
    "C:/",
    "c:",
    "\\\\?\\",
    "~",
    "~root",
    "%00",
    "\0",
)


def hostile_paths(root: Path, outside: Path) -> list[str]:
    """More than 200 spellings of a file outside a table, each once."""
    tail = f"{outside.parent.name}/{outside.name}"
    found = [
        climb * times + target for climb in _CLIMBS for times in (1, 3) for target in (tail, "etc/passwd")
    ]
    plain = str(outside)
    encoded = plain.replace("/", "%2f").replace(".", "%2e")
    for scheme in _SCHEMES:
        found += [scheme + plain, scheme + encoded, scheme + "/etc/passwd"]
    for climb in _CLIMBS:
        found += [f"file://{root}/{climb}{tail}", f"{root}/{climb}{tail}"]
    found += [
        str(root),
        f"file://{root}",
        f"file://{root}s/x",
        "",
        ".",
        "..",
        "/",
        "./",
        "x/..",
        "%2e",
        "%2e%2e",
    ]
    return list(dict.fromkeys(found))


class AuditedStore(LocalLogStore):
    """A local store that remembers every file that it was asked for, links resolved."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.touched: list[str] = []

    def _resolve(self, path: str, *, directory: bool = False) -> Path:
        found = super()._resolve(path, directory=directory)
        self.touched.append(os.path.realpath(found))
        return found

    def delete(self, path: str) -> None:
        self._resolve(path)
        super().delete(path)

    def outside(self) -> list[str]:
        """What was asked for and is not below the root."""
        root = str(self.root)
        return [path for path in self.touched if path != root and not path.startswith(root + "/")]
