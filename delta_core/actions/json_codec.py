"""Encoding and decoding of actions as the newline-delimited JSON of a commit.

See PROTOCOL.md, "Delta Log Entries". There are two levels. `parse_commit` checks a commit and returns its
actions as plain dictionaries, for columnar replay. `decode_commit` returns action objects. A commit that
violates the protocol raises an error that names the file and the line; it is never read in part. Unknown
actions and fields are ignored, as the protocol requires. `commitInfo` keeps its unknown fields. A line in
which an object has a key twice is refused, because readers differ in the value that they use.
"""

from __future__ import annotations

import json
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
    """The non-blank lines of a commit with their line numbers, which start at 1."""
    number, counted = 1, 0
    # One at a time: for a file of only line ends, a list of all lines takes eight times the file's size.
    for match in _LINE.finditer(data):
        start = match.start()
        number += data.count(b"\n", counted, start)
        counted = start
        stripped = match[0].strip()
        if stripped:
            yield number, stripped


def require_lines(data: bytes, *, path: str) -> None:
    """Refuse a commit file without any line.

    Every writer writes at least `commitInfo`, so an empty file is a write that a crash interrupted. Skipping
    the file would lose a commit that may have been acknowledged.

    Raises:
        CorruptLogError: the file is empty or blank.
    """
    if not data.strip():
        raise CorruptLogError(
            f"{path!r} holds no action.",
            cause=f"It has {len(data)} bytes and no line. Most likely its writer did not finish.",
            fix="Restore the log file from a backup, or restore the table to an earlier version.",
        )


def parse_line(
    line: bytes, *, number: int, path: str, checks: Mapping[str, Callable[[Fields], None]] = CHECKS
) -> RawAction | None:
    """Parse and check one line; None when it holds no action that is a key of `checks`.

    Raises:
        CorruptLogError: not a JSON object, several actions, a duplicate key, or a field of a wrong type.
    """
    if len(line) > MAX_LINE_BYTES:
        raise _corrupt(path, number, f"The line has {len(line)} bytes, and the limit is {MAX_LINE_BYTES}.")
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _corrupt(path, number, f"The line is not JSON ({error}).") from error
    if not isinstance(parsed, dict):
        raise _corrupt(path, number, "The line is not a JSON object.")
    action: RawAction | None = None
    has_null = False
    for kind, fields in parsed.items():
        check = checks.get(kind)
        if check is None or fields is None:
            has_null = has_null or fields is None
            continue
        if action is not None:
            raise _corrupt(path, number, f"The line holds two actions, {action.kind!r} and {kind!r}.")
        if not isinstance(fields, dict):
            raise _corrupt(path, number, f"The action {kind!r} is not a JSON object.")
        try:
            check(fields)
        except InvalidAction as error:
            raise _corrupt(path, number, f"The field {kind}.{error}.") from None
        action = RawAction(number, kind, fields)
    # A duplicate key with the value null would hide an action.
    if has_null or (action is not None and action.kind != "commitInfo"):
        _refuse_duplicate_keys(line, parsed, number=number, path=path)
    return action


def _refuse_duplicate_keys(line: bytes, parsed: dict[str, Any], *, number: int, path: str) -> None:
    """Refuse duplicate keys: readers take different values, so they would read different tables."""
    try:
        duplicate = duplicate_key(line, parsed)
    except RecursionError:
        raise _corrupt(path, number, "The line nests too deeply to check it for duplicate keys.") from None
    if duplicate is not None:
        raise _corrupt(path, number, f"The key {duplicate!r} occurs twice in one object.")


def parse_commit(
    data: bytes, *, path: str, checks: Mapping[str, Callable[[Fields], None]] = CHECKS
) -> list[RawAction]:
    """Parse and check a whole commit, or a checkpoint in the same JSON form.

    Args:
        data: the commit's bytes.
        path: the name of the file, for messages.
        checks: the known actions; others are ignored.

    Raises:
        CorruptLogError: a line is invalid, or actions contradict each other: two `metaData`, two `protocol`,
            the same logical file (path and deletion vector) added or removed twice or both added and removed,
            two `txn` of one application, or two `domainMetadata` of one domain (PROTOCOL.md, "Action
            Reconciliation"). The error names the file and the line.
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
    """The actions of a commit as action objects, in the order of the file.

    Raises:
        CorruptLogError: as `parse_commit`.
    """
    return [action_from_json(raw.kind, raw.fields) for raw in parse_commit(data, path=path)]


def encode_commit(actions: Sequence[Action]) -> bytes:
    """A commit's bytes: one action a line, `commitInfo` first, each line with a line end.

    With `commitInfo` first, a reader can identify the writer of a commit from the first kilobytes.
    """
    return b"".join(
        orjson.dumps(action_to_json(action), option=orjson.OPT_APPEND_NEWLINE)
        for action in commit_order(actions)
    )


def commit_order(actions: Sequence[Action]) -> list[Action]:
    """The actions in the order of a commit: `commitInfo` first."""
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
            f"The file {later.fields['path']!r} has a {later.kind!r} here and a {earlier.kind!r} "
            f"in line {earlier.line} of the same commit."
        )
    return f"It is a second {later.kind!r} for the same subject, after line {earlier.line}."


def _corrupt(path: str, line: int, cause: str) -> CorruptLogError:
    return CorruptLogError(
        f"Line {line} of {path!r} is not a valid action.",
        cause=cause,
        fix="Restore the log file from a backup, or restore the table to an earlier version.",
    )


# ---------------------------------------------------------------- action objects to JSON


def action_to_json(action: Action) -> dict[str, dict[str, Any]]:
    """One action as the JSON object of its line, without absent fields."""
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
    """The fields of a `protocol`, with sorted features, so that equal protocols give equal bytes."""
    return _present(
        {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "readerFeatures": None if protocol.reader_features is None else sorted(protocol.reader_features),
            "writerFeatures": None if protocol.writer_features is None else sorted(protocol.writer_features),
        }
    )


# Attributes of CommitInfo by JSON key.
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
    """The fields of a `commitInfo`, without empty mappings. `extra` comes last and overrides no field."""
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


# ---------------------------------------------------------------- JSON to action objects


def action_from_json(kind: str, fields: Mapping[str, Any]) -> Action:
    """The action object for the checked fields of an action; `kind` is its JSON key."""
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
    """A `CommitInfo`; `extra` keeps the fields that are unknown or have an unexpected type.

    Other writers may put anything into `commitInfo`, so no content of it makes a table unreadable.
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


# A string before a colon is a key. Within a string, a quotation mark has a backslash before it.
_KEY_END = re.compile(rb'(?<!\\)"[ \t\r\n]*:')


class _Duplicate(Exception):  # noqa: N818 - a signal inside this module
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def duplicate_key(text: bytes, parsed: dict[str, Any]) -> str | None:
    """A key that occurs twice in one object of valid JSON; None when all keys are distinct.

    JSON does not define the meaning of a key that occurs twice: some readers take the first value, some
    take the last, some fail. The parser takes the last value silently, so the JSON text is compared with the
    parsed value. Most commits contain no white space: then encoding the parsed value gives the same bytes.
    Otherwise the number of keys in the JSON text is compared with the number of parsed keys. Only if they
    differ, a slow parser reads the JSON text again.

    Args:
        text: the JSON text.
        parsed: the value that the JSON text was parsed to.

    Raises:
        RecursionError: a duplicate key is likely, and the JSON nests too deeply to find it.
    """
    if _encodes_to(text, parsed):
        return None
    # The pattern counts everything correctly except keys that end with a backslash.
    if b'\\\\"' not in text and len(_KEY_END.findall(text)) == _count(parsed):
        return None
    try:
        json.loads(text, object_pairs_hook=_distinct)
    except _Duplicate as duplicate:
        return duplicate.key
    except ValueError:
        # The fast parser has accepted the JSON text, so this parser is only stricter.
        return None
    return None


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


def _encodes_to(text: bytes, parsed: dict[str, Any]) -> bool:
    try:
        return orjson.dumps(parsed) == text
    except orjson.JSONEncodeError:
        # orjson parses deeper nesting than it encodes.
        return False


def _count(parsed: dict[str, Any]) -> int:
    """The number of keys at all depths."""
    count = 0
    pending: list[Any] = [parsed]
    while pending:
        value = pending.pop()
        if type(value) is dict:
            count += len(value)
            pending.extend(item for item in value.values() if type(item) is dict or type(item) is list)
        else:
            pending.extend(item for item in value if type(item) is dict or type(item) is list)
    return count


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _Duplicate(key)
        seen.add(key)
