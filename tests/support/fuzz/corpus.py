"""Small tables of every kind of log file; the same bytes each time they are made."""

from __future__ import annotations

import json
import os
import uuid
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tests.support.fuzz.checkpoints import write_json_manifest, write_parquet, write_parquet_manifest
from tests.support.fuzz.slow_reader import Line, State
from tests.support.fuzz.z85 import z85_encode

START_MS = 1_700_000_000_000
MAGIC = (1681511377).to_bytes(4, "little")
_UUID = "80a083e8-7026-4e79-81be-64bd76c43a1"

FIELDS = (("p", "string"), ("q", "integer"), ("id", "long"), ("name", "string"), ("day", "date"))


class TableMaker:
    """One table, commit by commit."""

    def __init__(self, root: Path, *, mapping: str = "none", features: Iterable[str] = ()) -> None:
        self.root = root
        self.log = root / "_delta_log"
        self.log.mkdir(parents=True)
        self.state = State()
        self.version = -1
        self._mapping = mapping
        self._rows = 0
        self._features = sorted(features)

    def create(self, **configuration: str) -> TableMaker:
        """Version 0."""
        if self._mapping != "none":
            configuration["delta.columnMapping.mode"] = self._mapping
        schema = {"type": "struct", "fields": [self._field(at) for at in range(len(FIELDS))]}
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        if self._features:
            readers = [name for name in self._features if name not in ("domainMetadata", "changeDataFeed")]
            protocol = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": readers,
                "writerFeatures": self._features,
            }
        metadata = {
            "id": "11111111-2222-3333-4444-555555555555",
            "name": "fuzzed",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema, separators=(",", ":")),
            "partitionColumns": ["p", "q"],
            "configuration": configuration,
            "createdTime": START_MS,
        }
        self.commit("CREATE TABLE", {"protocol": protocol}, {"metaData": metadata})
        return self

    def commit(self, operation: str, *actions: Line) -> None:
        """The next version; provenance comes first."""
        self.version += 1
        info = {
            "timestamp": START_MS + self.version * 1000,
            "operation": operation,
            "operationParameters": {"mode": "Append", "partitionBy": '["p","q"]'},
            "isolationLevel": "Serializable",
            "isBlindAppend": operation == "WRITE",
            "operationMetrics": {"numFiles": "1", "numOutputRows": "4"},
            "engineInfo": "corpus/1",
            "txnId": f"{_UUID}{self.version:x}",
        }
        lines = [{"commitInfo": info}, *actions]
        data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
        (self.log / f"{self.version:020d}.json").write_bytes(data)
        self.state.apply(lines)

    def file(self, p: str | None, q: int | None, rows: int = 6, **changes: Any) -> Line:
        """Write a data file; gives its `add`."""
        ids = list(range(self._rows, self._rows + rows))
        self._rows += rows
        names = [self._physical(at) for at in range(len(FIELDS))]
        columns = {
            names[2]: pa.array(ids, pa.int64()),
            names[3]: pa.array([f"n{one % 7}" if one % 5 else None for one in ids]),
            names[4]: pa.array([19_000 + one for one in ids], pa.date32()),
        }
        fields = [
            pa.field(name, values.type, metadata={"PARQUET:field_id": str(at + 3)})
            for at, (name, values) in enumerate(columns.items())
        ]
        path = f"p={p}/part-{self._rows:05d}.parquet"
        target = self.root / path
        target.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), target)
        stats = {
            "numRecords": rows,
            "minValues": {names[2]: ids[0]},
            "maxValues": {names[2]: ids[-1]},
            "nullCount": {names[2]: 0},
        }
        add = {
            "path": path,
            "partitionValues": {names[0]: p, names[1]: None if q is None else str(q)},
            "size": target.stat().st_size,
            "modificationTime": START_MS + self._rows,
            "dataChange": True,
            "stats": json.dumps(stats, separators=(",", ":")),
            "tags": {"made": "here"},
        }
        return {"add": {**add, **changes}}

    def change_file(self, add: Line, rows: int) -> Line:
        """Write change data of the first rows of a file; gives its `cdc`."""
        table = pq.read_table(self.root / add["add"]["path"], partitioning=None).slice(0, rows)
        path = f"_change_data/cdc-{self.version:05d}.parquet"
        (self.root / path).parent.mkdir(exist_ok=True)
        pq.write_table(table.append_column("_change_type", pa.array(["delete"] * rows)), self.root / path)
        size = (self.root / path).stat().st_size
        partition = add["add"]["partitionValues"]
        return {"cdc": {"path": path, "partitionValues": partition, "size": size, "dataChange": False}}

    def dvs(self, *rows: Iterable[int], absolute: bool = False) -> list[Line]:
        """Write deletion vectors into one file; gives their descriptors."""
        content, found = bytearray(b"\x01"), []
        identity = uuid.UUID(int=zlib.crc32(self.root.name.encode()) << 64 | self._rows << 1 | absolute)
        name = f"deletion_vector_{identity}.bin"
        text = f"file://{self.root}/{name}" if absolute else z85_encode(identity.bytes)
        for one in rows:
            bits = BitMap64(one)
            if absolute:
                bits.run_optimize()
            data = MAGIC + bits.serialize()
            found.append(
                {
                    "storageType": "p" if absolute else "u",
                    "pathOrInlineDv": text,
                    "offset": len(content),
                    "sizeInBytes": len(data),
                    "cardinality": len(bits),
                }
            )
            content += len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")
        (self.root / name).write_bytes(bytes(content))
        return found

    def finish(self, *, keep_from: int = 0) -> None:
        """Fix the files' times and take away commits before a version, as a log cleanup would."""
        for number in range(keep_from):
            (self.log / f"{number:020d}.json").unlink()
        for path in self.root.rglob("*"):
            os.utime(path, ns=(START_MS * 10**6, START_MS * 10**6))
        for number in range(keep_from, self.version + 1):
            at = (START_MS + number * 1000) * 10**6
            os.utime(self.log / f"{number:020d}.json", ns=(at, at))

    def checksum(self) -> None:
        """A `.crc` of the version."""
        files = list(self.state.files.values())
        content = {
            "txnId": f"{_UUID}{self.version:x}",
            "tableSizeBytes": sum(file["size"] for file in files),
            "numFiles": len(files),
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": self.state.metadata,
            "protocol": self.state.protocol,
            "setTransactions": list(self.state.transactions.values()),
            "domainMetadata": list(self.state.domains.values()),
            "allFiles": files,
        }
        (self.log / f"{self.version:020d}.crc").write_text(json.dumps(content, separators=(",", ":")))

    def hint(self, *, checksum: bool, **fields: Any) -> None:
        """`_last_checkpoint` for the version."""
        content = {"version": self.version, "size": len(self.state.lines()), **fields}
        if checksum:
            content["checksum"] = "2c3b1fd3eb8b0b1d9d9b5f7f1f4d1e7a"
        (self.log / "_last_checkpoint").write_text(json.dumps(content, separators=(",", ":")))

    def _field(self, at: int) -> Line:
        name, kind = FIELDS[at]
        mapped = {"delta.columnMapping.id": at + 1, "delta.columnMapping.physicalName": self._physical(at)}
        metadata = {} if self._mapping == "none" else mapped
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    def _physical(self, at: int) -> str:
        return FIELDS[at][0] if self._mapping == "none" else f"col-{at}"


def make_corpus(folder: Path) -> list[str]:
    """Make all tables in an empty folder; gives their names."""
    for name, make in _TABLES.items():
        make(folder / name)
    return list(_TABLES)


def _changes(made: TableMaker, *, domains: bool = True) -> Line:
    """Four commits of everything that is not special; gives an `add` that is still there."""
    kept = made.file("a", 1)
    gone = made.file("b", None)
    made.commit("WRITE", kept, gone, {"txn": {"appId": "app", "version": 1, "lastUpdated": START_MS}})
    fresh = made.file(None, 3)
    removed = {
        "path": gone["add"]["path"],
        "deletionTimestamp": START_MS + 2000,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": gone["add"]["partitionValues"],
        "size": gone["add"]["size"],
    }
    made.commit("DELETE", {"remove": removed}, fresh)
    more = [{"txn": {"appId": "app", "version": 2}}, {"txn": {"appId": "other", "version": 9}}]
    if domains:
        more.append({"domainMetadata": {"domain": "d", "configuration": '{"a":1}', "removed": False}})
    made.commit("WRITE", made.file("c", -5), *more)
    return kept


def _plain(root: Path) -> None:
    made = TableMaker(root, features=["domainMetadata", "changeDataFeed"])
    made.create(**{"delta.enableChangeDataFeed": "true"}).checksum()
    kept = _changes(made)
    removed = {"path": kept["add"]["path"], "deletionTimestamp": START_MS, "dataChange": True}
    made.commit("UPDATE", {"remove": removed}, made.file("a", 1, rows=4), made.change_file(kept, 2))
    made.checksum()
    made.finish()


def _classic(root: Path) -> None:
    made = TableMaker(root).create()
    _changes(made, domains=False)
    write_parquet(made.log / f"{made.version:020d}.checkpoint.parquet", made.state.lines())
    made.hint(checksum=True, sizeInBytes=9999, numOfAddFiles=3)
    made.commit("WRITE", made.file("a", 2))
    made.checksum()
    made.finish()


def _cleaned(root: Path) -> None:
    made = TableMaker(root, features=["domainMetadata"]).create()
    _changes(made)
    name = f"{made.version:020d}.checkpoint.parquet"
    write_parquet(made.log / name, made.state.lines(), struct_statistics=True, rows_per_group=4)
    made.hint(checksum=False)
    at = made.version
    made.commit("WRITE", made.file("a", 2))
    made.finish(keep_from=at)


def _multi_part(root: Path) -> None:
    made = TableMaker(root).create()
    _changes(made, domains=False)
    lines = made.state.lines()
    for part in range(3):
        name = f"{made.version:020d}.checkpoint.{part + 1:010d}.{3:010d}.parquet"
        write_parquet(made.log / name, lines[part::3], compression="snappy")
    made.hint(checksum=False, parts=3)
    made.finish(keep_from=made.version)


def _deletion_vectors(root: Path) -> None:
    made = TableMaker(root, features=["deletionVectors", "domainMetadata", "changeDataFeed"])
    made.create(**{"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"})
    _with_deletion_vectors(made, rows=4400)
    made.finish()


def _with_deletion_vectors(made: TableMaker, *, rows: int) -> None:
    kept = _changes(made)
    wide = made.file("a", 7, rows=rows)
    few, most = made.dvs([1, 3, 5], (one for one in range(rows) if one % 50))
    runs = made.dvs([*range(10, rows // 2), *range(rows // 2 + 9, rows)], absolute=True)[0]
    data = MAGIC + BitMap64([0, 2]).serialize()
    inline = {
        "storageType": "i",
        "pathOrInlineDv": z85_encode(data),
        "sizeInBytes": len(data),
        "cardinality": 2,
    }
    other = made.file("b", 8, rows=rows)
    made.commit("WRITE", wide, other, made.file("c", 9, deletionVector=inline))
    removed = [
        {"remove": {"path": one["add"]["path"], "deletionTimestamp": START_MS, "dataChange": True}}
        for one in (kept, wide, other)
    ]
    marked = [
        {"add": {**one["add"], "deletionVector": dv}}
        for one, dv in ((kept, few), (wide, most), (other, runs))
    ]
    made.commit("DELETE", *removed, *marked)


def _v2_json(root: Path) -> None:
    made = TableMaker(root, features=["v2Checkpoint", "deletionVectors", "domainMetadata"]).create()
    _with_deletion_vectors(made, rows=60)
    write_json_manifest(made.log, made.version, made.state.lines(), sidecars=2)
    made.hint(checksum=True)
    at = made.version
    made.commit("WRITE", made.file("d", 1))
    made.finish(keep_from=at)


def _v2_parquet(root: Path) -> None:
    features = ["v2Checkpoint", "columnMapping", "domainMetadata"]
    made = TableMaker(root, mapping="name", features=features).create()
    _changes(made)
    write_parquet_manifest(made.log, made.version, made.state.lines(), sidecars=2)
    made.hint(checksum=False)
    made.finish(keep_from=made.version)


def _mapped(root: Path) -> None:
    made = TableMaker(root, mapping="id", features=["columnMapping", "domainMetadata"]).create()
    _changes(made)
    made.finish()


_TABLES: dict[str, Callable[[Path], None]] = {
    "plain": _plain,
    "classic": _classic,
    "cleaned": _cleaned,
    "multi-part": _multi_part,
    "vectors": _deletion_vectors,
    "v2-json": _v2_json,
    "v2-parquet": _v2_parquet,
    "mapped": _mapped,
}
