"""What is in a table's directory, read without the library: as bytes, and by the `deltalake` package."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalake
import pyarrow.parquet as pq

from tests.concurrency.kill_points.operation import APPLICATION
from tests.concurrency.matrix.state import TableState

_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint\.parquet")
_V2_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(parquet|json)")
_CHECKSUM = re.compile(r"_delta_log/(\d{20})\.crc")
_HINT = "_delta_log/_last_checkpoint"
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ORPHANS = (
    re.compile(rf"(.*/)?\.tmp-{_UUID}"),
    re.compile(rf"_delta_log/\.tmp/\d{{20}}\.json\.{_UUID}"),
    re.compile(rf"(_change_data/)?([^/=]+=[a-z0-9]+/)?[^/]*{_UUID}[^/]*\.parquet"),
    re.compile(rf"deletion_vector_{_UUID}\.bin"),
    re.compile(rf"_delta_log/_sidecars/\d{{20}}\.checkpoint\.\d{{10}}\.\d{{10}}\.{_UUID}\.parquet"),
)
"""What a killed process may leave: names that no reader looks for."""

_KNOWN = (_COMMIT, _CHECKPOINT, _V2_CHECKPOINT, _CHECKSUM, *_ORPHANS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A directory's objects.

    Attributes:
        commits: each version's bytes.
        names: all of them.
    """

    commits: Mapping[int, bytes]
    names: frozenset[str]

    def actions(self, version: int) -> list[dict[str, Any]]:
        """A commit's actions."""
        return [json.loads(line) for line in self.commits[version].splitlines()]

    def operations(self, after: int) -> tuple[str, ...]:
        """What the commits after a version are called."""
        return tuple(
            self.actions(version)[0]["commitInfo"]["operation"]
            for version in sorted(self.commits)
            if version > after
        )

    def keyed(self) -> int:
        """How many commits hold the killed job's key."""
        found = 0
        for version in self.commits:
            keys = [action["txn"]["appId"] for action in self.actions(version) if "txn" in action]
            found += any(key.startswith(APPLICATION) for key in keys)
        return found


def raw(root: Path) -> Raw:
    """The objects as they are."""
    names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    commits = {int(match[1]): (root / n).read_bytes() for n in names if (match := _COMMIT.fullmatch(n))}
    return Raw(commits=commits, names=frozenset(names))


def damage(root: Path, found: Raw, before: Raw, *, deletes: bool) -> list[str]:
    """What is there that may never be there, whatever ran; empty when all is well."""
    checkpoints = {int(match[1]): n for n in found.names if (match := _CHECKPOINT.fullmatch(n))}
    wrong = [f"{name} is damaged" for name in checkpoints.values() if not _is_whole(root / name)]
    checksums = [name for name in found.names if _CHECKSUM.fullmatch(name)]
    wrong += [f"{name} is damaged" for name in checksums if not _is_json((root / name).read_bytes())]
    wrong += [f"version {v} is damaged" for v in sorted(found.commits) if not _is_commit(found.commits[v])]
    versions = sorted(found.commits)
    # Below a checkpoint nothing is needed, and a cleaning that was cut short may leave holes there.
    needed = [v for v in versions if not (deletes and checkpoints) or v >= min(checkpoints)]
    if needed and needed != list(range(needed[0], needed[0] + len(needed))):
        wrong.append(f"the versions are {versions}")
    if needed and needed[0] > 0 and needed[0] not in checkpoints:
        wrong.append(f"the log begins at {needed[0]}, without a checkpoint")
    wrong += [
        f"version {version} has changed"
        for version, data in before.commits.items()
        if found.commits.get(version, data if deletes else b"") != data
    ]
    others = {int(match[1]): name for name in found.names if (match := _V2_CHECKPOINT.fullmatch(name))}
    if _HINT in found.names and not _names_one_of({**others, **checkpoints}, (root / _HINT).read_bytes()):
        wrong.append("the hint names no checkpoint")
    if not deletes:
        wrong += [f"{name} is gone" for name in sorted(before.names - found.names)]
    for name in sorted(found.names - before.names):
        known = name == _HINT or any(
            pattern.fullmatch(name)
            for pattern in (_COMMIT, _CHECKPOINT, _V2_CHECKPOINT, _CHECKSUM, *_ORPHANS)
        )
        if not known:
            wrong.append(f"{name} is neither part of a table nor an orphan")
    return wrong


def state_by_peer(root: Path) -> TableState | None:
    """The rows and the definition as the `deltalake` package reads them; None where it finds no table."""
    if not deltalake.DeltaTable.is_deltatable(str(root)):
        return None
    table = deltalake.DeltaTable(str(root))
    rows = table.to_pyarrow_table(columns=["id", "p", "v"]).to_pylist()
    metadata, fields = table.metadata(), table.schema().fields
    return TableState(
        rows=tuple(sorted((row["id"], row["p"], row["v"]) for row in rows)),
        columns=tuple(field.name for field in fields),
        not_null=frozenset(field.name for field in fields if not field.nullable),
        properties=tuple(
            sorted(
                (key, "" if key.startswith("delta.constraints.") else value)
                for key, value in metadata.configuration.items()
            )
        ),
        description=metadata.description,
        keys=(),
    )


def _is_whole(path: Path) -> bool:
    try:
        return pq.read_table(path).num_rows > 0
    except (OSError, ValueError):
        return False


def _is_commit(data: bytes) -> bool:
    """Whether it has every line: the first is `commitInfo`, the last one ends."""
    try:
        lines = [json.loads(line) for line in data.splitlines()]
    except ValueError:
        return False
    return bool(lines) and "commitInfo" in lines[0]


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False


def _names_one_of(checkpoints: Mapping[int, str], hint: bytes) -> bool:
    try:
        return json.loads(hint)["version"] in checkpoints
    except (ValueError, KeyError):
        return False
