"""V2 checkpoints: manifests in JSON and Parquet, files in them and in sidecars, and damaged ones."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions import Action, DeletionVectorDescriptor, DomainMetadata, SetTransaction
from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA
from delta_core.actions.json_codec import action_to_json, decode_commit, parse_commit
from delta_core.actions.validation import CHECKPOINT_CHECKS
from delta_core.errors import CorruptLogError, DeltaWarning
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.listing import list_log
from delta_core.replay.state import checkpoint_protocol_and_metadata
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from tests.support.faulty_store import FaultyStore
from tests.support.log_builder import NOW_MS, LogBuilder, add, metadata, protocol, remove

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
FEATURES = frozenset({"v2Checkpoint"})
DELETION_VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline_dv="dv", offset=1, size_in_bytes=1, cardinality=2
)

_TAGS = pa.map_(pa.string(), pa.string())
MANIFEST_SCHEMA = pa.schema(
    [
        *CHECKPOINT_SCHEMA,
        ("checkpointMetadata", pa.struct([("version", pa.int64()), ("tags", _TAGS)])),
        (
            "sidecar",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("sizeInBytes", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("tags", _TAGS),
                ]
            ),
        ),
    ]
)
SIDECAR_SCHEMA = pa.schema([CHECKPOINT_SCHEMA.field("add"), CHECKPOINT_SCHEMA.field("remove")])

Line = dict[str, Any]


class WatchedStore(FaultyStore):
    """Remembers which sidecars were opened."""

    def __init__(self, inner: LogStore) -> None:
        super().__init__(inner)
        self.sidecars: list[str] = []

    def open_whole(self, path: str) -> pa.NativeFile:
        if "_sidecars" in path:
            self.sidecars.append(path)
        return super().open_whole(path)


class V2Log(LogBuilder):
    """A table with the feature v2Checkpoint, whose checkpoints a test writes line by line."""

    def begin(self) -> V2Log:
        """Version 0: the protocol and metadata; 1: two files and more; 2: one removed, one added."""
        self.commit(
            protocol(
                min_reader_version=3, min_writer_version=7, reader_features=FEATURES, writer_features=FEATURES
            ),
            metadata(),
        )
        self.commit(
            add("a"),
            add("b%20b", partition_values={"p": "2"}),
            SetTransaction(app_id="app", version=4),
            DomainMetadata(domain="d", configuration="{}"),
        )
        self.commit(remove("a"), add("c", size_bytes=7))
        return self

    def head_lines(self, version: int = 2) -> list[Line]:
        """What `begin` leaves behind, without files."""
        actions: list[Action] = [
            protocol(
                min_reader_version=3, min_writer_version=7, reader_features=FEATURES, writer_features=FEATURES
            ),
            metadata(),
            SetTransaction(app_id="app", version=4),
            DomainMetadata(domain="d", configuration="{}"),
        ]
        return [{"checkpointMetadata": {"version": version}}, *map(action_to_json, actions)]

    def sidecar(self, name: str, *actions: Action, **changes: Any) -> Line:
        """Write a sidecar; gives the line that names it."""
        path = self.log / "_sidecars" / name
        path.parent.mkdir(exist_ok=True)
        _write_parquet(path, [action_to_json(action) for action in actions], SIDECAR_SCHEMA)
        size_bytes = path.stat().st_size
        return {
            "sidecar": {"path": name, "sizeInBytes": size_bytes, "modificationTime": NOW_MS, "tags": {}}
            | changes
        }

    def manifest(self, lines: list[Line], *, form: str = "json", version: int = 2, uuid: str = UUID) -> Path:
        """Write the checkpoint itself, as `json`, `parquet`, or `classic` by its name."""
        name = f"{version:020d}.checkpoint"
        if form == "json":
            return self.raw(f"{name}.{uuid}.json", b"\n".join(json.dumps(line).encode() for line in lines))
        path = self.log / (f"{name}.parquet" if form == "classic" else f"{name}.{uuid}.parquet")
        _write_parquet(path, lines, MANIFEST_SCHEMA)
        return path

    def load(self, version: int | None = None) -> Snapshot:
        return Snapshot.load(self.store, version=version, clock=self.clock)


def _write_parquet(path: Path, lines: list[Line], schema: pa.Schema) -> None:
    def pairs(value: Any, name: str) -> Any:
        if isinstance(value, dict) and name in ("partitionValues", "tags", "configuration", "options"):
            return list(value.items())
        return {key: pairs(item, key) for key, item in value.items()} if isinstance(value, dict) else value

    rows = [pairs(line, "") for line in lines]
    pq.write_table(
        pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema), path
    )


@pytest.fixture
def log(tmp_path: Path) -> V2Log:
    return V2Log(tmp_path / "t").begin()


def _paths(snapshot: Snapshot) -> list[str]:
    return sorted(snapshot.files.to_table(["path"])["path"].to_pylist())


def _files(log: V2Log, where: str) -> list[Line]:
    """The files of version 2 as lines of a manifest, or the lines of sidecars with them."""
    kept = [add("b%20b", partition_values={"p": "2"}), add("c", size_bytes=7)]
    if where == "inline":
        return [action_to_json(action) for action in (*kept, remove("a"))]
    if where == "one sidecar":
        return [log.sidecar("x.parquet", *kept, remove("a"))]
    return [
        log.sidecar("x.parquet", kept[0]),
        log.sidecar("y%25 z.parquet", remove("a"), path="y%2525%20z.parquet"),
        log.sidecar("z.parquet", kept[1]),
    ]


@pytest.mark.parametrize("where", ["inline", "one sidecar", "several sidecars"])
@pytest.mark.parametrize("form", ["json", "parquet", "classic"])
def test_every_form_gives_the_same_table(log: V2Log, form: str, where: str) -> None:
    commits = log.load()
    columns = ["path", "partition_values", "size_bytes", "modification_time_ms", "stats", "deletion_vector"]
    expected = (
        commits.files.to_table(columns).sort_by("path"),
        commits.tombstones(),
        commits.protocol,
        commits.metadata,
        dict(commits.transactions),
        dict(commits.domain_metadata),
    )
    log.manifest([*log.head_lines(), *_files(log, where)], form=form)
    log.remove_commits([0, 1])
    again = log.load()
    assert again.has_v2_checkpoint == (form != "classic" or where != "inline")
    assert (
        again.files.to_table(columns).sort_by("path"),
        again.tombstones(),
        again.protocol,
        again.metadata,
        dict(again.transactions),
        dict(again.domain_metadata),
    ) == expected
    log.commit(remove("b b"), add("a"), add("e"))
    for later in (again.refresh(), log.load()):
        assert _paths(later) == ["a", "c", "e"]
        assert later.tombstones()["path"].to_pylist() == ["b b"]


def test_files_in_the_manifest_and_in_a_sidecar_are_all_read(log: V2Log) -> None:
    line = log.sidecar("x.parquet", add("c"), remove("a"))
    log.manifest([*log.head_lines(), action_to_json(add("b%20b")), line])
    assert _paths(log.load()) == ["b%20b", "c"]


def test_only_files_open_sidecars(log: V2Log) -> None:
    for form in ("json", "parquet"):
        path = log.manifest([*log.head_lines(), *_files(log, "several sidecars")], form=form)
        store = WatchedStore(log.store)
        snapshot = Snapshot.load(store, clock=log.clock)
        assert (snapshot.protocol.reader_features, snapshot.metadata.id) == (FEATURES, metadata().id)
        assert snapshot.transactions["app"].version == 4
        assert snapshot.segment.checkpoint_version == 2
        assert store.sidecars == []
        assert len(_paths(snapshot)) == 2
        assert len(snapshot.tombstones()) == 1
        assert sorted(store.sidecars) == [
            f"_delta_log/_sidecars/{name}" for name in ("x.parquet", "y%25 z.parquet", "z.parquet")
        ]
        path.unlink()


def test_sidecars_are_opened_once_whoever_asks(log: V2Log) -> None:
    log.manifest([*log.head_lines(), *_files(log, "several sidecars")])
    store = WatchedStore(log.store)
    reader = CheckpointReader.open(store, list_log(store).checkpoints[-1])
    barrier = threading.Barrier(4)

    def ask(_: int) -> int:
        barrier.wait()
        return len(reader.file_parts)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [3] * 4
    assert len(store.sidecars) == 3


def test_deletion_vectors_are_found_wherever_the_files_are(log: V2Log) -> None:
    def has_vectors(*lines: Line) -> bool:
        path = log.manifest([*log.head_lines(), *lines])
        reader = CheckpointReader.open(log.store, list_log(log.store).checkpoints[-1])
        path.unlink()
        return reader.has_deletion_vectors

    marked = add("m", deletion_vector=DELETION_VECTOR)
    assert not has_vectors(action_to_json(add("a")), log.sidecar("x.parquet", add("b")))
    assert has_vectors(action_to_json(marked))
    assert has_vectors(log.sidecar("x.parquet", add("b")), log.sidecar("y.parquet", marked))


def test_unknown_actions_and_fields_are_ignored(log: V2Log) -> None:
    line = log.sidecar("x.parquet", add("b%20b"), add("c"))
    line["sidecar"]["type"] = "file"
    log.manifest([{"futureAction": {"x": 1}}, *log.head_lines(), line])
    assert _paths(log.load()) == ["b%20b", "c"]


def test_what_only_a_checkpoint_may_hold_means_nothing_in_a_commit() -> None:
    data = b'{"sidecar":{"path":5}}\n{"checkpointMetadata":{}}\n{"add":null}'
    assert decode_commit(data, path="p") == []
    assert parse_commit(data, path="p") == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"sidecar": {"sizeInBytes": 1}}, "path is missing"),
        ({"sidecar": {"path": ""}}, "path is empty"),
        ({"sidecar": {"path": "x", "sizeInBytes": -1}}, "sizeInBytes is -1"),
        ({"sidecar": {"path": "x", "sizeInBytes": "1"}}, "expected an integer"),
        ({"checkpointMetadata": {}}, "version is missing"),
        ({"checkpointMetadata": {"version": -1}}, "version is -1"),
        ({"checkpointMetadata": {"version": "1"}}, "expected an integer"),
    ],
)
def test_checks_of_the_checkpoint_actions(line: Line, reason: str) -> None:
    with pytest.raises(CorruptLogError, match=reason):
        parse_commit(json.dumps(line).encode(), path="p", checks=CHECKPOINT_CHECKS)


def test_absolute_uris_below_the_table_are_sidecars(log: V2Log) -> None:
    base = f"{log.store.uri}/_delta_log/_sidecars"
    lines = [
        log.sidecar("x y.parquet", add("b%20b"), path=f"{base}/x%20y.parquet"),
        log.sidecar("z.parquet", add("c"), path=str(log.root.resolve() / "_delta_log/_sidecars/z.parquet")),
    ]
    log.manifest([*log.head_lines(), *lines])
    assert _paths(log.load()) == ["b%20b", "c"]


def _escaping(raw: str) -> Callable[[V2Log], list[Line]]:
    return lambda log: [log.sidecar("x.parquet", add("b%20b"), add("c"), path=raw)]


def _missing(log: V2Log) -> list[Line]:
    lines = _files(log, "several sidecars")
    (log.log / "_sidecars" / "z.parquet").unlink()
    return lines


def _directory(log: V2Log) -> list[Line]:
    lines = _missing(log)
    (log.log / "_sidecars" / "z.parquet").mkdir()
    return lines


def _overwritten(log: V2Log) -> list[Line]:
    lines = _files(log, "one sidecar")
    path = log.log / "_sidecars" / "x.parquet"
    path.write_bytes(b"x" * path.stat().st_size)
    return lines


def _flipped(log: V2Log) -> list[Line]:
    lines = _files(log, "one sidecar")
    path = log.log / "_sidecars" / "x.parquet"
    whole = path.read_bytes()
    half = len(whole) // 8
    path.write_bytes(whole[:4] + b"\xff" * half + whole[4 + half :])
    return lines


def _twice(log: V2Log) -> list[Line]:
    lines = _files(log, "one sidecar")
    again = {"sidecar": lines[0]["sidecar"] | {"path": "./x%2Eparquet"}}
    return [*lines, again]


DAMAGED_SIDECARS: dict[str, tuple[Callable[[V2Log], list[Line]], str]] = {
    "missing": (_missing, "'_delta_log/_sidecars/z.parquet' does not exist"),
    "a directory": (_directory, "'_delta_log/_sidecars/z.parquet' does not exist"),
    "no parquet": (_overwritten, "x.parquet"),
    "flipped": (_flipped, "x.parquet"),
    "other size": (lambda log: [log.sidecar("x.parquet", add("c"), sizeInBytes=5)], "bytes instead of 5"),
    "named twice": (_twice, "refers to a sidecar twice"),
    "parent": (_escaping("../x.parquet"), r"contains|not below"),
    "encoded parent": (_escaping("%2e%2e%2fx.parquet"), "not below the table root"),
    "inner parent": (_escaping("a/../x.parquet"), "not below the table root"),
    "sub-directory": (_escaping("a/x.parquet"), "is not in _delta_log/_sidecars"),
    "the directory itself": (_escaping("."), "is not in _delta_log/_sidecars"),
    "absolute": (_escaping("/etc/passwd"), "not below the table root"),
    "encoded absolute": (_escaping("%2Fetc%2Fpasswd"), "is not in _delta_log/_sidecars"),
    "foreign store": (_escaping("s3://bucket/_delta_log/_sidecars/x.parquet"), "not below the table root"),
    "foreign table": (_escaping("file:///else/_delta_log/_sidecars/x.parquet"), "not below the table root"),
}


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("damage", DAMAGED_SIDECARS)
def test_a_checkpoint_with_a_damaged_sidecar_is_passed_over(log: V2Log, damage: str, form: str) -> None:
    lines, reason = DAMAGED_SIDECARS[damage]
    log.manifest([*log.head_lines(), *lines(log)], form=form)
    snapshot = log.load()
    assert snapshot.segment.checkpoint_version == 2
    with pytest.warns(DeltaWarning, match="is ignored"):
        assert _paths(snapshot) == ["b%20b", "c"]
    log.remove_commits([0, 1])
    with pytest.raises(CorruptLogError, match=reason), pytest.warns(DeltaWarning, match="is ignored"):
        _paths(log.load())


@pytest.mark.parametrize("form", ["json", "parquet", "classic"])
@pytest.mark.parametrize(
    ("versions", "reason"),
    [([], "0 'checkpointMetadata'"), ([2, 2], "2 'checkpointMetadata'"), ([3], "states the version 3")],
)
def test_the_checkpoint_says_which_version_it_is(
    log: V2Log, form: str, versions: list[int], reason: str
) -> None:
    lines = [
        *({"checkpointMetadata": {"version": version}} for version in versions),
        *log.head_lines()[1:],
        *_files(log, "inline"),
    ]
    log.manifest(lines, form=form)
    if form == "classic" and not versions:
        # That is a checkpoint of the V1 spec.
        assert _paths(log.load()) == ["b%20b", "c"]
        return
    with pytest.warns(DeltaWarning, match=reason):
        assert _paths(log.load()) == ["b%20b", "c"]
    log.remove_commits([0, 1])
    with pytest.raises(CorruptLogError, match=reason), pytest.warns(DeltaWarning, match="is ignored"):
        log.load()


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (b"{", "not JSON"),
        (b'{"add":{"path":"x"}}', "size is missing"),
        (b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}', "second 'protocol'"),
        (json.dumps(action_to_json(remove("c"))).encode(), "'remove' here and a 'add'"),
    ],
)
def test_a_damaged_json_manifest_is_passed_over(log: V2Log, extra: bytes, reason: str) -> None:
    path = log.manifest([*log.head_lines(), *_files(log, "inline")])
    path.write_bytes(path.read_bytes() + b"\n" + extra)
    with pytest.warns(DeltaWarning, match=reason):
        assert _paths(log.load()) == ["b%20b", "c"]
    log.remove_commits([0, 1])
    with (
        pytest.raises(CorruptLogError, match=rf"{UUID}\.json' cannot be read"),
        pytest.warns(DeltaWarning, match="is ignored"),
    ):
        log.load()


def test_another_checkpoint_of_the_version_stands_in(log: V2Log) -> None:
    whole = log.sidecar("x.parquet", add("b%20b"), add("c"), remove("a"))
    log.manifest([*log.head_lines(), whole], uuid=UUID.replace("8", "1"))
    log.manifest([*log.head_lines(), log.sidecar("y.parquet", add("z"), sizeInBytes=1)])
    log.remove_commits([0, 1])
    snapshot = log.load()
    assert checkpoint_protocol_and_metadata(
        CheckpointReader.open(log.store, list_log(log.store).checkpoints[-1])
    ) == (snapshot.protocol, snapshot.metadata)
    with pytest.warns(DeltaWarning, match=rf"{UUID}\.json"):
        assert _paths(snapshot) == ["b%20b", "c"]


def test_a_sidecar_without_a_size_is_read_as_it_is(log: V2Log) -> None:
    line = log.sidecar("x.parquet", add("b%20b"), add("c"), sizeInBytes=None)
    log.manifest([*log.head_lines(), line])
    assert _paths(log.load()) == ["b%20b", "c"]


def test_a_snapshot_outlives_its_sidecars(log: V2Log) -> None:
    line = log.sidecar("x.parquet", add("b%20b"), add("c"), remove("a"))
    log.manifest([*log.head_lines(), line])
    log.remove_commits([0, 1])
    snapshot = log.load()
    assert len(_paths(snapshot)) == 2
    (log.log / "_sidecars" / "x.parquet").unlink()
    assert snapshot.files.to_table(["stats"])["stats"].to_pylist() == ['{"numRecords":1}'] * 2
    assert snapshot.tombstones()["path"].to_pylist() == ["a"]


def test_more_sidecars_than_a_process_may_have_open(log: V2Log) -> None:
    lines = [log.sidecar(f"{number:03}.parquet", add(f"f{number}")) for number in range(120)]
    log.manifest([*log.head_lines(), *lines])
    log.remove_commits([0, 1])
    before = len(os.listdir("/proc/self/fd"))
    snapshot = log.load()
    assert len(_paths(snapshot)) == 120
    assert len(os.listdir("/proc/self/fd")) < before + 20
    assert snapshot.files.to_table(["stats"])["stats"].to_pylist() == ['{"numRecords":1}'] * 120
    (log.log / "_sidecars" / "007.parquet").unlink()
    with pytest.raises(CorruptLogError, match="deleted after it was opened"):
        snapshot.files.to_table(["modification_time_ms"])
