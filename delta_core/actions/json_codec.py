"""Actions to and from the newline-delimited JSON of a commit (PROTOCOL.md, "Delta Log Entries").

Two levels: `parse_commit` checks a commit and leaves its actions as plain dictionaries, which is what
columnar replay wants; `decode_commit` makes values of them. A commit that contradicts the protocol is
refused with the file and the line, never half-read. Actions and fields that are not known are ignored,
as the protocol asks; `commitInfo` keeps its unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from delta_core.actions import (
    Action,
    AddCdcFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from delta_core.actions.doubled_keys import doubled_key
from delta_core.actions.validation import CHECKS, Fields, InvalidAction, dv_unique_id
from delta_core.errors import CorruptLogError
from delta_core.storage.uri import canonical_log_path

MAX_LINE_BYTES = 64 * 1024 * 1024

_LINE = re.compile(rb"[^\n]+")


class RawAction(NamedTuple):
    """One checked action: its line (from 1), its JSON key and its fields."""

    line: int
    kind: str
    fields: dict[str, Any]


def iter_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The non-blank lines of a commit with their numbers from 1."""
    number, counted = 1, 0
    # One at a time: a list of all lines of a file of line ends takes eight times its bytes.
    for found in _LINE.finditer(data):
        start = found.start()
        number += data.count(b"\n", counted, start)
        counted = start
        stripped = found[0].strip()
        if stripped:
            yield number, stripped


def require_lines(data: bytes, *, path: str) -> None:
    """Refuse a commit without a line.

    Whoever commits writes at least `commitInfo`, so it is a write that a crash cut off. Going on without it
    would lose a commit that may have been acknowledged.

    Raises:
        CorruptLogError: there is nothing in it.
    """
    if not data.strip():
        raise CorruptLogError(
            f"{path!r} holds no action.",
            cause=f"It has {len(data)} bytes and no line: most likely its writer did not finish.",
            fix="Restore the log file from a backup, or restore the table to an earlier version.",
        )


def parse_line(
    line: bytes, *, number: int, path: str, checks: Mapping[str, Callable[[Fields], None]] = CHECKS
) -> RawAction | None:
    """Parse and check one line; None when it holds no action that `checks` knows.

    Raises:
        CorruptLogError: no JSON object, several actions, or a field of a wrong type.
    """
    if len(line) > MAX_LINE_BYTES:
        raise _corrupt(path, number, f"the line has {len(line)} bytes, more than {MAX_LINE_BYTES}")
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _corrupt(path, number, f"it is not JSON ({error})") from error
    if not isinstance(parsed, dict):
        raise _corrupt(path, number, "it is not a JSON object")
    found: RawAction | None = None
    has_null = False
    for kind, fields in parsed.items():
        check = checks.get(kind)
        if check is None or fields is None:
            has_null = has_null or fields is None
            continue
        if found is not None:
            raise _corrupt(path, number, f"it holds two actions, {found.kind!r} and {kind!r}")
        if not isinstance(fields, dict):
            raise _corrupt(path, number, f"{kind!r} is not a JSON object")
        try:
            check(fields)
        except InvalidAction as error:
            raise _corrupt(path, number, f"{kind}.{error}") from None
        found = RawAction(number, kind, fields)
    # A second one that is null would take an action away.
    if has_null or (found is not None and found.kind != "commitInfo"):
        _refuse_doubled_keys(line, parsed, number=number, path=path)
    return found


def _refuse_doubled_keys(line: bytes, parsed: dict[str, Any], *, number: int, path: str) -> None:
    """Readers differ in which one they take, so they would read different tables."""
    try:
        doubled = doubled_key(line, parsed)
    except RecursionError:
        raise _corrupt(path, number, "it nests too deeply to look for keys that are there twice") from None
    if doubled is not None:
        raise _corrupt(path, number, f"the key {doubled!r} is there twice in one object")


def parse_commit(
    data: bytes, *, path: str, checks: Mapping[str, Callable[[Fields], None]] = CHECKS
) -> list[RawAction]:
    """Parse and check a whole commit, or a checkpoint that is written like one.

    Args:
        data: the commit's bytes.
        path: its name, for messages.
        checks: the actions that are known; others are ignored.

    Raises:
        CorruptLogError: naming file and line; also for two `metaData`, two `protocol`, the same logical
            file (path and deletion vector) added or removed twice, or both added and removed, and for
            two `txn` of one application (PROTOCOL.md, "Action Reconciliation").
    """
    require_lines(data, path=path)
    actions: list[RawAction] = []
    seen: dict[tuple[str, ...], RawAction] = {}
    for number, line in iter_lines(data):
        action = parse_line(line, number=number, path=path, checks=checks)
        if action is None:
            continue
        key = _uniqueness_key(action)
        if key is not None:
            earlier = seen.get(key)
            if earlier is not None:
                raise _corrupt(path, number, _contradiction(earlier, action))
            seen[key] = action
        actions.append(action)
    return actions


def decode_commit(data: bytes, *, path: str) -> list[Action]:
    """The actions of a commit as values, in the order of the file.

    Raises:
        CorruptLogError: as `parse_commit`.
    """
    return [action_from_json(raw.kind, raw.fields) for raw in parse_commit(data, path=path)]


def encode_commit(actions: Sequence[Action]) -> bytes:
    """A commit's bytes: one action a line, `commitInfo` first, each line ended.

    That `commitInfo` leads lets a reader decide whose commit it is from the first kilobytes.
    """
    return b"".join(
        orjson.dumps(action_to_json(action), option=orjson.OPT_APPEND_NEWLINE)
        for action in commit_order(actions)
    )


def commit_order(actions: Sequence[Action]) -> list[Action]:
    """The actions as a commit lists them: `commitInfo` first."""
    return sorted(actions, key=lambda action: not isinstance(action, CommitInfo))


def _uniqueness_key(action: RawAction) -> tuple[str, ...] | None:
    kind, fields = action.kind, action.fields
    if kind in ("add", "remove"):
        return ("file", canonical_log_path(fields["path"]), dv_unique_id(fields.get("deletionVector")) or "")
    if kind in ("metaData", "protocol"):
        return (kind,)
    if kind == "txn":
        return (kind, fields["appId"])
    if kind == "domainMetadata":
        return (kind, fields["domain"])
    return None


def _contradiction(earlier: RawAction, later: RawAction) -> str:
    if later.kind in ("add", "remove"):
        return (
            f"the file {later.fields['path']!r} has a {later.kind!r} here and a {earlier.kind!r} "
            f"in line {earlier.line} of the same commit"
        )
    return f"a second {later.kind!r} for the same subject, after line {earlier.line}"


def _corrupt(path: str, line: int, cause: str) -> CorruptLogError:
    return CorruptLogError(
        f"Line {line} of {path!r} is not a valid action.",
        cause=cause[0].upper() + cause[1:],
        fix="Restore the log file from a backup, or restore the table to an earlier version.",
    )


# ---------------------------------------------------------------- values to JSON


def action_to_json(action: Action) -> dict[str, dict[str, Any]]:
    """One action as the JSON object of its line; fields that are None are left out."""
    match action:
        case AddFile():
            return {"add": add_to_json(action)}
        case RemoveFile():
            return {"remove": _remove_to_json(action)}
        case CommitInfo():
            return {"commitInfo": commit_info_to_json(action)}
        case Metadata():
            return {"metaData": metadata_to_json(action)}
        case Protocol():
            return {"protocol": protocol_to_json(action)}
        case SetTransaction():
            fields = {
                "appId": action.app_id,
                "version": action.version,
                "lastUpdated": action.last_updated_ms,
            }
            return {"txn": _present(fields)}
        case DomainMetadata():
            fields = {
                "domain": action.domain,
                "configuration": action.configuration,
                "removed": action.removed,
            }
            return {"domainMetadata": fields}
        case AddCdcFile():
            fields = {
                "path": action.path,
                "partitionValues": dict(action.partition_values),
                "size": action.size_bytes,
                "dataChange": action.data_change,
                "tags": _optional_dict(action.tags),
            }
            return {"cdc": _present(fields)}


def add_to_json(add: AddFile) -> dict[str, Any]:
    """The fields of an `add`."""
    return _present(
        {
            "path": add.path,
            "partitionValues": dict(add.partition_values),
            "size": add.size_bytes,
            "modificationTime": add.modification_time_ms,
            "dataChange": add.data_change,
            "stats": add.stats,
            "tags": _optional_dict(add.tags),
            "deletionVector": _deletion_vector_to_json(add.deletion_vector),
            "baseRowId": add.base_row_id,
            "defaultRowCommitVersion": add.default_row_commit_version,
            "clusteringProvider": add.clustering_provider,
        }
    )


def _remove_to_json(remove: RemoveFile) -> dict[str, Any]:
    return _present(
        {
            "path": remove.path,
            "deletionTimestamp": remove.deletion_timestamp_ms,
            "dataChange": remove.data_change,
            "extendedFileMetadata": remove.extended_file_metadata,
            "partitionValues": _optional_dict(remove.partition_values),
            "size": remove.size_bytes,
            "stats": remove.stats,
            "tags": _optional_dict(remove.tags),
            "deletionVector": _deletion_vector_to_json(remove.deletion_vector),
            "baseRowId": remove.base_row_id,
            "defaultRowCommitVersion": remove.default_row_commit_version,
        }
    )


def metadata_to_json(metadata: Metadata) -> dict[str, Any]:
    """The fields of a `metaData`."""
    return _present(
        {
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "format": {"provider": metadata.format_provider, "options": dict(metadata.format_options)},
            "schemaString": metadata.schema_string,
            "partitionColumns": list(metadata.partition_columns),
            "configuration": dict(metadata.configuration),
            "createdTime": metadata.created_time_ms,
        }
    )


def protocol_to_json(protocol: Protocol) -> dict[str, Any]:
    """The fields of a `protocol`; features sorted, so that equal protocols are equal bytes."""
    return _present(
        {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "readerFeatures": None if protocol.reader_features is None else sorted(protocol.reader_features),
            "writerFeatures": None if protocol.writer_features is None else sorted(protocol.writer_features),
        }
    )


# CommitInfo attribute by its JSON key.
_COMMIT_INFO_FIELDS = {
    "inCommitTimestamp": "in_commit_timestamp_ms",
    "timestamp": "timestamp_ms",
    "operation": "operation",
    "operationParameters": "operation_parameters",
    "operationMetrics": "operation_metrics",
    "readVersion": "read_version",
    "isolationLevel": "isolation_level",
    "isBlindAppend": "is_blind_append",
    "userName": "user_name",
    "userMetadata": "user_metadata",
    "engineInfo": "engine_info",
    "txnId": "txn_id",
}
_COMMIT_INFO_TYPES: dict[str, type] = {
    "inCommitTimestamp": int,
    "timestamp": int,
    "readVersion": int,
    "isBlindAppend": bool,
    "operationParameters": dict,
    "operationMetrics": dict,
}


def commit_info_to_json(info: CommitInfo) -> dict[str, Any]:
    """The fields of a `commitInfo`; empty mappings are left out, `extra` comes last and overrides nothing."""
    fields = {key: getattr(info, attribute) for key, attribute in _COMMIT_INFO_FIELDS.items()}
    for key in ("operationParameters", "operationMetrics"):
        fields[key] = dict(fields[key]) or None
    present = _present(fields)
    return present | {key: value for key, value in info.extra.items() if key not in present}


def _deletion_vector_to_json(dv: DeletionVectorDescriptor | None) -> dict[str, Any] | None:
    if dv is None:
        return None
    return _present(
        {
            "storageType": dv.storage_type,
            "pathOrInlineDv": dv.path_or_inline_dv,
            "offset": dv.offset,
            "sizeInBytes": dv.size_in_bytes,
            "cardinality": dv.cardinality,
        }
    )


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _optional_dict(mapping: Mapping[str, str | None] | None) -> dict[str, str | None] | None:
    return None if mapping is None else dict(mapping)


# ---------------------------------------------------------------- JSON to values


def action_from_json(kind: str, fields: Mapping[str, Any]) -> Action:
    """The value of a checked action, by its JSON key."""
    match kind:
        case "add":
            return add_from_json(fields)
        case "remove":
            return _remove_from_json(fields)
        case "metaData":
            return metadata_from_json(fields)
        case "protocol":
            return protocol_from_json(fields)
        case "txn":
            return SetTransaction(
                app_id=fields["appId"], version=fields["version"], last_updated_ms=fields.get("lastUpdated")
            )
        case "domainMetadata":
            return DomainMetadata(
                domain=fields["domain"],
                configuration=fields["configuration"],
                removed=bool(fields["removed"]),
            )
        case "cdc":
            return AddCdcFile(
                path=fields["path"],
                partition_values=fields.get("partitionValues") or {},
                size_bytes=fields["size"],
                data_change=bool(fields.get("dataChange")),
                tags=fields.get("tags"),
            )
        case _:
            return commit_info_from_json(fields)


def add_from_json(fields: Mapping[str, Any]) -> AddFile:
    """An `AddFile` from checked JSON fields."""
    data_change = fields.get("dataChange")
    return AddFile(
        path=fields["path"],
        partition_values=fields.get("partitionValues") or {},
        size_bytes=fields["size"],
        modification_time_ms=fields["modificationTime"],
        data_change=True if data_change is None else data_change,
        stats=fields.get("stats"),
        tags=fields.get("tags"),
        deletion_vector=_deletion_vector_from_json(fields.get("deletionVector")),
        base_row_id=fields.get("baseRowId"),
        default_row_commit_version=fields.get("defaultRowCommitVersion"),
        clustering_provider=fields.get("clusteringProvider"),
    )


def _remove_from_json(fields: Mapping[str, Any]) -> RemoveFile:
    data_change = fields.get("dataChange")
    return RemoveFile(
        path=fields["path"],
        deletion_timestamp_ms=fields.get("deletionTimestamp"),
        data_change=True if data_change is None else data_change,
        extended_file_metadata=fields.get("extendedFileMetadata"),
        partition_values=fields.get("partitionValues"),
        size_bytes=fields.get("size"),
        stats=fields.get("stats"),
        tags=fields.get("tags"),
        deletion_vector=_deletion_vector_from_json(fields.get("deletionVector")),
        base_row_id=fields.get("baseRowId"),
        default_row_commit_version=fields.get("defaultRowCommitVersion"),
    )


def metadata_from_json(fields: Mapping[str, Any]) -> Metadata:
    """A `Metadata` from checked JSON fields."""
    table_format = fields.get("format") or {}
    return Metadata(
        id=fields["id"],
        schema_string=fields.get("schemaString") or "",
        partition_columns=tuple(fields.get("partitionColumns") or ()),
        configuration=fields.get("configuration") or {},
        name=fields.get("name"),
        description=fields.get("description"),
        format_provider=table_format.get("provider") or "parquet",
        format_options=table_format.get("options") or {},
        created_time_ms=fields.get("createdTime"),
    )


def protocol_from_json(fields: Mapping[str, Any]) -> Protocol:
    """A `Protocol` from checked JSON fields."""
    readers, writers = fields.get("readerFeatures"), fields.get("writerFeatures")
    return Protocol(
        min_reader_version=fields["minReaderVersion"],
        min_writer_version=fields["minWriterVersion"],
        reader_features=None if readers is None else frozenset(readers),
        writer_features=None if writers is None else frozenset(writers),
    )


def commit_info_from_json(fields: Mapping[str, Any]) -> CommitInfo:
    """A `CommitInfo`; a field that is unknown or of an unexpected type is kept in `extra`.

    Provenance is free text by other writers, so nothing in it makes a table unreadable.
    """
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in fields.items():
        attribute = _COMMIT_INFO_FIELDS.get(key)
        if attribute is None or (value is not None and type(value) is not _COMMIT_INFO_TYPES.get(key, str)):
            extra[key] = value
        elif value is not None:
            known[attribute] = value
    return CommitInfo(**known, extra=extra)


def _deletion_vector_from_json(fields: Mapping[str, Any] | None) -> DeletionVectorDescriptor | None:
    if fields is None:
        return None
    return DeletionVectorDescriptor(
        storage_type=fields["storageType"],
        path_or_inline_dv=fields["pathOrInlineDv"],
        offset=fields.get("offset"),
        size_in_bytes=fields["sizeInBytes"],
        cardinality=fields["cardinality"],
    )
