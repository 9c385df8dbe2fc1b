"""The contract suite over real servers, one for each kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import DeltaTable, write_deltalake
from delta_core.conformance.log_store_contract import LogStoreContract
from delta_core.errors import StorageError, StorePermissionError, UnsafeStoreError, WriteRefusedError
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.storage.probe import forget_probes
from tests.support.directories import check_directories
from tests.support.emulators.dynalite import dynalite
from tests.support.emulators.installation import require
from tests.support.emulators.places import PLACES, Place, create_log_table, unsafe_s3_place

pytestmark = [pytest.mark.extra]

REMOTE = ("s3", "s3+dynamodb", "gcs", "azure", "hdfs")


@pytest.fixture(scope="module", params=REMOTE)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    opener, servers = PLACES[request.param]
    for server in servers:
        require(server)
    with opener(tmp_path_factory.mktemp("place")) as opened:
        yield opened


class TestRemoteStores(LogStoreContract):
    """Every kind of store keeps the contract."""

    @pytest.fixture
    def store(self, place: Place) -> LogStore:
        return open_store(place.new_table(), storage_options=place.options)


def test_directories_are_listed(place: Place) -> None:
    check_directories(open_store(place.new_table(), storage_options=place.options))


def test_a_table_lives_there(place: Place) -> None:
    uri, options = place.new_table(), dict(place.options)
    for number in range(11):
        write_deltalake(
            uri,
            pa.table({"id": [number], "part": pa.array(["ä b" if number % 2 else None], pa.string())}),
            mode="append",
            partition_by=["part"],
            storage_options=options,
        )
    table = DeltaTable(uri, storage_options=options)
    assert table.version() == 10
    table.optimize.compact()
    table.create_checkpoint()
    table.restore(4)
    table = DeltaTable(uri, storage_options=options)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3, 4]
    assert table.vacuum(dry_run=True) == []
    if place.name in ("s3", "azure"):
        peer = PeerTable(uri, storage_options=_for_the_peer(place))
        assert sorted(peer.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_what_is_missing_or_denied_is_named_and_nothing_secret_is(place: Place) -> None:
    if place.name == "hdfs":
        # One name node has no buckets and, without Kerberos, no passwords.
        uri = "hdfs://namenode/none"
        with pytest.raises(StorageError, match=r"namenode|refused|connect"):
            open_store(uri, storage_options=place.through("http://127.0.0.1:9")).list_directory("_delta_log")
        return
    wrong = {
        name: "bm90IHRoZSBrZXk=" if name in ("AWS_SECRET_ACCESS_KEY", "account_key") else value
        for name, value in place.options.items()
    }
    gone = open_store(place.base.replace("tables", "nobucket"), storage_options=place.options)
    with pytest.raises(StorageError) as missing:
        gone.list_directory("_delta_log", start_after="0")
    with pytest.raises((WriteRefusedError, StorePermissionError)):
        gone.put_if_absent("_delta_log/x.json", b"1")
    messages = [str(missing.value)]
    if wrong != place.options:
        with pytest.raises(StorePermissionError) as denied:
            open_store(place.new_table(), storage_options=wrong).put_if_absent("_delta_log/x.json", b"1")
        messages.append(str(denied.value))
    secrets = [value for name, value in place.options.items() if "SECRET" in name or name == "account_key"]
    assert not [secret for secret in [*secrets, "bm90IHRoZSBrZXk="] for text in messages if secret in text]


def test_a_store_that_ignores_preconditions_is_refused(tmp_path: Path) -> None:
    require("s3rver")
    forget_probes()
    with unsafe_s3_place(tmp_path) as unsafe:
        uri = unsafe.new_table()
        with pytest.raises(UnsafeStoreError, match="allows two writers to create"):
            write_deltalake(uri, pa.table({"id": [1]}), storage_options=dict(unsafe.options))
        store = open_store(uri, storage_options=unsafe.options)
        assert store.list_directory("_delta_log") == []
        assert [info.path for info in store.walk() if info.path.startswith("_")] == []


def test_dynamodb_makes_such_a_store_usable(tmp_path: Path) -> None:
    for name in ("s3rver", "dynalite"):
        require(name)
    forget_probes()
    with unsafe_s3_place(tmp_path / "s3") as unsafe, dynalite(tmp_path / "dynamodb") as entries:
        create_log_table(entries.client())
        options = {
            **unsafe.options,
            "AWS_S3_LOCKING_PROVIDER": "dynamodb",
            "endpoint_url_dynamodb": entries.endpoint,
        }
        uri = unsafe.new_table()
        for number in range(3):
            write_deltalake(uri, pa.table({"id": [number]}), mode="append", storage_options=options)
        table = DeltaTable(uri, storage_options=options)
        assert table.version() == 2
        assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]


def _for_the_peer(place: Place) -> dict[str, str]:
    if place.name == "azure":
        return {
            "azure_storage_account_name": place.options["account_name"],
            "azure_storage_account_key": place.options["account_key"],
            "azure_storage_endpoint": place.options["endpoint"],
            "azure_allow_http": "true",
        }
    return dict(place.options)
