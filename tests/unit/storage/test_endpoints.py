"""Whatever names a server that is not the cloud's own: that one is asked, and it is probed first."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from delta_core.errors import UnsafeStoreError
from delta_core.storage.cached import without_cache
from delta_core.storage.object_store import ObjectLogStore
from delta_core.storage.open import open_store
from delta_core.storage.probe import forget_probes

COMMIT = "_delta_log/00000000000000000001.json"
OPTIONS = {
    "s3://bucket/t": {"access_key_id": "a", "secret_access_key": "b"},
    "gs://bucket/t": {"bearer_token": "a"},
    "az://bucket/t": {"account_name": "acc", "account_key": "c2VjcmV0"},
}


class Careless(BaseHTTPRequestHandler):
    """Creates whatever it is asked to create."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.send_header("ETag", '"1"')
        self.send_header("x-goog-generation", "1")
        self.end_headers()

    def do_POST(self) -> None:
        """Deletes of many objects at once: refused for good, so that no client asks again."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_DELETE(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@contextmanager
def careless() -> Iterator[tuple[str, list[str]]]:
    """A server's address, and what it was asked to create."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Careless) as server:
        asked: list[str] = []
        server.asked = asked  # type: ignore[attr-defined]
        server.daemon_threads = True  # clients keep connections open
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in os.environ:
        if name.startswith(("AWS_", "AZURE_", "AZURITE_", "GOOGLE_", "SERVICE_ACCOUNT")):
            monkeypatch.delenv(name)
    forget_probes()
    yield
    forget_probes()


@pytest.mark.parametrize(
    ("uri", "variable"),
    [
        ("s3://bucket/t", "AWS_ENDPOINT"),
        ("s3://bucket/t", "AWS_ENDPOINT_URL"),
        ("s3://bucket/t", "AWS_ENDPOINT_URL_S3"),
        ("s3://bucket/t", "AWS_Endpoint_Url"),
        ("gs://bucket/t", "GOOGLE_BASE_URL"),
        ("gs://bucket/t", "GOOGLE_base_url"),
        ("az://bucket/t", "AZURE_ENDPOINT"),
        ("az://bucket/t", "AZURE_STORAGE_ENDPOINT"),
    ],
)
def test_a_server_that_the_environment_names_is_probed(
    uri: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with careless() as (url, asked):
        monkeypatch.setenv(variable, url)
        store = open_store(uri, storage_options=OPTIONS[uri])
        with pytest.raises(UnsafeStoreError):
            store.put_if_absent(COMMIT, b"mine")
        assert len(asked) == 2
        assert all("probe" in path for path in asked)


def test_azure_s_emulator_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    with careless() as (url, asked):
        monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", url)
        with pytest.raises(UnsafeStoreError):
            open_store("az://bucket/t", storage_options=OPTIONS["az://bucket/t"]).put_if_absent(
                COMMIT, b"mine"
            )
        assert len(asked) == 2


@pytest.mark.parametrize("how", ["service_account", "service_account_key", "SERVICE_ACCOUNT"])
def test_a_server_that_a_service_account_names_is_probed(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with careless() as (url, asked):
        key = {"gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": ""}
        text = json.dumps({**key, "private_key_id": ""})
        (tmp_path / "key.json").write_text(text)
        value = text if how.endswith("key") else str(tmp_path / "key.json")
        if how.isupper():
            monkeypatch.setenv(how, value)
        store = open_store("gs://bucket/t", storage_options={} if how.isupper() else {how: value})
        with pytest.raises(UnsafeStoreError):
            store.put_if_absent(COMMIT, b"mine")
        assert len(asked) == 2


@pytest.mark.parametrize(
    ("uri", "variables"),
    [
        ("s3://bucket/t", ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"]),
        ("gs://bucket/t", ["GOOGLE_BASE_URL"]),
        ("az://bucket/t", ["AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"]),
        ("az://bucket/t", ["AZURITE_BLOB_STORAGE_URL"]),
    ],
)
def test_an_option_is_asked_before_the_environment(
    uri: str, variables: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        url, asked = stack.enter_context(careless())
        other, never = stack.enter_context(careless())
        for variable in variables:
            monkeypatch.setenv(variable, other)
        if variables == ["AZURITE_BLOB_STORAGE_URL"]:
            monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "1")
        with pytest.raises(UnsafeStoreError):
            open_store(uri, storage_options={**OPTIONS[uri], "endpoint": url}).put_if_absent(COMMIT, b"mine")
        assert (len(asked), never) == (2, [])


@pytest.mark.parametrize("uri", list(OPTIONS))
def test_the_cloud_s_own_is_not_probed(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ENDPOINT_URL", "GOOGLE_BASE_URL"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "false")
    store = without_cache(open_store(uri, storage_options=OPTIONS[uri]))
    assert isinstance(store, ObjectLogStore)
    assert store._clients.proved
