"""Tables as bytes, read from the server itself: neither the proxy nor the library has a part in it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import obstore
import pyarrow.parquet as pq
from obstore.store import AzureStore, GCSStore, S3Store

from tests.support.deletion_vectors import deletion_vector_name, deletion_vector_rows
from tests.support.emulators.minidfs import HdfsServer
from tests.support.emulators.places import BUCKET, Place

_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_PLAIN_HTTP: Any = {"allow_http": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTable:
    """What a table consists of.

    Attributes:
        commits: each version's bytes.
        names: of all data files and files of deletion vectors that there are.
        read: a file's bytes.
    """

    commits: Mapping[int, bytes]
    names: frozenset[str]
    read: Callable[[str], bytes]

    def actions(self, version: int) -> list[dict[str, Any]]:
        """A commit's actions."""
        return [json.loads(line) for line in self.commits[version].splitlines()]

    def txn_ids(self) -> list[str | None]:
        """Each version's transaction id, in order."""
        infos = [
            next((action["commitInfo"] for action in self.actions(version) if "commitInfo" in action), {})
            for version in sorted(self.commits)
        ]
        return [info.get("txnId") for info in infos]

    def live_paths(self) -> list[str]:
        """The data files of the newest version; one that is added twice stands here once."""
        return list(self._live())

    def live_names(self) -> set[str]:
        """The objects that the newest version needs: data files, and their deletion vectors'."""
        dvs = {deletion_vector_name(dv) for dv in self._live().values()}
        return set(self._live()) | {name for name in dvs if name is not None}

    def _live(self) -> dict[str, dict[str, Any] | None]:
        live: dict[str, dict[str, Any] | None] = {}
        for version in sorted(self.commits):
            actions = self.actions(version)
            for action in actions:
                if "remove" in action:
                    live.pop(action["remove"]["path"], None)
            for action in actions:
                if "add" in action:
                    live[action["add"]["path"]] = action["add"].get("deletionVector")
        return live

    def added_paths(self) -> list[str]:
        """Every path that a commit adds, as often as one does."""
        return [
            action["add"]["path"]
            for version in sorted(self.commits)
            for action in self.actions(version)
            if "add" in action
        ]

    def ids(self) -> list[int]:
        """The live rows."""
        found: list[int] = []
        for path, dv in self._live().items():
            ids = pq.ParquetFile(io.BytesIO(self.read(path))).read(columns=["id"])["id"].to_pylist()
            deleted = deletion_vector_rows(dv, self.read)
            found += [value for position, value in enumerate(ids) if position not in deleted]
        return sorted(found)

    def columns(self) -> list[str]:
        """The columns' names, as the newest metadata has them."""
        schemas = [
            action["metaData"]["schemaString"]
            for version in sorted(self.commits)
            for action in self.actions(version)
            if "metaData" in action
        ]
        return [field["name"] for field in json.loads(schemas[-1])["fields"]]


def raw_table(place: Place, uri: str) -> RawTable:
    """A table as it is now."""
    names, read = _reader(place, uri.rpartition("/")[2])
    commits = {int(match[1]): read(name) for name in names if (match := _COMMIT.fullmatch(name))}
    data = frozenset(name for name in names if name.endswith((".parquet", ".bin")) and "/" not in name)
    return RawTable(commits=commits, names=data, read=read)


def _reader(place: Place, table: str) -> tuple[list[str], Callable[[str], bytes]]:
    if place.name == "local":
        root = Path(place.base) / table
        return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()], (
            lambda name: (root / name).read_bytes()
        )
    if place.name == "hdfs":
        server = HdfsServer(endpoint=place.options["webhdfs_endpoint"], rpc_address="")
        folder = f"/tables/{table}"
        names = _hdfs_names(server, folder, "") + _hdfs_names(server, f"{folder}/_delta_log", "_delta_log/")
        return names, lambda name: server.read(f"{folder}/{name}")
    store = _object_store(place)
    prefix = f"{table}/"
    listed = [meta["path"].removeprefix(prefix) for page in obstore.list(store, table) for meta in page]
    return listed, lambda name: bytes(obstore.get(store, prefix + name).bytes())


def _hdfs_names(server: HdfsServer, folder: str, prefix: str) -> list[str]:
    document = server.call("GET", folder, op="LISTSTATUS").document
    if "FileStatuses" not in document:  # there is no such folder
        return []
    entries = document["FileStatuses"]["FileStatus"]
    return [prefix + entry["pathSuffix"] for entry in entries if entry["type"] == "FILE"]


def _object_store(place: Place) -> Any:
    options = place.options
    if place.name == "azure":
        return AzureStore(
            BUCKET,
            endpoint=options["endpoint"],
            account_name=options["account_name"],
            account_key=options["account_key"],
            client_options=_PLAIN_HTTP,
        )
    if place.name == "gcs":
        account = {**json.loads(options["service_account_key"]), "gcs_base_url": options["base_url"]}
        return GCSStore(BUCKET, service_account_key=json.dumps(account), client_options=_PLAIN_HTTP)
    return S3Store(
        BUCKET,
        endpoint=options["AWS_ENDPOINT_URL"],
        access_key_id=options["AWS_ACCESS_KEY_ID"],
        secret_access_key=options["AWS_SECRET_ACCESS_KEY"],
        region=options["AWS_REGION"],
        client_options=_PLAIN_HTTP,
    )
