"""A second reader of tables: slow, whole files at once, only the standard library, pyarrow and pyroaring.

It shares no code with delta_core, so where both accept a damaged table and say the same of it, the damage
made another table and neither misread it. It is no judge of what must be refused.
"""

from __future__ import annotations

import json
import re
import uuid
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tests.support.fuzz.z85 import z85_decode

Answer = dict[str, Any]
Line = dict[str, Any]

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")
_KINDS = ("add", "remove", "metaData", "protocol", "txn", "domainMetadata")
_ARROW = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "string": pa.string(),
    "double": pa.float64(),
    "date": pa.date32(),
}


class CannotTell(Exception):  # noqa: N818 - a signal to the judge
    """This reader has no answer."""


class State:
    """What a run of actions leaves behind."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        self.protocol: Line | None = None
        self.metadata: Line | None = None
        self.transactions: dict[str, Line] = {}
        self.domains: dict[str, Line] = {}
        self.files: dict[tuple[str, str], Line] = {}
        self.tombstones: dict[tuple[str, str], Line] = {}

    def apply(self, lines: Iterable[Line]) -> None:
        """Replay the actions of one commit or of a checkpoint, in order."""
        for line in lines:
            for kind in _KINDS:
                fields = line.get(kind)
                if fields is not None:
                    self._apply(kind, fields)

    def _apply(self, kind: str, fields: Line) -> None:
        if kind == "protocol":
            self.protocol = fields
        elif kind == "metaData":
            self.metadata = fields
        elif kind == "txn":
            self.transactions[fields["appId"]] = fields
        elif kind == "domainMetadata":
            self.domains[fields["domain"]] = fields
        else:
            key = file_key(fields)
            came, went = (self.files, self.tombstones) if kind == "add" else (self.tombstones, self.files)
            went.pop(key, None)
            came[key] = fields

    def lines(self) -> list[Line]:
        """The state as the actions of a checkpoint."""
        found: list[Line] = [{"protocol": self.protocol}, {"metaData": self.metadata}]
        found += [{"txn": fields} for fields in self.transactions.values()]
        found += [{"domainMetadata": fields} for fields in self.domains.values()]
        found += [{"remove": {**fields, "dataChange": False}} for fields in self.tombstones.values()]
        found += [{"add": {**fields, "dataChange": False}} for fields in self.files.values()]
        return found


def file_key(fields: Line) -> tuple[str, str]:
    """What tells one logical file from another."""
    return unquote(fields["path"]), deletion_vector_id(fields.get("deletionVector"))


def deletion_vector_id(dv: Line | None) -> str:
    """The unique id of a deletion vector; empty for none."""
    if dv is None:
        return ""
    offset = dv.get("offset")
    return dv["storageType"] + dv["pathOrInlineDv"] + ("" if offset is None else f"@{offset}")


def read_slowly(root: Path, *, checkpoints: bool) -> Answer:
    """What the table is at its latest version; from the newest checkpoint on, or from version 0.

    Raises:
        Exception: anything at all where the table is too damaged.
    """
    log = root / "_delta_log"
    commits = {int(p.stem): p for p in log.iterdir() if re.fullmatch(r"\d{20}\.json", p.name)}
    state, first = State(), 0
    version = max(commits, default=-1)
    if checkpoints:
        found = _complete_checkpoints(log)
        if not found:
            raise CannotTell("no checkpoint")
        newest = max(found)
        version, first = max(version, newest), newest + 1
        lines = _checkpoint_lines(found[newest], state.unknown)
        state.apply(lines)
        try:
            state.apply(_sidecar_lines(log, lines, state.unknown))
        except Exception:
            # What is in the manifest can be told without.
            state.unknown |= {"add", "remove"}
    for number in range(first, version + 1):
        state.apply(json_lines(commits[number].read_bytes()))
    return answer_of(root, state, version)


def json_lines(data: bytes) -> list[Line]:
    """The objects of newline-delimited JSON."""
    return [json.loads(line) for line in data.split(b"\n") if line.strip()]


def _complete_checkpoints(log: Path) -> dict[int, list[Path]]:
    groups: dict[tuple[int, Any], list[Path]] = {}
    for path in sorted(log.iterdir()):
        match = _CHECKPOINT.fullmatch(path.name)
        if match:
            parts = match[3]
            groups.setdefault((int(match[1]), parts or path.name), []).append(path)
    return {
        version: paths
        for (version, group), paths in groups.items()
        if not group.isdigit() or len(paths) == int(group)
    }


def _checkpoint_lines(paths: list[Path], unknown: set[str]) -> list[Line]:
    lines = []
    for path in paths:
        lines += json_lines(path.read_bytes()) if path.suffix == ".json" else _parquet_lines(path, unknown)
    return lines


def _sidecar_lines(log: Path, lines: list[Line], unknown: set[str]) -> list[Line]:
    if "sidecar" in unknown:
        raise CannotTell("the sidecars")
    names = [line["sidecar"]["path"] for line in lines if line.get("sidecar") is not None]
    return [line for name in names for line in _parquet_lines(log / "_sidecars" / name, unknown)]


def _parquet_lines(path: Path, unknown: set[str]) -> list[Line]:
    """The rows of a file; kinds of actions that cannot be read become unknown, the others can be told."""
    try:
        rows = pq.read_table(path, use_threads=False).to_pylist()
        return [{kind: _plain(value) for kind, value in row.items() if value is not None} for row in rows]
    except Exception:
        kinds = pq.read_schema(path).names
        if len(kinds) < 2:
            raise
    lines: list[Line] = []
    for kind in kinds:
        try:
            values = pq.read_table(path, columns=[kind], use_threads=False).column(kind).to_pylist()
            lines += [{kind: _plain(value)} for value in values if value is not None]
        except Exception:
            unknown.add(kind)
    return lines


def _plain(value: Any) -> Any:
    """Maps come as lists of pairs."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return dict(value)
        return [_plain(item) for item in value]
    return value


# ---------------------------------------------------------------- the answer


def answer_of(root: Path, state: State, version: int) -> Answer:
    """The state in the form that both readers answer in."""
    protocol, metadata = state.protocol, state.metadata
    if protocol is None or metadata is None:
        raise CannotTell("no protocol or no metadata")
    answer: Answer = {
        "version": version,
        "protocol": [
            protocol["minReaderVersion"],
            protocol["minWriterVersion"],
            _names(protocol.get("readerFeatures")),
            _names(protocol.get("writerFeatures")),
        ],
        "metadata": [
            metadata["id"],
            metadata.get("name"),
            metadata.get("schemaString") or "",
            list(metadata.get("partitionColumns") or ()),
            _pairs(metadata.get("configuration")),
        ],
    }
    known = set(_KINDS) - state.unknown
    if "txn" in known:
        answer["transactions"] = {key: fields["version"] for key, fields in state.transactions.items()}
    if "domainMetadata" in known:
        answer["domains"] = {
            key: fields["configuration"] for key, fields in state.domains.items() if not fields.get("removed")
        }
    if not {"add", "remove"} <= known:
        return {**answer, "unknown": [f"cannot be read: {sorted(state.unknown)}"]}
    answer["files"] = sorted((file_row(fields) for fields in state.files.values()), key=repr)
    answer["tombstones"] = tombstones_of(state.tombstones.values())
    # Data files and vectors may be beyond this reader where the log is not.
    for way, read in (("rows", rows_of), ("vectors", vectors_of)):
        try:
            answer[way] = read(root, metadata, state.files.values())
        except Exception as error:
            answer.setdefault("unknown", []).append(f"{way}: {type(error).__name__}: {error}"[:200])
    return answer


def file_row(fields: Line) -> list[Any]:
    """A live file: path, partition, size, time, tags, deletion vector."""
    dv = fields.get("deletionVector")
    return [
        fields["path"],
        _pairs(fields.get("partitionValues")),
        fields["size"],
        fields["modificationTime"],
        _pairs(fields.get("tags")),
        None if dv is None else [deletion_vector_id(dv), dv["sizeInBytes"], dv["cardinality"]],
    ]


def tombstones_of(removes: Iterable[Line]) -> list[Any]:
    """The removed files, each once."""
    found = {(*file_key(fields), fields.get("deletionTimestamp")) for fields in removes}
    return sorted((list(one) for one in found), key=repr)


def _pairs(mapping: Any) -> list[list[Any]]:
    return sorted([list(pair) for pair in dict(mapping or {}).items()], key=repr)


def _names(features: Any) -> list[str] | None:
    return None if features is None else sorted(features)


def rows_of(root: Path, metadata: Line, files: Iterable[Line]) -> pa.Array:
    """The rows of the table as sorted text."""
    fields = json.loads(metadata["schemaString"])["fields"]
    mode = dict(metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none").lower()
    partitions = set(metadata.get("partitionColumns") or ())
    found: list[pa.Array] = []
    for file in files:
        table = pq.read_table(root / unquote(file["path"]), use_threads=False, partitioning=None)
        columns: dict[str, pa.Array] = {}
        for field in fields:
            data_type = _ARROW[field["type"]]
            name = _name_in_file(table.schema, field, mode)
            if field["name"] in partitions:
                text = _value_of(dict(file.get("partitionValues") or {}), _physical(field, mode))
                value = pa.scalar(text or None, pa.string()).cast(data_type)
                columns[field["name"]] = pa.repeat(value, table.num_rows)
            elif name is None:
                columns[field["name"]] = pa.nulls(table.num_rows, data_type)
            else:
                columns[field["name"]] = table.column(name).cast(data_type)
        deleted = deleted_rows(root, file.get("deletionVector"))
        if deleted and max(deleted) >= table.num_rows:
            raise CannotTell("a vector deletes rows that there are not")
        kept = [number not in deleted for number in range(table.num_rows)]
        found.append(row_strings(pa.table(columns).filter(pa.array(kept, pa.bool_()))))
    strings = pa.concat_arrays(found) if found else pa.array([], pa.string())
    return strings.take(pc.sort_indices(strings))


def _value_of(values: Mapping[str, str | None], name: str) -> str | None:
    """By the exact name, else by the name in another case."""
    for key, text in sorted(values.items(), key=lambda pair: pair[0] != name):
        if key.casefold() == name.casefold() and (text is not None or key == name):
            return text
    return None


def row_strings(table: pa.Table) -> pa.Array:
    """Each row as text, in order, whatever the types."""
    try:
        columns = [pc.fill_null(column.cast(pa.string()), "\0") for column in table.columns]
        strings = pc.binary_join_element_wise(*columns, "|")
    except pa.ArrowException:
        strings = pa.array([repr(list(row.values())) for row in table.to_pylist()], pa.string())
    whole = strings.combine_chunks() if isinstance(strings, pa.ChunkedArray) else strings
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], pa.string())
    return whole.take(pc.sort_indices(whole))


def vectors_of(root: Path, metadata: Line, files: Iterable[Line]) -> list[list[Any]]:
    """Number and sum of the rows that each file's deletion vector names."""
    found = []
    for file in files:
        if file.get("deletionVector") is not None:
            rows = deleted_rows(root, file["deletionVector"])
            found.append([file["path"], len(rows), sum(rows)])
    return sorted(found)


def _physical(field: Mapping[str, Any], mode: str) -> str:
    return field["name"] if mode == "none" else field["metadata"]["delta.columnMapping.physicalName"]


def _name_in_file(schema: pa.Schema, field: Mapping[str, Any], mode: str) -> str | None:
    if mode == "id":
        wanted = str(field["metadata"]["delta.columnMapping.id"]).encode()
        names = [item.name for item in schema if (item.metadata or {}).get(b"PARQUET:field_id") == wanted]
    else:
        names = [name for name in schema.names if name.casefold() == _physical(field, mode).casefold()]
    return names[0] if names else None


def deleted_rows(root: Path, dv: Line | None) -> frozenset[int]:
    """The rows that a deletion vector names."""
    if dv is None:
        return frozenset()
    text = dv["pathOrInlineDv"]
    if dv["storageType"] == "i":
        data = z85_decode(text)[: dv["sizeInBytes"]]
    else:
        if dv["storageType"] == "u":
            name = f"deletion_vector_{uuid.UUID(bytes=z85_decode(text[-20:]))}.bin"
            path = root / text[:-20] / name
        else:
            path = Path(unquote(text.removeprefix("file://")))
        content = path.read_bytes()
        start = dv.get("offset") or 1
        size = int.from_bytes(content[start : start + 4], "big")
        data = content[start + 4 : start + 4 + size]
        if zlib.crc32(data) != int.from_bytes(content[start + 4 + size : start + 8 + size], "big"):
            raise CannotTell("checksum")
    if int.from_bytes(data[:4], "little") != 1681511377:
        raise CannotTell("magic number")
    found = BitMap64.deserialize(data[4:])
    if len(found) != dv["cardinality"] or len(found) > 1_000_000:
        raise CannotTell("cardinality")
    return frozenset(found)
