"""Checkpoints of the V2 spec: a manifest, and file actions in sidecars (PROTOCOL.md, "V2 Spec").

The sidecars are written first and the manifest that refers to them last, so a reader finds the whole
checkpoint or nothing. Manifests have unique names, so writers cannot overwrite each other. The checkpoint is
read back before `_last_checkpoint` refers to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from uuid import uuid4

import orjson

from delta_core.actions.checkpoint_schema import MANIFEST_SCHEMA_FIELDS, json_rows
from delta_core.actions.json_codec import action_to_json
from delta_core.checkpoint.checkpoint_contents import (
    Contents,
    delete_if_unchanged,
    latest_version_without,
    read_contents,
)
from delta_core.checkpoint.classic import CheckpointInfo, checkpoint_info
from delta_core.checkpoint.create_if_absent import NOTHING_WRITTEN, created, created_with_unique_name
from delta_core.checkpoint.preconditions import replaced_log_error, require_checksum_agreement
from delta_core.checkpoint.rows import CheckpointRows, write_parquet
from delta_core.checkpoint.sidecars import Sidecar, delete_sidecars, write_sidecars
from delta_core.checkpoint.update_last_checkpoint import point_hint_to
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
from delta_core.table_features.feature import WriterKind, reader_features, writer_features

FEATURE = "v2Checkpoint"

SIDECAR_ACTIONS = 262_144
"""Default number of actions in a sidecar: four row groups; forty sidecars for ten million files."""

# Old readers find only checkpoints with classic names, which show them that they cannot read the table.
_CLASSIC_NAME_EVERY = 10

# Longer lists are omitted from the hint, as in delta-spark.
_HINTED = 30


class ManifestForm(StrEnum):
    """The file format of a manifest; the value is the file name's suffix."""

    PARQUET = "parquet"
    JSON = "json"


def supports_v2(snapshot: Snapshot) -> bool:
    """True when the table's protocol lists the feature for V2 checkpoints."""
    listed = reader_features(snapshot.protocol) & writer_features(snapshot.protocol)
    return FEATURE in listed


def write_v2_checkpoint(
    snapshot: Snapshot,
    *,
    form: ManifestForm = ManifestForm.PARQUET,
    sidecar_actions: int = SIDECAR_ACTIONS,
) -> CheckpointInfo:
    """Write a V2 checkpoint of a snapshot's version, read it back, and update `_last_checkpoint`.

    If the version has a readable classic or V2 checkpoint already, that one is kept and returned, and the
    hint refers to it. Every tenth checkpoint, by the table's checkpoint interval, gets the classic name, if
    that name is free and the manifest is Parquet.

    Requests: one check of the version's commit before and one after, one listing, two requests for each
    sidecar, and one write; reading the footer and a few columns of each file; and `_last_checkpoint`.

    Args:
        snapshot: the version.
        form: the file format of the manifest.
        sidecar_actions: the maximum number of files and tombstones in a sidecar.

    Raises:
        UnsupportedTableFeatureError: the table does not list the feature, or uses a feature whose checkpoints
            this library cannot write.
        StaleCommitError: another table has replaced the snapshot's table at this location.
        VerificationError: the version contradicts its checksum; or an existing checkpoint has another state;
            or the checkpoint that was read back is not the one that was written. In the last case it is
            deleted together with its sidecars, if the table can be read without it.
        StorageError: the checkpoint was not written, or may have been written.
    """
    snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="write a checkpoint")
    if not supports_v2(snapshot):
        raise UnsupportedTableFeatureError(
            f"Cannot write a checkpoint of the V2 spec: the table does not list the feature {FEATURE}.",
            cause="Readers that do not support the feature would not find the checkpoint's files.",
            fix="Write a classic checkpoint, or add the feature to the table first.",
        )
    replaced = replaced_log_error(snapshot)
    if replaced is not None:
        raise replaced
    require_checksum_agreement(snapshot)
    existing = _written_before(snapshot)
    if existing is not None:
        return existing
    rows = CheckpointRows.of(snapshot)
    sidecars = write_sidecars(rows, max_actions=sidecar_actions)
    paths = [sidecar.info.path for sidecar in sidecars]
    actions = [action_to_json(action) for action in rows.other_actions()]
    try:
        path = _write_manifest(snapshot, rows, [*_structure(snapshot, sidecars), *actions], form)
    except NOTHING_WRITTEN:
        # After any other failure the manifest may exist or appear, so its sidecars stay for log cleanup.
        if not _may_be_referenced(snapshot):
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
    """The actions that only V2 checkpoints have: `checkpointMetadata`, and a `sidecar` for each sidecar."""
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
        with created_with_unique_name(snapshot.store, path, clock=snapshot.clock) as sink:
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
                write_parquet(sink, schema, [batch], parquet_format=rows.parquet_format)
            return classic
        except ObjectExistsError:
            pass  # that checkpoint cannot be read; readers then take another one
    with created_with_unique_name(snapshot.store, path, clock=snapshot.clock) as sink:
        write_parquet(sink, schema, [batch], parquet_format=rows.parquet_format)
    return path


def _has_classic_name(snapshot: Snapshot) -> bool:
    return snapshot.version % (snapshot.properties.checkpoint_interval * _CLASSIC_NAME_EVERY) == 0


def _may_be_referenced(snapshot: Snapshot) -> bool:
    """True when the version has a checkpoint, which may refer to the sidecars, or when the listing fails."""
    try:
        listed = list_log(snapshot.store, from_version=snapshot.version)
    except Exception:  # after any error the sidecars stay
        return True
    return any(item.version == snapshot.version for item in listed.checkpoints)


def _written_before(snapshot: Snapshot) -> CheckpointInfo | None:
    """The version's readable checkpoint, or None. One listing, and reading the checkpoint."""
    listed = list_log(snapshot.store, from_version=snapshot.version)
    for files in reversed(listed.checkpoints):
        if files.version != snapshot.version or files.kind is LogFileKind.MULTIPART_CHECKPOINT:
            continue
        try:
            contents = read_contents(snapshot.store, files)
        except (CorruptLogError, ObjectNotFoundError):
            continue
        cause = contents.difference(snapshot)
        # Another table may have replaced this one meanwhile.
        replaced = replaced_log_error(snapshot)
        if replaced is not None:
            raise replaced
        if cause is not None:
            raise VerificationError(
                f"The existing checkpoint {files.names[0]!r} does not hold the table's state.",
                cause=cause,
                fix="Find out whether the checkpoint or the log is right. The checkpoint was not changed.",
            )
        # The checkpoint can be read, but may not be durable yet.
        snapshot.store.persist(list(files.names))
        info = checkpoint_info(snapshot, contents)
        is_v2 = files.kind is LogFileKind.V2_CHECKPOINT
        hint = V2CheckpointHint(manifest=files.parts[0], other_actions=None, sidecars=None)
        _point_hint(snapshot, info, hint if is_v2 else None)
        return info
    return None


def _read_back(
    snapshot: Snapshot, path: str, sidecars: Sequence[str], num_actions: int
) -> tuple[CheckpointFiles, Contents]:
    store = snapshot.store
    try:
        current = store.head(path)
    except ObjectNotFoundError as error:
        raise replaced_log_error(snapshot) or error from error
    kind = LogFileKind.CLASSIC_CHECKPOINT if path == checkpoint_path(snapshot.version) else None
    files = CheckpointFiles(
        version=snapshot.version, kind=kind or LogFileKind.V2_CHECKPOINT, parts=(current,)
    )
    contents, cause = None, None
    try:
        contents = read_contents(store, files)
        cause = contents.difference(snapshot)
        if cause is None and contents.num_sidecar_actions != num_actions:
            cause = (
                f"{num_actions} actions were written to sidecars, "
                f"{contents.num_sidecar_actions} were read back."
            )
    except CorruptLogError as error:
        cause = f"{error.problem} {error.cause}"
    replaced = replaced_log_error(snapshot)
    if contents is not None and cause is None and replaced is None:
        return files, contents
    latest = latest_version_without(store, path)
    # The checkpoint is unneeded if the table was replaced, or if the log gives the version without it.
    unneeded = latest is not None and (replaced is not None or latest >= snapshot.version)
    deleted = unneeded and delete_if_unchanged(store, current)
    if deleted:
        delete_sidecars(store, sidecars)
    if replaced is not None:
        raise replaced
    raise VerificationError(
        f"The checkpoint {path!r} does not hold the table's state.",
        cause=cause or "",
        fix="The checkpoint was deleted. Check the storage and write the checkpoint again."
        if deleted
        else "Check the storage, and restore the checkpoint from a backup. It was not deleted, since the "
        "table cannot be read without it.",
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
