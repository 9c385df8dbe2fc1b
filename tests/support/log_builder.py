"""Writes logs by hand: what a test says is in a commit is in it, right or wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from delta_core.actions import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from delta_core.actions.json_codec import action_to_json, encode_commit
from delta_core.clock import ManualClock
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000

SCHEMA_STRING = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        ],
    }
)


def protocol(**changes: Any) -> Protocol:
    """Reader 1, writer 2 unless said otherwise."""
    return Protocol(**{"min_reader_version": 1, "min_writer_version": 2} | changes)


def metadata(**changes: Any) -> Metadata:
    """Two columns, partitioned by `p`, unless said otherwise."""
    fields = {"id": "11111111-2222-3333-4444-555555555555", "schema_string": SCHEMA_STRING}
    return Metadata(**fields | {"partition_columns": ("p",), "created_time_ms": NOW_MS} | changes)


def add(path: str, **changes: Any) -> AddFile:
    """A file in partition p=1."""
    fields = {"partition_values": {"p": "1"}, "size_bytes": 10, "modification_time_ms": NOW_MS}
    return AddFile(path=path, **fields | {"stats": '{"numRecords":1}'} | changes)


def remove(path: str, **changes: Any) -> RemoveFile:
    """A file removed now."""
    return RemoveFile(path=path, **{"deletion_timestamp_ms": NOW_MS, "size_bytes": 10} | changes)


class LogBuilder:
    """A table's log, commit by commit; commit `v` has the file time NOW_MS + v seconds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = ManualClock(NOW_MS + 1_000_000)
        self.store = LocalLogStore(root, clock=self.clock)
        self.next_version = 0

    @property
    def log(self) -> Path:
        """The log directory."""
        return self.root / "_delta_log"

    def commit(self, *actions: Action, version: int | None = None, time_ms: int | None = None) -> int:
        """Write the next commit (or any); one without actions has an empty `commitInfo`."""
        number = self.next_version if version is None else version
        self.raw(f"{number:020d}.json", encode_commit(actions or [CommitInfo()]))
        at = NOW_MS + number * 1000 if time_ms is None else time_ms
        os.utime(self.log / f"{number:020d}.json", ns=(at * 10**6, at * 10**6))
        self.next_version = number + 1
        return number

    def create(self, *actions: Action, configuration: Mapping[str, str] | None = None) -> LogBuilder:
        """Write version 0 with a protocol and metadata."""
        self.commit(protocol(), metadata(configuration=configuration or {}), *actions)
        return self

    def appends(self, count: int) -> LogBuilder:
        """Commit one new file, `file-<version>`, some times."""
        for _ in range(count):
            self.commit(add(f"file-{self.next_version}"))
        return self

    def raw(self, name: str, data: bytes) -> Path:
        """Write any file into the log."""
        self.log.mkdir(parents=True, exist_ok=True)
        (self.log / name).write_bytes(data)
        return self.log / name

    def checksum(self, snapshot: Snapshot, **changes: Any) -> Path:
        """Write the checksum of a version, right but for the changes."""
        fields = {
            "tableSizeBytes": snapshot.files.total_bytes,
            "numFiles": snapshot.files.num_files,
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": action_to_json(snapshot.metadata)["metaData"],
            "protocol": action_to_json(snapshot.protocol)["protocol"],
        }
        return self.raw(f"{snapshot.version:020d}.crc", json.dumps(fields | changes).encode())

    def compact(self, first: int, last: int) -> Path:
        """Write the log compaction file of some commits, reconciled line by line."""
        kept: dict[tuple[str, ...], str] = {}
        for version in range(first, last + 1):
            for line in (self.log / f"{version:020d}.json").read_text().splitlines():
                ((kind, fields),) = json.loads(line).items()
                if kind == "commitInfo":
                    continue
                dv = fields.get("deletionVector") or {}
                identity = {
                    "txn": ("txn", fields.get("appId")),
                    "domainMetadata": ("domain", fields.get("domain")),
                    "metaData": ("metaData",),
                    "protocol": ("protocol",),
                }.get(kind, ("file", fields.get("path"), json.dumps(dv, sort_keys=True)))
                kept[identity] = line
        return self.raw(f"{first:020d}.{last:020d}.compacted.json", "\n".join(kept.values()).encode())

    def remove_commits(self, versions: Sequence[int]) -> None:
        """Delete commits, as a cleanup or an accident would."""
        for version in versions:
            (self.log / f"{version:020d}.json").unlink()
