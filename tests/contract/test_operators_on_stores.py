"""Airflow's operators on tables of every store: by options, by a connection that the company has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.run_state import RunPhase
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_core.storage.open import open_store
from tests.support.emulators.installation import require
from tests.support.emulators.places import PLACES, Place
from tests.support.operator_cells import CELLS, WAYS, connections, context, ids, new_table, opened

pytestmark = [pytest.mark.extra, pytest.mark.airflow]

REMOTE = ("s3", "gcs", "azure", "hdfs")
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "account_key")


@pytest.fixture(scope="module", params=REMOTE)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    opener, servers = PLACES[request.param]
    for server in servers:
        require(server)
    with opener(tmp_path_factory.mktemp("place")) as opened:
        yield opened


def connect(monkeypatch: pytest.MonkeyPatch, place: Place, way: str, **extra: object) -> None:
    for name, value in connections(place, way, **extra).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("way", WAYS)
def test_cell(place: Place, cell: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = new_table(place)
    connect(monkeypatch, place, way, work_dir=str(tmp_path / "work"))
    CELLS[cell](place, uri)
    assert opened(place, uri).version() in (2, 3)


@pytest.mark.parametrize("way", WAYS)
def test_a_run_is_found_from_anywhere_when_the_work_dir_is_a_uri(
    place: Place, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, runs = new_table(place), f"{place.base}/runs of {way}"
    connect(monkeypatch, place, way, work_dir=runs)
    value = DeltaOptimizeOperator(task_id="t", table_uri=uri).execute(context())
    assert value["result_uri"].startswith(f"{place.base}/runs%20of%20{way}/d/")
    found = DeltawardHook()
    assert found.read_result(value["result_uri"]).commits == (3,)
    assert found.read_state(value["result_uri"]).phase is RunPhase.SUCCEEDED
    store = open_store(runs, storage_options=place.options)
    names = sorted(info.path for info in store.walk())
    assert [name.rpartition("/")[2] for name in names] == ["result.json", "spec.json", "state.json"]
    text = b"".join(store.read(name) for name in names).decode() + json.dumps(value)
    assert not [secret for name in _SECRETS if (secret := place.options.get(name, "-")) in text.split('"')]


def test_a_driver_in_another_process_reaches_the_table_and_its_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, runs = new_table(place), f"{place.base}/runs"
    # No job here needs Spark, so nobody asks for the server.
    connect(monkeypatch, place, "referenced", work_dir=runs, connect_url="sc://127.0.0.1:9")
    restore = DeltaRestoreOperator(
        task_id="t", table_uri=uri, version=1, dry_run=False, runner="spark_connect", deadline_seconds=600
    )
    value = restore.execute(context())
    assert value["commits"] == [3]
    assert ids(place, uri) == [0, 1, 2, 3]
    assert DeltawardHook().read_result(value["result_uri"]).commits == (3,)
    assert DeltawardHook().read_state(value["result_uri"]).runner == "spark_connect"


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_test_lists_one_root_and_writes_nothing(
    place: Place, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = f"{place.base}/lake of {way}"
    connect(monkeypatch, place, way, work_dir=str(tmp_path / "work"), allowed_roots=["/data", root])
    good, message = DeltawardHook().test_connection()
    assert (good, message) == (
        True,
        f"Jobs run with the runner inline; the allowed root {root} can be listed",
    )
    assert list(open_store(root, storage_options=place.options).walk()) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_test_names_what_is_wrong_and_no_secret(
    place: Place, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_dir, key = str(tmp_path / "work"), "bm90IHRoZSBrZXk="
    if place.name == "hdfs":
        # One name node has no buckets and, without Kerberos, no passwords.
        silent = "http://127.0.0.1:9"
        nobody = replace(place, endpoint=silent, options=place.through(silent))
        connect(monkeypatch, nobody, way, work_dir=work_dir, allowed_roots=place.base)
        good, message = DeltawardHook().test_connection()
        assert not good
        assert f"The allowed root {place.base} cannot be listed" in message
        return
    gone = place.base.replace("tables", "nobucket")
    connect(monkeypatch, place, way, work_dir=work_dir, allowed_roots=gone)
    good, message = DeltawardHook().test_connection()
    assert not good
    assert f"The allowed root {gone} cannot be listed" in message
    wrong = {name: key if name in _SECRETS else value for name, value in place.options.items()}
    if wrong != place.options:
        connect(monkeypatch, replace(place, options=wrong), way, work_dir=work_dir, allowed_roots=place.base)
        good, denied = DeltawardHook().test_connection()
        assert not good
        assert "No permission" in denied
        message += denied
    shown = [secret for name in _SECRETS if (secret := place.options.get(name))]
    assert not [secret for secret in [*shown, key] if secret in message]


def test_another_kind_of_store_than_the_connections_is_named(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, place, "referenced", work_dir=str(tmp_path / "work"))
    other = "gs://bucket/t" if place.name != "gcs" else "s3://bucket/t"
    with pytest.raises(Exception, match="the_companys is of the type"):
        DeltaOptimizeOperator(task_id="t", table_uri=other).execute(context())
