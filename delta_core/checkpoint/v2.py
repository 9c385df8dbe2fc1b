"""Checkpoints of the V2 spec: a manifest, and the files in sidecars (PROTOCOL.md, "V2 Spec").

The sidecars are written first and the manifest that names them last, so that a reader finds all of it or
nothing. Manifests have names of their own, so no two writers meet; it is read back before the hint names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from uuid import uuid4

import orjson

from delta_core.actions.checkpoint_schema import MANIFEST_SCHEMA_FIELDS, json_rows
from delta_core.actions.json_codec import action_to_json
from delta_core.checkpoint.classic import CheckpointInfo, checkpoint_info
from delta_core.checkpoint.create_only import NOTHING_WRITTEN, created, created_by_us
from delta_core.checkpoint.hint import point_hint_to
from delta_core.checkpoint.preconditions import other_log, require_as_its_checksum_says
from delta_core.checkpoint.read_back import Contents, delete_unchanged, latest_without, read_contents
from delta_core.checkpoint.rows import CheckpointRows, write_parquet
from delta_core.checkpoint.sidecars import Sidecar, delete_sidecars, write_sidecars
from delta_core.errors import (
    CorruptLogError,
    ObjectExistsError,
    ObjectNotFoundError,
    UnsupportedTableFeatureError,
    VerificationError,
)
from delta_core.log.last_checkpoint import LastCheckpoint, V2CheckpointHint, sidecar_fields
from delta_core.log.listing import CheckpointFiles, list_log
from delta_core.log.log_path import LogFileKind, checkpoint_path, v2_checkpoint_path
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import reader_features, writer_features
from delta_core.table_features.writer_kind import WriterKind

FEATURE = "v2Checkpoint"

SIDECAR_ACTIONS = 262_144
"""So many files go into a sidecar: four row groups, and forty sidecars for ten million files."""

# Old readers find only checkpoints with classic names, and learn from them that they cannot read the table.
_CLASSIC_NAME_EVERY = 10

# More than that does not go into the hint, as with delta-spark.
_HINTED = 30


class ManifestForm(StrEnum):
    """How a manifest is written; the value is its suffix."""

    PARQUET = "parquet"
    JSON = "json"


def supports_v2(snapshot: Snapshot) -> bool:
    """Whether the table's protocol allows checkpoints of the V2 spec."""
    listed = reader_features(snapshot.protocol) & writer_features(snapshot.protocol)
    return FEATURE in listed


def write_v2_checkpoint(
    snapshot: Snapshot,
    *,
    form: ManifestForm = ManifestForm.PARQUET,
    sidecar_actions: int = SIDECAR_ACTIONS,
) -> CheckpointInfo:
    """Write a checkpoint of the V2 spec of a snapshot's version, read it back, and point the hint at it.

    Where the version has a checkpoint that can be read, of whichever spec, that one stays and is what is
    reported, and what the hint names. Every tenth one, by the table's checkpoint interval, has the classic
    name, where that is free and the manifest Parquet. Requests: a look at the version's commit before and
    after, one listing, two for each sidecar, one write; reading back takes a footer and a few columns of each
    file; the hint.

    Args:
        snapshot: the version.
        form: what the manifest is written as.
        sidecar_actions: how many files and tombstones a sidecar holds at most.

    Raises:
        UnsupportedTableFeatureError: the table does not list the feature, or uses what a checkpoint of ours
            cannot hold.
        StaleCommitError: the table at this place is no longer the snapshot's.
        VerificationError: the version is not what its checksum says; or the checkpoint there is of another
            state; or what was read back is not what was written: it is then deleted, with its sidecars, if
            the log is read without it.
        StorageError: it was not written, or that cannot be told.
    """
    snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="write a checkpoint")
    if not supports_v2(snapshot):
        raise UnsupportedTableFeatureError(
            f"Cannot write a checkpoint of the V2 spec: the table does not list the feature {FEATURE}.",
            cause="Readers that know nothing of the feature would not find its files.",
            fix="Write a classic checkpoint, or add the feature to the table first.",
        )
    replaced = other_log(snapshot)
    if replaced is not None:
        raise replaced
    require_as_its_checksum_says(snapshot)
    found = _written_before(snapshot)
    if found is not None:
        return found
    rows = CheckpointRows.of(snapshot)
    sidecars = write_sidecars(rows, max_actions=sidecar_actions)
    paths = [sidecar.info.path for sidecar in sidecars]
    actions = [action_to_json(action) for action in rows.other_actions()]
    try:
        path = _write_manifest(snapshot, rows, [*_structure(snapshot, sidecars), *actions], form)
    except NOTHING_WRITTEN:
        # Of any other failure it cannot be told whether the manifest will be there; cleanup takes what stays.
        if not _may_be_named(snapshot):
            delete_sidecars(snapshot.store, paths)
        raise
    files, contents = _read_back(snapshot, path, paths, sum(sidecar.num_actions for sidecar in sidecars))
    info = checkpoint_info(snapshot, contents)
    hint = V2CheckpointHint(
        manifest=files.parts[0],
        other_actions=[*actions, {"checkpointMetadata": {"version": snapshot.version}}]
        if len(actions) < _HINTED
        else None,
        sidecars=[one.info for one in sidecars] if len(sidecars) <= _HINTED else None,
    )
    _point_hint(snapshot, info, hint)
    return info


def _structure(snapshot: Snapshot, sidecars: Sequence[Sidecar]) -> list[dict[str, Any]]:
    """What makes it a checkpoint of the V2 spec: its metadata, and its sidecars."""
    tags = {
        "sidecarNumActions": str(sum(sidecar.num_actions for sidecar in sidecars)),
        "sidecarSizeInBytes": str(sum(sidecar.info.size_bytes for sidecar in sidecars)),
        "numOfAddFiles": str(snapshot.files.num_files),
    }
    return [
        {"checkpointMetadata": {"version": snapshot.version, "tags": tags}},
        *({"sidecar": {**sidecar_fields(sidecar.info), "tags": {}}} for sidecar in sidecars),
    ]


def _write_manifest(
    snapshot: Snapshot, rows: CheckpointRows, actions: Sequence[Mapping[str, Any]], form: ManifestForm
) -> str:
    path = v2_checkpoint_path(snapshot.version, uuid4(), suffix=form)
    if form is ManifestForm.JSON:
        data = b"".join(orjson.dumps(action, option=orjson.OPT_APPEND_NEWLINE) for action in actions)
        with created_by_us(snapshot.store, path, clock=snapshot.clock) as sink:
            sink.write(data)
        return path
    schema = rows.schema
    for item in MANIFEST_SCHEMA_FIELDS:
        schema = schema.append(item)
    batch = json_rows(actions, schema)
    if _has_classic_name(snapshot):
        try:
            classic = checkpoint_path(snapshot.version)
            with created(snapshot.store, classic, clock=snapshot.clock) as sink:
                write_parquet(sink, schema, [batch], encoded=rows.encoded)
            return classic
        except ObjectExistsError:
            pass  # one that cannot be read: the log's readers look further
    with created_by_us(snapshot.store, path, clock=snapshot.clock) as sink:
        write_parquet(sink, schema, [batch], encoded=rows.encoded)
    return path


def _has_classic_name(snapshot: Snapshot) -> bool:
    return snapshot.version % (snapshot.properties.checkpoint_interval * _CLASSIC_NAME_EVERY) == 0


def _may_be_named(snapshot: Snapshot) -> bool:
    """Whether the version has a checkpoint of the V2 spec by now, or nobody can tell."""
    try:
        listed = list_log(snapshot.store, from_version=snapshot.version)
    except Exception:  # whatever it is, the sidecars then stay
        return True
    return any(item.version == snapshot.version for item in listed.checkpoints)


def _written_before(snapshot: Snapshot) -> CheckpointInfo | None:
    """The version's checkpoint if it has one that can be read. One listing, and reading it."""
    listed = list_log(snapshot.store, from_version=snapshot.version)
    for files in reversed(listed.checkpoints):
        if files.version != snapshot.version or files.kind is LogFileKind.MULTIPART_CHECKPOINT:
            continue
        try:
            contents = read_contents(snapshot.store, files)
        except (CorruptLogError, ObjectNotFoundError):
            continue
        cause = contents.difference(snapshot)
        # The table may be another since.
        replaced = other_log(snapshot)
        if replaced is not None:
            raise replaced
        if cause is not None:
            raise VerificationError(
                f"The checkpoint {files.names[0]!r} was written before, and does not hold the table's state.",
                cause=cause,
                fix="Find out which of the two is right: it was left as it is.",
            )
        # That it can be read does not say that it outlives a loss of power.
        snapshot.store.persist(list(files.names))
        info = checkpoint_info(snapshot, contents)
        named = files.kind is LogFileKind.V2_CHECKPOINT
        hint = V2CheckpointHint(manifest=files.parts[0], other_actions=None, sidecars=None)
        _point_hint(snapshot, info, hint if named else None)
        return info
    return None


def _read_back(
    snapshot: Snapshot, path: str, sidecars: Sequence[str], num_actions: int
) -> tuple[CheckpointFiles, Contents]:
    store = snapshot.store
    try:
        found = store.head(path)
    except ObjectNotFoundError as error:
        raise other_log(snapshot) or error from error
    kind = LogFileKind.CLASSIC_CHECKPOINT if path == checkpoint_path(snapshot.version) else None
    files = CheckpointFiles(version=snapshot.version, kind=kind or LogFileKind.V2_CHECKPOINT, parts=(found,))
    contents, cause = None, None
    try:
        contents = read_contents(store, files)
        cause = contents.difference(snapshot)
        if cause is None and contents.num_sidecar_actions != num_actions:
            cause = f"Expected {num_actions} actions in sidecars, read back {contents.num_sidecar_actions}."
    except CorruptLogError as error:
        cause = f"{error.problem} {error.cause}"
    replaced = other_log(snapshot)
    if contents is not None and cause is None and replaced is None:
        return files, contents
    latest = latest_without(store, path)
    # Nothing needs it where the table was dropped, and all else where it is the table's.
    unneeded = latest is not None and (replaced is not None or latest >= snapshot.version)
    deleted = unneeded and delete_unchanged(store, found)
    if deleted:
        delete_sidecars(store, sidecars)
    if replaced is not None:
        raise replaced
    raise VerificationError(
        f"The checkpoint {path!r} does not hold the table's state.",
        cause=cause or "",
        fix="It was deleted; check the disk and write it again."
        if deleted
        else "It was left as it is, since the log is not read without it; check the disk, and restore it "
        "from a backup.",
    )


def _point_hint(snapshot: Snapshot, info: CheckpointInfo, v2: V2CheckpointHint | None) -> None:
    point_hint_to(
        snapshot,
        LastCheckpoint(
            version=info.version,
            size=info.size,
            size_bytes=info.size_bytes,
            num_add_files=info.num_add_files,
            v2=v2,
        ),
    )
