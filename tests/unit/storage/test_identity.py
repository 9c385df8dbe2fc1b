"""Who asks is who the options name, whatever identity the environment of a worker or a pod has beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from delta_core.errors import ConfigurationError, StorageError
from delta_core.storage.open import open_store

KEY = "b3duLWtleQ=="
OWN = {"account_name": "acct"}


class Listener(BaseHTTPRequestHandler):
    """Remembers what it is asked, and refuses."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._refuse()

    def do_POST(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.server.asked.append((self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


class Server:
    """A listener's address, and what it heard."""

    def __init__(self, url: str, asked: list[tuple[str, dict[str, str], str]]) -> None:
        self.url = url
        self.asked = asked

    def ask(self, uri: str, **options: str) -> tuple[str, dict[str, str], str]:
        """The first request of a listing."""
        with pytest.raises(StorageError):
            open_store(uri, storage_options=options).list_directory("")
        path, headers, body = self.asked[0]
        return path, {name.lower(): value for name, value in headers.items()}, body


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in os.environ:
        if name.startswith(("AWS_", "AZURE_", "AZURITE_")):
            monkeypatch.delenv(name)
    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as listening:
        asked: list[tuple[str, dict[str, str], str]] = []
        listening.asked = asked  # type: ignore[attr-defined]
        listening.daemon_threads = True  # clients keep connections open
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Server(f"http://127.0.0.1:{listening.server_address[1]}", asked)
        finally:
            listening.shutdown()
            thread.join()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """An environment with keys of its own, as a login by SSO leaves it."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.setenv(f"AWS_{name}", "the-workers")


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: Server) -> None:
    """An environment that has an account's key, and an identity as pods get it."""
    (tmp_path / "token").write_text("the-pods")
    for name in ("CLIENT_ID", "TENANT_ID", "STORAGE_SAS_TOKEN"):
        monkeypatch.setenv(f"AZURE_{name}", "the-pods")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "dGhlLXBvZHM=")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", server.url)


@pytest.mark.usefixtures("worker")
def test_keys_go_without_the_environments_token(server: Server) -> None:
    _, headers, _ = server.ask(
        "s3://bucket/t", access_key_id="own", secret_access_key="secret", endpoint=server.url
    )
    assert "Credential=own/" in headers["authorization"]
    assert "x-amz-security-token" not in headers


@pytest.mark.usefixtures("worker")
def test_keys_go_with_their_own_token_and_without_keys_the_environment_asks(server: Server) -> None:
    keys = {"access_key_id": "own", "secret_access_key": "secret", "session_token": "token"}
    assert server.ask("s3://bucket/t", endpoint=server.url, **keys)[1]["x-amz-security-token"] == "token"
    server.asked.clear()
    headers = server.ask("s3://bucket/t", endpoint=server.url)[1]
    assert "Credential=the-workers/" in headers["authorization"]
    assert headers["x-amz-security-token"] == "the-workers"


@pytest.mark.usefixtures("worker")
def test_a_role_that_the_environments_keys_would_hide_is_refused(server: Server) -> None:
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID"):
        open_store("s3://bucket/t", storage_options={"role_arn": "r", "web_identity_token_file": "/f"})
    assert server.asked == []


@pytest.mark.parametrize(
    "options",
    [
        {"access_key_id": "own", "secret_access_key": "secret"},
        {"skip_signature": "true"},
        {"role_arn": "r", "web_identity_token_file": "/f"},
    ],
)
def test_a_profile_of_the_environment_is_not_read_beside_an_identity(
    server: Server, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobodys")
    assert open_store("s3://bucket/t", storage_options=options).uri == "s3://bucket/t"
    with pytest.raises(ConfigurationError, match="nobodys"):
        open_store("s3://bucket/t", storage_options={"region": "r"})


@pytest.mark.usefixtures("pod")
def test_a_signature_goes_before_a_pods_identity(server: Server) -> None:
    path, headers, _ = server.ask("az://c/t", sas_key="sv=1&sig=own", endpoint=server.url, **OWN)
    assert "sig=own" in path
    assert "authorization" not in headers


@pytest.mark.usefixtures("pod")
def test_a_token_goes_before_a_pods_identity(server: Server) -> None:
    _, headers, _ = server.ask("az://c/t", token="own", endpoint=server.url, **OWN)
    assert headers["authorization"] == "Bearer own"


@pytest.mark.usefixtures("pod")
def test_an_application_goes_before_a_pods_identity(server: Server) -> None:
    own = {"tenant_id": "own", "client_id": "app", "client_secret": "secret"}
    path, _, body = server.ask("az://c/t", endpoint=server.url, **own, **OWN)
    assert path == "/own/oauth2/v2.0/token"
    assert "client_secret=secret" in body
    assert "the-pods" not in body


@pytest.mark.usefixtures("pod")
def test_a_managed_identity_is_a_pods_own_where_there_is_one(server: Server) -> None:
    path, _, body = server.ask("az://c/t", client_id="managed", endpoint=server.url, **OWN)
    assert path == "/the-pods/oauth2/v2.0/token"
    assert "client_id=managed" in body
    assert "client_assertion=the-pods" in body


def test_a_managed_identity_is_asked_of_the_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "dGhlLXBvZHM=")
    path, _, _ = server.ask(
        "az://c/t", client_id="managed", msi_endpoint=f"{server.url}/msi", endpoint=server.url, **OWN
    )
    assert path.startswith("/msi?")
    assert "client_id=managed" in path


@pytest.mark.usefixtures("pod")
def test_a_key_goes_first_and_without_options_the_pods_identity(server: Server) -> None:
    keyed = server.ask("az://c/t", account_key=KEY, endpoint=server.url, **OWN)[1]["authorization"]
    server.asked.clear()
    pods = server.ask("az://c/t", endpoint=server.url, **OWN)[1]["authorization"]
    assert keyed.startswith("SharedKey acct:")
    assert pods.startswith("SharedKey acct:")
    assert keyed != pods
