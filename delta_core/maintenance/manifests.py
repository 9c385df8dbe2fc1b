"""Manifests of the live files, for engines that read symlink manifests (Presto, Athena)."""

from __future__ import annotations

from urllib.parse import quote

from delta_core.scan import Scan
from delta_core.schema.partition_values import hive_directory
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess

MANIFEST_DIRECTORY = "_symlink_format_manifest"


def write_manifests(snapshot: Snapshot) -> None:
    """Write one manifest for each partition: the URIs of its files, one a line. Removes outdated ones.

    One request for each manifest, and a listing of the manifests.

    Raises:
        UnsupportedTableFeatureError: the bare files do not show the rows of the table.
    """
    snapshot.require_readable(operation="write manifests of the data files")
    store = snapshot.store
    access = DataAccess(allowed_roots=(), clock=snapshot.clock)
    files = Scan(snapshot).files(["path", "partition_values"])
    lines: dict[str, list[str]] = {}
    for path, pairs in zip(
        files.column("path").to_pylist(), files.column("partition_values").to_pylist(), strict=True
    ):
        values = dict(pairs or ())
        parts = (hive_directory(name, values.get(name)) for name in snapshot.partition_columns)
        place = access.locate(path, store=store)
        lines.setdefault("/".join(parts), []).append(f"{place.store.uri}/{quote(place.path)}")
    written = set()
    for directory, uris in lines.items():
        path = "/".join(part for part in (MANIFEST_DIRECTORY, directory, "manifest") if part)
        store.put(path, "".join(f"{uri}\n" for uri in sorted(uris)).encode())
        written.add(path)
    for outdated in store.walk(MANIFEST_DIRECTORY):
        if outdated.path not in written and outdated.path.endswith("/manifest"):
            store.delete(outdated.path)
