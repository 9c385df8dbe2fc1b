"""The names in `_delta_log` (PROTOCOL.md, "Delta Log Entries", "Checkpoints", "Log Compaction Files").

A pattern must match the whole name, so temporary files, copies and backup files of editors are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = f"{LOG_DIRECTORY}/_sidecars"
LAST_CHECKPOINT_PATH = f"{LOG_DIRECTORY}/_last_checkpoint"

MAX_VERSION = 2**63 - 1

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"


class LogFileKind(StrEnum):
    """The kind of a file in the log directory."""

    COMMIT = "commit"
    CLASSIC_CHECKPOINT = "classic checkpoint"
    MULTIPART_CHECKPOINT = "multi-part checkpoint"
    V2_CHECKPOINT = "V2 checkpoint"
    COMPACTED = "log compaction"
    CHECKSUM = "version checksum"


CHECKPOINT_KINDS = frozenset(
    {LogFileKind.CLASSIC_CHECKPOINT, LogFileKind.MULTIPART_CHECKPOINT, LogFileKind.V2_CHECKPOINT}
)

_PATTERNS = (
    (LogFileKind.COMMIT, re.compile(r"([0-9]{20})\.json")),
    (LogFileKind.CHECKSUM, re.compile(r"([0-9]{20})\.crc")),
    (LogFileKind.CLASSIC_CHECKPOINT, re.compile(r"([0-9]{20})\.checkpoint\.parquet")),
    (
        LogFileKind.MULTIPART_CHECKPOINT,
        re.compile(r"([0-9]{20})\.checkpoint\.(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet"),
    ),
    (LogFileKind.V2_CHECKPOINT, re.compile(rf"([0-9]{{20}})\.checkpoint\.{_UUID}\.(?:json|parquet)")),
    (LogFileKind.COMPACTED, re.compile(r"([0-9]{20})\.(?P<end>[0-9]{20})\.compacted\.json")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPath:
    """The parsed name of a log file.

    Attributes:
        name: the bare file name.
        kind: the kind of the file.
        version: the version, or the first one of a compacted range.
        part: the number of a part of a multi-part checkpoint, from 1.
        num_parts: the number of parts of that checkpoint.
        end_version: the last version of a compacted range.
    """

    name: str
    kind: LogFileKind
    version: int
    part: int | None = None
    num_parts: int | None = None
    end_version: int | None = None

    @classmethod
    def parse(cls, name: str) -> LogPath | None:
        """The parsed form of a file name or a store path; None when the name is not that of a log file."""
        bare = name.rpartition("/")[2]
        for kind, pattern in _PATTERNS:
            match = pattern.fullmatch(bare)
            if match is None:
                continue
            version = int(match.group(1))
            groups = match.groupdict()
            part, parts, end = (
                int(groups[key]) if groups.get(key) else None for key in ("part", "parts", "end")
            )
            if version > MAX_VERSION or (part is not None and parts is not None and not 1 <= part <= parts):
                return None
            if end is not None and not version <= end <= MAX_VERSION:
                return None
            return cls(name=bare, kind=kind, version=version, part=part, num_parts=parts, end_version=end)
        return None


def version_prefix(version: int) -> str:
    """The twenty digits with which every file name of a version begins."""
    return f"{version:020d}"


def commit_path(version: int) -> str:
    """The store path of a commit."""
    return f"{LOG_DIRECTORY}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """The store path of a classic single-file checkpoint."""
    return f"{LOG_DIRECTORY}/{version:020d}.checkpoint.parquet"


def v2_checkpoint_path(version: int, name: UUID, *, suffix: str) -> str:
    """The store path of a checkpoint of the V2 spec. The suffix is its file format: parquet or json."""
    return f"{LOG_DIRECTORY}/{version:020d}.checkpoint.{name}.{suffix}"


def sidecar_path(version: int, number: int, name: UUID) -> str:
    """The store path of a sidecar. Numbers start at 1; only the UUID makes the name unique."""
    return f"{SIDECAR_DIRECTORY}/{version:020d}.checkpoint.{number:010d}.{name}.parquet"


def compaction_path(first: int, last: int) -> str:
    """The store path of the log compaction file of the commits from `first` to `last`."""
    return f"{LOG_DIRECTORY}/{first:020d}.{last:020d}.compacted.json"


def checksum_path(version: int) -> str:
    """The store path of a version checksum."""
    return f"{LOG_DIRECTORY}/{version:020d}.crc"
