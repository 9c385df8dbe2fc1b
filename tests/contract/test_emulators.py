"""The servers that the storage tests run against tell the truth about writes that must create.

A store is only as well tested as the server behind it: each of these lets exactly one of many racing
writers create an object, but for the negative control, which lets them all.
"""

from __future__ import annotations

import sys
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import obstore
import psutil
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

from tests.support.emulators import installation
from tests.support.emulators.dynalite import DynamoServer, dynalite
from tests.support.emulators.installation import require
from tests.support.emulators.minidfs import HdfsServer, minidfs
from tests.support.emulators.object_server import (
    CONTAINER,
    HONEST,
    NEGATIVE_CONTROL,
    ObjectServer,
    object_server,
)
from tests.support.emulators.process import EmulatorError, running
from tests.support.emulators.race import WRITERS, body_of, race, race_to_create
from tests.support.emulators.s3 import S3Server
from tests.support.emulators.versitygw import versitygw
from tests.support.fault_plan import Fault, FaultKind, FaultPoint, FaultQueue, RequestFilter
from tests.support.fault_proxy import FaultProxy

pytestmark = pytest.mark.extra

ROUNDS = 3
PUTS = RequestFilter(methods=frozenset({"PUT"}))


@pytest.fixture(scope="module", params=HONEST)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectServer]:
    with object_server(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


@pytest.fixture
def object_store(server: ObjectServer) -> Any:
    return server.store(CONTAINER)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    require("versitygw")
    with versitygw(tmp_path_factory.mktemp("gateway")) as server:
        server.create_container(CONTAINER)
        yield server


@pytest.fixture(scope="module")
def dynamo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamoServer]:
    require("dynalite")
    with dynalite(tmp_path_factory.mktemp("dynalite")) as server:
        yield server


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    require("minidfs")
    with minidfs(tmp_path_factory.mktemp("minidfs")) as server:
        yield server


def test_one_of_many_writers_creates_an_object(object_store: Any) -> None:
    for version in range(ROUNDS):
        result = race_to_create(object_store, f"race/_delta_log/{version:020d}.json")
        result.require_one_winner()
        assert len(result.losers) == WRITERS - 1


def test_an_object_is_listed_read_and_deleted(object_store: Any) -> None:
    names = ["listed/a b%2F+ä.json", "listed/deep/c.json", "listed/z=1/part.parquet"]
    for name in reversed(names):
        obstore.put(object_store, name, name.encode())
    found = [meta["path"] for batch in obstore.list(object_store, prefix="listed") for meta in batch]
    assert found == names
    after = obstore.list(object_store, prefix="listed", offset=names[0])
    assert [meta["path"] for batch in after for meta in batch] == names[1:]
    assert obstore.head(object_store, names[0])["size"] == len(names[0].encode())
    assert bytes(obstore.get_range(object_store, names[1], start=2, end=6)) == names[1].encode()[2:6]
    folders = obstore.list_with_delimiter(object_store, prefix="listed")["common_prefixes"]
    assert folders == ["listed/deep", "listed/z=1"]
    obstore.delete(object_store, names)
    assert not [meta for batch in obstore.list(object_store, prefix="listed") for meta in batch]
    with pytest.raises(FileNotFoundError):
        obstore.head(object_store, names[0])


def test_an_object_is_replaced_only_by_who_has_read_it(object_store: Any) -> None:
    first = obstore.put(object_store, "replaced.json", b"first")
    # A store without versions answers None for one, which obstore does not take back.
    read: Any = {name: value for name, value in first.items() if value is not None}
    second = obstore.put(object_store, "replaced.json", b"second", mode=read)
    with pytest.raises(PreconditionError):
        obstore.put(object_store, "replaced.json", b"third", mode=read)
    assert bytes(obstore.get(object_store, "replaced.json").bytes()) == b"second"
    assert second["e_tag"] != first["e_tag"]


def test_a_listing_of_several_pages_is_whole_and_in_order(object_store: Any) -> None:
    names = [f"pages/{number:020d}.json" for number in range(1_100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: obstore.put(object_store, name, b"{}"), names))
    found = [meta["path"] for batch in obstore.list(object_store, prefix="pages") for meta in batch]
    assert found == names
    tail = obstore.list(object_store, prefix="pages", offset=names[49])
    assert [meta["path"] for batch in tail for meta in batch] == names[50:]


@pytest.mark.parametrize("point", list(FaultPoint))
def test_a_lost_create_through_the_proxy(server: ObjectServer, point: FaultPoint) -> None:
    name = f"lost-{point}.json"
    with FaultProxy(server.endpoint) as proxy:
        store = server.store(CONTAINER, endpoint=proxy.endpoint, retry_config={"max_retries": 0})
        proxy.inject(FaultQueue([Fault(kind=FaultKind.DROP, point=point)]), matching=PUTS)
        with pytest.raises(GenericError):
            obstore.put(store, name, b"mine", mode="create")
        if point is FaultPoint.BEFORE:
            obstore.put(store, name, b"mine", mode="create")
        # A writer that tries again cannot tell from the answer whose the object is.
        with pytest.raises(AlreadyExistsError):
            obstore.put(store, name, b"other", mode="create")
        assert bytes(obstore.get(store, name).bytes()) == b"mine"
        lost = proxy.requests[0]
    assert (lost.method, lost.sent, lost.status) == ("PUT", int(point is FaultPoint.AFTER), None)


def test_a_doubled_create_through_the_proxy_is_refused_by_its_own_object(server: ObjectServer) -> None:
    with FaultProxy(server.endpoint) as proxy:
        store = server.store(CONTAINER, endpoint=proxy.endpoint, retry_config={"max_retries": 0})
        proxy.inject(FaultQueue([Fault(kind=FaultKind.DUPLICATE)]), matching=PUTS)
        with pytest.raises(AlreadyExistsError):
            obstore.put(store, "doubled.json", b"mine", mode="create")
        assert bytes(obstore.get(store, "doubled.json").bytes()) == b"mine"


def test_boto3_creates_an_object_once(gateway: S3Server) -> None:
    client = gateway.client()

    def create(number: int) -> bool:
        try:
            client.put_object(Bucket=CONTAINER, Key="boto3.json", Body=bytes([number]), IfNoneMatch="*")
        except client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] not in ("PreconditionFailed", "ConditionalRequestConflict"):
                raise
            return False
        return True

    winners, losers = race(create)
    assert len(winners) == 1
    assert len(losers) == WRITERS - 1
    assert client.get_object(Bucket=CONTAINER, Key="boto3.json")["Body"].read() == bytes(winners)
    client.close()


def test_the_negative_control_lets_several_writers_win(tmp_path: Path) -> None:
    with object_server(NEGATIVE_CONTROL, tmp_path) as server:
        result = race_to_create(server.store(CONTAINER), "_delta_log/00000000000000000001.json")
    assert len(result.winners) > 1
    with pytest.raises(AssertionError, match="created the same object"):
        result.require_one_winner()


@pytest.mark.parametrize("form", ["ConditionExpression", "Expected"])
def test_one_of_many_writers_puts_an_item(dynamo: DynamoServer, form: str) -> None:
    # The second form is the one that Delta's own S3DynamoDBLogStore sends.
    condition: dict[str, Any] = (
        {"ConditionExpression": "attribute_not_exists(fileName)"}
        if form == "ConditionExpression"
        else {"Expected": {"fileName": {"Exists": False}}}
    )
    client = dynamo.client()
    table = f"delta_log_{form}"
    client.create_table(
        TableName=table,
        AttributeDefinitions=[
            {"AttributeName": "tablePath", "AttributeType": "S"},
            {"AttributeName": "fileName", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "tablePath", "KeyType": "HASH"},
            {"AttributeName": "fileName", "KeyType": "RANGE"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    key = {"tablePath": {"S": "s3://tables/t"}, "fileName": {"S": "00000000000000000001.json"}}

    def put(number: int) -> bool:
        item = {**key, "tempPath": {"S": f".tmp/{number}"}}
        try:
            client.put_item(TableName=table, Item=item, **condition)
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    winners, _ = race(put)
    assert len(winners) == 1
    stored = client.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]
    assert stored["tempPath"] == {"S": f".tmp/{winners[0]}"}
    client.close()


def test_one_of_many_writers_renames_to_a_name(hdfs: HdfsServer) -> None:
    log = "/tables/t/_delta_log"
    for number in range(WRITERS):
        hdfs.create(f"{log}/.tmp/{number}", body_of(number))

    def rename(number: int) -> bool:
        source = f"{log}/.tmp/{number}"
        answer = hdfs.call("PUT", source, op="RENAME", destination=f"{log}/1.json", renameoptions="NONE")
        if answer.status != 200:
            assert answer.document["RemoteException"]["exception"] == "FileAlreadyExistsException"
        return answer.status == 200

    winners, losers = race(rename)
    assert len(winners) == 1
    assert hdfs.read(f"{log}/1.json") == body_of(winners[0])
    left = hdfs.call("GET", f"{log}/.tmp", op="LISTSTATUS").document["FileStatuses"]["FileStatus"]
    assert {int(status["pathSuffix"]) for status in left} == set(losers)


def test_the_xml_door_lists_page_by_page(tmp_path: Path) -> None:
    with object_server("fake-gcs-server", tmp_path) as server:
        for name in ("a/1&2", "b", "c", "d"):
            obstore.put(server.store(CONTAINER), name, b"")
        found: list[str] = []
        token = ""
        for _ in range(4):
            query = urlencode({"list-type": 2, "max-keys": 3, "continuation-token": token})
            with urllib.request.urlopen(f"{server.endpoint}/{CONTAINER}?{query}", timeout=300) as answer:
                page = ElementTree.fromstring(answer.read())
            found += [key.text or "" for key in page.iter("Key")]
            token = page.findtext("NextContinuationToken") or ""
            if not token:
                break
        assert page.findtext("IsTruncated") == "false"
    assert found == ["a/1&2", "b", "c", "d"]


def test_a_missing_server_skips_for_a_newcomer_and_fails_under_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "HOME", tmp_path)
    assert (installation.installed("versitygw") or "").endswith("run scripts/emulators.sh versitygw")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="not installed"):
        require("versitygw")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="not installed"):
        require("versitygw")


@pytest.mark.parametrize("point", ["start", "answer"])
def test_a_server_that_does_not_come_up_says_why_and_is_ended(tmp_path: Path, point: str) -> None:
    then = "raise SystemExit(3)" if point == "start" else "time.sleep(60)"
    command = [sys.executable, "-u", "-c", f"import time; print('no such folder'); {then}"]
    before = set(psutil.Process().children(recursive=True))
    with (
        pytest.raises(EmulatorError, match="no such folder"),
        running(lambda port: command, folder=tmp_path, ready=lambda port: False, seconds=1.5),
    ):
        pytest.fail("it has not started")
    assert set(psutil.Process().children(recursive=True)) == before


def test_a_server_listens_on_the_loopback_alone_and_leaves_nothing_behind(tmp_path: Path) -> None:
    require("versitygw")
    before = set(psutil.Process().children(recursive=True))
    with versitygw(tmp_path):
        started = set(psutil.Process().children(recursive=True)) - before
        listening = {
            connection.laddr.ip
            for process in started
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        }
    assert listening == {"127.0.0.1"}
    assert not [process for process in started if process.is_running()]
