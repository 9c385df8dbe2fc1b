"""Version checksums: what a writer says a version holds (PROTOCOL.md, "Version Checksum File").

Advisory: a missing or unreadable one is passed over, and a table is never refused for what one says. What
it is good for is to notice a log that somebody has changed, and to know protocol and metadata without
reading any commit.
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
    """What the file says.

    Attributes:
        path: the file.
        num_files: live files.
        table_size_bytes: their sizes, summed.
        protocol: None in files of early writers.
        metadata: None in files of early writers.
        transactions: versions by application id; None where the file does not list them.
        expiring: those of them that have a time, by which a checkpoint may leave them out.
        domains: configurations by domain; None where the file does not list them.
        num_deletion_vectors: files that have one; None where the file does not count them.
        in_commit_timestamp_ms: the commit's time, where the table's commits carry theirs.
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
        """Where the state that was replayed is another one, in words; empty when nowhere.

        An application transaction that has a time may be missing on either side: it may have expired for the
        writer of the checksum, or of the checkpoint.
        """
        files = state.files
        found = [
            f"{what}: the checksum says {said}, the log gives {is_so}"
            for what, said, is_so in (
                ("number of files", self.num_files, files.num_files),
                ("size of the table in bytes", self.table_size_bytes, files.total_bytes),
            )
            if said != is_so
        ]
        found += self.contradictions(state.protocol, state.metadata)
        if self.num_deletion_vectors == 0 and files.has_deletion_vectors:
            found.append("deletion vectors: the checksum says that there is none, the log gives some")
        return found + self._of_transactions(state) + self._of_domains(state)

    def _of_transactions(self, state: ReplayState) -> list[str]:
        if self.transactions is None:
            return []
        found = []
        for name in sorted({*self.transactions, *state.transactions}):
            said, is_so = self.transactions.get(name), state.transactions.get(name)
            if said is None and is_so is not None and is_so.last_updated_ms is not None:
                continue
            if is_so is None and name in self.expiring:
                continue
            if is_so is None or is_so.version != said:
                version = None if is_so is None else is_so.version
                found.append(f"application {name!r}: the checksum says {said}, the log gives {version}")
        return found

    def _of_domains(self, state: ReplayState) -> list[str]:
        if self.domains is None:
            return []
        is_so = {name: domain.configuration for name, domain in state.domain_metadata.items()}
        pairs = {name: (self.domains.get(name), is_so.get(name)) for name in {*self.domains, *is_so}}
        return [
            f"domain {name!r}: the checksum says {said!r}, the log gives {given!r}"
            for name, (said, given) in sorted(pairs.items())
            if said != given
        ]

    def contradictions(self, protocol: Protocol, metadata: Metadata) -> list[str]:
        """Where protocol or metadata of the log are others; of the metadata what decides about reading."""
        found = []
        if self.protocol is not None and self.protocol != protocol:
            found.append(f"protocol: the checksum says {self.protocol}, the log gives {protocol}")
        if self.metadata is not None:
            for name in ("id", "schema_string", "partition_columns", "configuration"):
                said, is_so = getattr(self.metadata, name), getattr(metadata, name)
                if said != is_so:
                    found.append(f"metadata, {name}: the checksum says {said!r}, the log gives {is_so!r}")
        return found


def read_checksum(store: LogStore, info: ObjectInfo) -> VersionChecksum | None:
    """A version's checksum; None, with a DeltaWarning, when it cannot be used. One request."""
    try:
        if info.size_bytes > MAX_CHECKSUM_BYTES:
            raise _damaged(info.path, f"it has {info.size_bytes} bytes, more than {MAX_CHECKSUM_BYTES}")
        return parse_checksum(read_immutable(store, info.path), path=info.path)
    except (CorruptLogError, StorageError) as error:
        warnings.warn(f"{error} The checksum is passed over.", DeltaWarning, stacklevel=2)
        return None


def parse_checksum(data: bytes, *, path: str) -> VersionChecksum:
    """A version's checksum from its bytes.

    Raises:
        CorruptLogError: not one JSON object, or a field that is read is missing or wrong.
    """
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _damaged(path, f"it is not JSON ({error})") from error
    if not isinstance(fields, dict):
        raise _damaged(path, "it is not a JSON object")
    protocol, metadata = (
        _action(fields, "protocol", "protocol", path),
        _action(fields, "metadata", "metaData", path),
    )
    for name in ("numProtocol", "numMetadata"):
        if _count(fields, name, path) != 1:
            raise _damaged(path, f"{name} is {fields[name]}, there is exactly one")
    transactions = _listed(fields, "setTransactions", "txn", ("appId", "version"), path)
    num_files = _count(fields, "numFiles", path)
    table_size_bytes = _count(fields, "tableSizeBytes", path)
    timed = (fields.get("setTransactions") or ()) if transactions else ()
    found = VersionChecksum(
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
    _require_agreement(fields, found, path)
    return found


def _require_agreement(fields: Mapping[str, Any], found: VersionChecksum, path: str) -> None:
    """Refuse a file that says two things of the same files, in its counts, histograms and list."""
    dvs = found.num_deletion_vectors
    if dvs is not None and dvs > found.num_files:
        raise _damaged(path, f"numDeletionVectorsOpt is {dvs}, and there are {found.num_files} files")
    _optional_count(fields, "numDeletedRecordsOpt", path)
    counts = {"fileCounts": found.num_files, "totalBytes": found.table_size_bytes}
    _require_histogram(fields, "fileSizeHistogram", counts, path)
    _require_histogram(
        fields, "deletedRecordCountsHistogramOpt", {"deletedRecordCounts": found.num_files}, path
    )
    listed = fields.get("allFiles")
    if listed is None:
        return
    files = _actions(fields, "allFiles", "add", path)
    sizes = sum(file["size"] for file in files)
    if (len(files), sizes) != (found.num_files, found.table_size_bytes):
        raise _damaged(path, f"allFiles are {len(files)} of {sizes} bytes, which the counts are not")


def _require_histogram(fields: Mapping[str, Any], name: str, sums: Mapping[str, int], path: str) -> None:
    """Refuse a histogram whose bins are no counts, or do not add up to what they divide."""
    histogram = fields.get(name)
    if histogram is None:
        return
    lengths = set()
    for key in (*sums, *(("sortedBinBoundaries",) if "fileCounts" in sums else ())):
        bins = histogram.get(key) if isinstance(histogram, dict) else None
        if not isinstance(bins, list) or any(type(one) is not int or one < 0 for one in bins):
            raise _damaged(path, f"{name}.{key} is no list of counts")
        if key in sums and sum(bins) != sums[key]:
            raise _damaged(path, f"{name}.{key} adds up to {sum(bins)}, not to {sums[key]}")
        lengths.add(len(bins))
    if len(lengths) > 1:
        raise _damaged(path, f"{name} has lists of several lengths")


def _listed(
    fields: Mapping[str, Any], name: str, kind: str, keys: tuple[str, str], path: str
) -> dict[str, Any] | None:
    """Actions as a mapping from one of their fields to another; None where the file does not list them."""
    if fields.get(name) is None:
        return None
    actions = _actions(fields, name, kind, path)
    found = {action[keys[0]]: action[keys[1]] for action in actions if not action.get("removed")}
    if len({action[keys[0]] for action in actions}) < len(actions):
        raise _damaged(path, f"{name} has one {keys[0]} twice")
    return found


def _actions(fields: Mapping[str, Any], name: str, kind: str, path: str) -> list[dict[str, Any]]:
    listed = fields[name]
    if not isinstance(listed, list) or not all(isinstance(action, dict) for action in listed):
        raise _damaged(path, f"{name} is no list of actions")
    for action in listed:
        try:
            CHECKS[kind](action)
        except InvalidAction as error:
            raise _damaged(path, f"{name}: {error}") from None
    return listed


def _optional_count(fields: Mapping[str, Any], name: str, path: str) -> int | None:
    return None if fields.get(name) is None else _count(fields, name, path)


def _optional_time_ms(fields: Mapping[str, Any], name: str, path: str) -> int | None:
    value = _optional_count(fields, name, path)
    # The next commit's time is later than this one, and has to be a time, too.
    if value is not None and value > _LAST_MS:
        raise _damaged(path, f"{name} is {value!r}, which is after the year 9999")
    return value


def _count(fields: Mapping[str, Any], name: str, path: str) -> int:
    value = fields.get(name)
    if type(value) is not int or value < 0:
        raise _damaged(path, f"{name} is {value!r}, expected a count")
    return value


def _action(fields: Mapping[str, Any], name: str, kind: str, path: str) -> dict[str, Any] | None:
    found = fields.get(name)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise _damaged(path, f"{name} is not a JSON object")
    try:
        CHECKS[kind](found)
    except InvalidAction as error:
        raise _damaged(path, f"{name}.{error}") from None
    return found


def _damaged(path: str, cause: str) -> CorruptLogError:
    return CorruptLogError(
        f"The version checksum {path!r} cannot be read.",
        cause=cause[:1000],
        fix="Delete it: the table can be read without.",
    )
