"""Version checksums: the contents of a version as its writer states them.

See PROTOCOL.md, "Version Checksum File". Checksums are advisory: a missing or unreadable checksum is ignored,
and a mismatch never makes a table unreadable. They serve to detect a changed log, and to read protocol and
metadata without reading a commit.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from delta_core.actions import Metadata, Protocol
from delta_core.actions.json_codec import metadata_from_json, protocol_from_json
from delta_core.actions.validation import CHECKS, InvalidAction
from delta_core.errors import CorruptLogError, DeltaWarning, StorageError
from delta_core.storage.log_store import LogStore, ObjectInfo, read_immutable

if TYPE_CHECKING:
    from delta_core.replay.state import ReplayState

MAX_CHECKSUM_BYTES = 64 << 20
_LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChecksum:
    """The contents of a checksum file.

    Attributes:
        path: the file.
        num_files: number of live files.
        table_size_bytes: total size of the live files.
        protocol: None in files of early writers.
        metadata: None in files of early writers.
        transactions: versions by application id; None if the file does not list them.
        expiring: application ids whose transaction has a time, so that a checkpoint may omit it.
        domains: configurations by domain; None if the file does not list them.
        num_deletion_vectors: number of live files with a deletion vector; None if the file does not state it.
        in_commit_timestamp_ms: the in-commit timestamp, if the table has them.
    """

    path: str
    num_files: int
    table_size_bytes: int
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: Mapping[str, int] | None = None
    expiring: frozenset[str] = frozenset()
    domains: Mapping[str, str] | None = None
    num_deletion_vectors: int | None = None
    in_commit_timestamp_ms: int | None = None

    def discrepancies(self, state: ReplayState) -> list[str]:
        """The differences between the checksum and the replayed state, as phrases; empty without any.

        An application transaction that has a time may be missing on either side, since it may have expired
        for the writer of the checksum or of the checkpoint.
        """
        files = state.files
        differences = [
            f"{what}: the checksum has {stated}, the log has {actual}"
            for what, stated, actual in (
                ("number of files", self.num_files, files.num_files),
                ("size of the table in bytes", self.table_size_bytes, files.total_bytes),
            )
            if stated != actual
        ]
        differences += self.contradictions(state.protocol, state.metadata)
        if self.num_deletion_vectors == 0 and files.has_deletion_vectors:
            differences.append("deletion vectors: the checksum counts 0, the log has some")
        return differences + self._of_transactions(state) + self._of_domains(state)

    def _of_transactions(self, state: ReplayState) -> list[str]:
        if self.transactions is None:
            return []
        differences = []
        for name in sorted({*self.transactions, *state.transactions}):
            stated, actual = self.transactions.get(name), state.transactions.get(name)
            if stated is None and actual is not None and actual.last_updated_ms is not None:
                continue
            if actual is None and name in self.expiring:
                continue
            if actual is None or actual.version != stated:
                version = None if actual is None else actual.version
                differences.append(f"application {name!r}: the checksum has {stated}, the log has {version}")
        return differences

    def _of_domains(self, state: ReplayState) -> list[str]:
        if self.domains is None:
            return []
        configurations = {name: domain.configuration for name, domain in state.domain_metadata.items()}
        pairs = {
            name: (self.domains.get(name), configurations.get(name))
            for name in {*self.domains, *configurations}
        }
        return [
            f"domain {name!r}: the checksum has {stated!r}, the log has {actual!r}"
            for name, (stated, actual) in sorted(pairs.items())
            if stated != actual
        ]

    def contradictions(self, protocol: Protocol, metadata: Metadata) -> list[str]:
        """The differences in the protocol, and in the metadata fields that matter for reading."""
        differences = []
        if self.protocol is not None and self.protocol != protocol:
            differences.append(f"protocol: the checksum has {self.protocol}, the log has {protocol}")
        if self.metadata is not None:
            for name in ("id", "schema_string", "partition_columns", "configuration"):
                stated, actual = getattr(self.metadata, name), getattr(metadata, name)
                if stated != actual:
                    differences.append(
                        f"metadata, {name}: the checksum has {stated!r}, the log has {actual!r}"
                    )
        return differences


def read_checksum(store: LogStore, info: ObjectInfo) -> VersionChecksum | None:
    """A version's checksum; None, with a DeltaWarning, when it cannot be used. One request."""
    try:
        if info.size_bytes > MAX_CHECKSUM_BYTES:
            raise _damaged(info.path, f"It has {info.size_bytes} bytes, more than {MAX_CHECKSUM_BYTES}.")
        return parse_checksum(read_immutable(store, info.path), path=info.path)
    except (CorruptLogError, StorageError) as error:
        warnings.warn(f"{error} The checksum is ignored.", DeltaWarning, stacklevel=2)
        return None


def parse_checksum(data: bytes, *, path: str) -> VersionChecksum:
    """A version's checksum from its bytes.

    Raises:
        CorruptLogError: not one JSON object, or a field that this library reads is missing or invalid.
    """
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _damaged(path, f"It is not JSON ({error}).") from error
    if not isinstance(fields, dict):
        raise _damaged(path, "It is not a JSON object.")
    protocol, metadata = (
        _action(fields, "protocol", "protocol", path),
        _action(fields, "metadata", "metaData", path),
    )
    for name in ("numProtocol", "numMetadata"):
        if _count(fields, name, path) != 1:
            raise _damaged(path, f"The field {name} is {fields[name]}, expected 1.")
    transactions = _listed(fields, "setTransactions", "txn", ("appId", "version"), path)
    num_files = _count(fields, "numFiles", path)
    table_size_bytes = _count(fields, "tableSizeBytes", path)
    timed = (fields.get("setTransactions") or ()) if transactions else ()
    checksum = VersionChecksum(
        path=path,
        num_files=num_files,
        table_size_bytes=table_size_bytes,
        protocol=None if protocol is None else protocol_from_json(protocol),
        metadata=None if metadata is None else metadata_from_json(metadata),
        transactions=transactions,
        expiring=frozenset(txn["appId"] for txn in timed if txn.get("lastUpdated") is not None),
        domains=_listed(fields, "domainMetadata", "domainMetadata", ("domain", "configuration"), path),
        num_deletion_vectors=_optional_count(fields, "numDeletionVectorsOpt", path),
        in_commit_timestamp_ms=_optional_time_ms(fields, "inCommitTimestampOpt", path),
    )
    _require_consistent(fields, checksum, path)
    return checksum


def _require_consistent(fields: Mapping[str, Any], checksum: VersionChecksum, path: str) -> None:
    """Refuse a checksum whose counts, histograms and list of files contradict each other."""
    dvs = checksum.num_deletion_vectors
    if dvs is not None and dvs > checksum.num_files:
        raise _damaged(
            path, f"The field numDeletionVectorsOpt is {dvs}, and there are {checksum.num_files} files."
        )
    _optional_count(fields, "numDeletedRecordsOpt", path)
    counts = {"fileCounts": checksum.num_files, "totalBytes": checksum.table_size_bytes}
    _require_histogram(fields, "fileSizeHistogram", counts, path)
    _require_histogram(
        fields, "deletedRecordCountsHistogramOpt", {"deletedRecordCounts": checksum.num_files}, path
    )
    listed = fields.get("allFiles")
    if listed is None:
        return
    files = _actions(fields, "allFiles", "add", path)
    sizes = sum(file["size"] for file in files)
    if (len(files), sizes) != (checksum.num_files, checksum.table_size_bytes):
        raise _damaged(
            path,
            f"The field allFiles lists {len(files)} files of {sizes} bytes, the counts are "
            f"{checksum.num_files} files of {checksum.table_size_bytes} bytes.",
        )


def _require_histogram(fields: Mapping[str, Any], name: str, sums: Mapping[str, int], path: str) -> None:
    """Refuse a histogram whose bins are not counts, or do not add up to the total."""
    histogram = fields.get(name)
    if histogram is None:
        return
    lengths = set()
    for key in (*sums, *(("sortedBinBoundaries",) if "fileCounts" in sums else ())):
        bins = histogram.get(key) if isinstance(histogram, dict) else None
        if not isinstance(bins, list) or any(type(one) is not int or one < 0 for one in bins):
            raise _damaged(path, f"The field {name}.{key} is not a list of counts.")
        if key in sums and sum(bins) != sums[key]:
            raise _damaged(path, f"The field {name}.{key} adds up to {sum(bins)}, expected {sums[key]}.")
        lengths.add(len(bins))
    if len(lengths) > 1:
        raise _damaged(path, f"The lists of the field {name} have different lengths.")


def _listed(
    fields: Mapping[str, Any], name: str, kind: str, keys: tuple[str, str], path: str
) -> dict[str, Any] | None:
    """Actions as a mapping from one of their fields to another; None if the file does not list them."""
    if fields.get(name) is None:
        return None
    actions = _actions(fields, name, kind, path)
    values = {action[keys[0]]: action[keys[1]] for action in actions if not action.get("removed")}
    if len({action[keys[0]] for action in actions}) < len(actions):
        raise _damaged(path, f"The field {name} has the same {keys[0]} twice.")
    return values


def _actions(fields: Mapping[str, Any], name: str, kind: str, path: str) -> list[dict[str, Any]]:
    listed = fields[name]
    if not isinstance(listed, list) or not all(isinstance(action, dict) for action in listed):
        raise _damaged(path, f"The field {name} is not a list of actions.")
    for action in listed:
        try:
            CHECKS[kind](action)
        except InvalidAction as error:
            raise _damaged(path, f"An action in the field {name} is invalid: {error}.") from None
    return listed


def _optional_count(fields: Mapping[str, Any], name: str, path: str) -> int | None:
    return None if fields.get(name) is None else _count(fields, name, path)


def _optional_time_ms(fields: Mapping[str, Any], name: str, path: str) -> int | None:
    value = _optional_count(fields, name, path)
    # The next commit's time must be later than this time, and must be valid, too.
    if value is not None and value > _LAST_MS:
        raise _damaged(path, f"The field {name} is {value!r}, which is after the year 9999.")
    return value


def _count(fields: Mapping[str, Any], name: str, path: str) -> int:
    value = fields.get(name)
    if type(value) is not int or value < 0:
        raise _damaged(path, f"The field {name} is {value!r}, expected a count.")
    return value


def _action(fields: Mapping[str, Any], name: str, kind: str, path: str) -> dict[str, Any] | None:
    action = fields.get(name)
    if action is None:
        return None
    if not isinstance(action, dict):
        raise _damaged(path, f"The field {name} is not a JSON object.")
    try:
        CHECKS[kind](action)
    except InvalidAction as error:
        raise _damaged(path, f"The field {name}.{error}.") from None
    return action


def _damaged(path: str, cause: str) -> CorruptLogError:
    return CorruptLogError(
        f"The version checksum {path!r} cannot be read.",
        cause=cause[:1000],
        fix="Delete the checksum file. The table can be read without it.",
    )
