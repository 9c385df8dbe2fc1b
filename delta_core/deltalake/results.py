"""Results in the forms that the `deltalake` package returns: dictionaries with its names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from delta_core.actions.json_codec import commit_info_to_json
from delta_core.actions.metadata import Metadata as CoreMetadata
from delta_core.actions.protocol import Protocol
from delta_core.snapshot.history import HistoryEntry


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a table. `created_time` is in milliseconds since 1970."""

    id: str
    name: str | None
    description: str | None
    partition_columns: list[str] = field(hash=False)
    created_time: int | None
    configuration: dict[str, str] = field(hash=False)

    @classmethod
    def of(cls, metadata: CoreMetadata) -> Metadata:
        """The metadata of an action."""
        return cls(
            metadata.id,
            metadata.name,
            metadata.description,
            list(metadata.partition_columns),
            metadata.created_time_ms,
            dict(metadata.configuration),
        )

    def __str__(self) -> str:
        return (
            f"Metadata(id: {self.id}, name: {self.name}, description: {self.description}, "
            f"partition_columns: {self.partition_columns}, created_time: {self.created_time}, "
            f"configuration: {self.configuration})"
        )


class ProtocolVersions(NamedTuple):
    """The versions and features that a table requires; None where the version has no list of features."""

    min_reader_version: int
    min_writer_version: int
    writer_features: list[str] | None
    reader_features: list[str] | None

    @classmethod
    def of(cls, protocol: Protocol) -> ProtocolVersions:
        """The versions of an action."""
        writer, reader = protocol.writer_features, protocol.reader_features
        return cls(
            protocol.min_reader_version,
            protocol.min_writer_version,
            None if writer is None else sorted(writer),
            None if reader is None else sorted(reader),
        )


_WRITE_COUNTS = {
    "numFiles": "num_added_files",
    "numOutputRows": "num_added_rows",
    "numRemovedFiles": "num_removed_files",
}


def history_entry(entry: HistoryEntry) -> dict[str, Any]:
    """A commit as a dictionary: the fields of its `commitInfo`, and its version.

    Metrics of commits of this library are numbers. A write has those of `deltalake`, too.
    """
    info = commit_info_to_json(entry.commit_info)
    metrics = dict(info.get("operationMetrics", {}))
    is_own = str(info.get("engineInfo", "")).startswith("deltaward/")
    if is_own:
        metrics = {name: _number(value) for name, value in metrics.items()}
    if is_own and info.get("operation") == "WRITE":
        counts = {theirs: metrics[ours] for ours, theirs in _WRITE_COUNTS.items() if ours in metrics}
        metrics = {**counts, **metrics}
    return {
        **info,
        "timestamp": info.get("timestamp", entry.timestamp_ms),
        **({"operationMetrics": metrics} if metrics else {}),
        "version": entry.version,
    }


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value


def optimize_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of an OPTIMIZE. The distributions of file sizes are JSON, as in `deltalake`."""
    keeps_order = bool(metrics.get("preserveInsertionOrder", True))
    return {
        **metrics,
        **{name: json.dumps(metrics[name]) for name in ("filesAdded", "filesRemoved") if name in metrics},
        "numBatches": metrics.get("numBins", 0),
        "plannerStrategy": "preserveLocality" if keeps_order else "zOrder",
        "preservedStableOrder": keeps_order,
    }
