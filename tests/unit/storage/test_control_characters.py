"""Control characters and half characters in options, URIs and names: typed errors, not the client's panic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore
from typer.testing import CliRunner

from delta_core.cli.app import app
from delta_core.errors import (
    AmbiguousWriteError,
    ConfigurationError,
    InvalidUriError,
    PathEscapeError,
    StorageError,
)
from delta_core.storage.object_store import Clients, ObjectLogStore
from delta_core.storage.open import open_store
from delta_core.storage.remote_uri import parse_remote_uri
from tests.support.fake_dynamodb import Item
from tests.unit.storage.test_s3_dynamodb import Place, path_of

SECRET = "hunter2secret"
NAMES = ["p\x1b[2J.parquet", "p\n", "a\x00b", "p\x7f", "p\udcff", "p\ud800"]
KEYS = {"endpoint": "http://127.0.0.1:9", "access_key_id": "k", "secret_access_key": "s", "region": "x"}


@pytest.fixture
def store() -> ObjectLogStore:
    memory = MemoryStore()
    clients = Clients(lambda: (memory, memory), proved=True, place="memory")
    return ObjectLogStore(parse_remote_uri("s3://b/t"), clients)


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://b/t", {**KEYS, "access_key_id": f"{SECRET}\n"}),
        ("s3://b/t", {**KEYS, "session_token": f"{SECRET}\r"}),
        ("s3://b/t", {**KEYS, "region": f"{SECRET}\n"}),
        ("s3://b/t", {**KEYS, "user_agent": f"{SECRET}\n"}),
        ("s3://b/t", {**KEYS, "profile": f"{SECRET}\udcff"}),
        ("gs://b/t", {"bearer_token": f"{SECRET}\n"}),
        ("az://b/t", {"account_name": "a", "token": f"{SECRET}\n"}),
    ],
)
def test_an_option_with_a_control_character_is_refused(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="control character") as caught:
        open_store(uri, storage_options=options)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "variable", "options"),
    [
        ("s3://b/t", "AWS_SESSION_TOKEN", {}),
        ("s3://b/t", "AWS_DEFAULT_REGION", {"access_key_id": "k", "secret_access_key": "s"}),
        ("gs://b/t", "GOOGLE_BEARER_TOKEN", {}),
        ("az://b/t", "AZURE_STORAGE_TOKEN", {"account_name": "a"}),
    ],
)
def test_a_variable_with_a_control_character_is_refused(
    monkeypatch: pytest.MonkeyPatch, uri: str, variable: str, options: dict[str, str]
) -> None:
    monkeypatch.setenv(variable, f"{SECRET}\n")
    with pytest.raises(ConfigurationError, match=variable) as caught:
        open_store(uri, storage_options=options)
    assert SECRET not in str(caught.value)


def test_a_variable_that_an_option_overrules_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "x\n")
    monkeypatch.setenv("AWS_UNHEARD_OF", "x\n")
    assert open_store("s3://b/t", storage_options=KEYS).uri == "s3://b/t"


def test_a_key_file_s_content_and_a_certificate_have_lines() -> None:
    key = '{"type":\n "authorized_user",\n "client_id": "i", "client_secret": "s", "refresh_token": "t"}'
    with pytest.raises(ConfigurationError) as caught:
        open_store("gs://b/t", storage_options={"service_account_key": key})
    assert "control character" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_with_a_control_character_is_in_no_store(store: ObjectLogStore, name: str) -> None:
    calls: list[Callable[[str], Any]] = [
        *(store.read, store.head, store.open_input, store.open_whole, store.delete, store.list_directory),
        lambda path: store.put(path, b""),
        lambda path: store.put_if_absent(path, b""),
        lambda path: store.persist([path]),
        lambda path: list(store.walk(path)),
        lambda path: store.open_output(path).__enter__(),
    ]
    for call in calls:
        with pytest.raises(PathEscapeError):
            call(name)


@pytest.mark.parametrize("name", ["é ü/p=%0A/x", "p\x85q", "\u202e"])
def test_other_names_are_as_they_were(store: ObjectLogStore, name: str) -> None:
    store.put_if_absent(name, b"1")
    assert store.read(name) == b"1"


@pytest.mark.parametrize("name", [*NAMES, "p%1B%5B2J", "p%0A/x"])
@pytest.mark.parametrize("scheme", ["s3", "gs", "hdfs"])
def test_a_uri_with_a_control_character_is_refused(scheme: str, name: str) -> None:
    for uri in (f"{scheme}://b/t/{name}", f"{scheme}://b{name}/t"):
        with pytest.raises(InvalidUriError):
            parse_remote_uri(uri)


def test_the_command_line_shows_no_control_character() -> None:
    result = CliRunner().invoke(app, ["describe", "s3://b/\x1b[2J"])
    assert result.exit_code == 2
    assert "\x1b" not in result.output


def test_bytes_of_an_entry_whose_name_is_hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    memory = MemoryStore()
    clients = Clients(lambda: (memory, memory), proved=True, place="memory")
    place.store._objects = ObjectLogStore(parse_remote_uri("s3://bucket/t"), clients)
    monkeypatch.setattr(place.store._entries, "_clients", lambda: (place.dynamo, place.dynamo))
    item: Item = place.begun(0, b"theirs")
    place.dynamo.put({**item, "tempPath": {"S": "a\nb"}})
    with pytest.raises(PathEscapeError):
        place.store.read(path_of(0))


class PanicException(BaseException):
    """As pyo3 calls what its libraries raise."""


@pytest.mark.parametrize("error", [PanicException(f"token={SECRET}"), ValueError("x"), TypeError("x")])
def test_a_fault_of_the_client_is_an_error_of_ours(
    store: ObjectLogStore, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise error

    for name in ("get", "put", "head"):
        monkeypatch.setattr(obstore, name, fail)
    for call in (lambda: store.read("x"), lambda: store.put("x", b"")):
        with pytest.raises(StorageError) as caught:
            call()
        assert SECRET not in str(caught.value)
    with pytest.raises(AmbiguousWriteError):
        store.put_if_absent("x", b"")


def test_an_interrupt_stays_one(store: ObjectLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(obstore, "get", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.read("x")
