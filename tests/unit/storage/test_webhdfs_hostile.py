"""Answers of servers that are no HDFS's, or that repeat a token, and addresses that no HDFS has."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import pytest

from delta_core.clock import ManualClock
from delta_core.errors import ConfigurationError, DeltaError, InvalidUriError, NotWrittenError, StorageError
from delta_core.storage.open import open_store
from delta_core.storage.webhdfs import WebHdfsLogStore

pytestmark = pytest.mark.slow

TOKEN = "s3cr3t+t/k=="
JSON = {"Content-Type": "application/json"}


class Server(ThreadingHTTPServer):
    """Answers every request alike."""

    answer: tuple[int, dict[str, str], bytes] = (200, {}, b"")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert isinstance(self.server, Server)
        status, headers, body = self.server.answer
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def store(server: Server) -> WebHdfsLogStore:
    options = {"delegation_token": TOKEN, "webhdfs_endpoint": server.url}
    return WebHdfsLogStore("hdfs://nn/t", options=options, clock=ManualClock())


@pytest.mark.parametrize(
    "location",
    [
        *("http://[::1", "http://host:99999/x", "http://host:abc/x", "http://ho st/x", "http://a..b/x"),
        *("http://xn--/x", "http://%00/", "http://-/x", "http://" + "a" * 300 + "/", "http://"),
        *("http://169.254.169.254/latest", "http://[fe80::1]/x", "http://0.0.0.0:1/x", "http://224.0.0.1/x"),
    ],
)
def test_a_redirect_to_what_is_no_host(server: Server, store: WebHdfsLogStore, location: str) -> None:
    server.answer = (307, {"Location": location}, b"")
    with pytest.raises(StorageError):
        store.read("x")
    with pytest.raises(NotWrittenError):
        store.put_if_absent("x", b"1")


@pytest.mark.parametrize("location", ["http://169.254.169.254/latest", "http://[fe80::1]/x"])
def test_a_redirect_to_where_credentials_are_is_not_followed(
    server: Server, store: WebHdfsLogStore, location: str
) -> None:
    server.answer = (307, {"Location": location}, b"")
    with pytest.raises(StorageError, match="is not followed"):
        store.read("x")


@pytest.mark.parametrize(
    "wrong",
    [
        *({"length": float("inf")}, {"length": float("nan")}, {"length": -5}, {"length": None}),
        *({"length": "9" * 5000}, {"modificationTime": float("inf")}),
    ],
)
def test_a_status_that_can_be_no_file_s(
    server: Server, store: WebHdfsLogStore, wrong: dict[str, Any]
) -> None:
    status = {"pathSuffix": "", "type": "FILE", "length": 1, "modificationTime": 1, **wrong}
    server.answer = (200, JSON, json.dumps({"FileStatus": status}).encode())
    with pytest.raises(StorageError, match="an entry"):
        store.head("x")


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        ("X", f"http://h/?op=OPEN&delegation={quote(TOKEN, safe='')}&x=1"),
        ("X", f"token={TOKEN}"),
        ("X", f"delegation%3D{quote(TOKEN, safe='')}"),
        ("X", f"owner=a, the token {TOKEN} can't be found"),
        ("X", f"the token {quote(TOKEN)} can't be found"),
        (TOKEN, "a"),
    ],
)
def test_a_token_that_a_server_repeats_is_not_told(
    server: Server, store: WebHdfsLogStore, exception: str, message: str
) -> None:
    remote = {"RemoteException": {"exception": exception, "message": message}}
    server.answer = (403, JSON, json.dumps(remote).encode())
    with pytest.raises(DeltaError) as caught:
        store.head("x")
    told = f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"
    assert "s3cr3t" not in told
    assert "..." in told


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("webhdfs://169.254.169.254:80/latest", InvalidUriError),
        ("swebhdfs://169.254.169.254/latest", InvalidUriError),
        ("hdfs://169.254.169.254/x", InvalidUriError),
        ("hdfs://0.0.0.0/x", InvalidUriError),
    ],
)
def test_no_table_is_where_credentials_are(uri: str, kind: type[DeltaError]) -> None:
    with pytest.raises(kind, match="not the address of a service"):
        open_store(uri)


@pytest.mark.parametrize("endpoint", ["http://169.254.169.254", "http://nn:9870,http://[fe80::1]:9870"])
def test_no_name_node_is_where_credentials_are(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match="webhdfs_endpoint"):
        open_store("hdfs://a/x", storage_options={"webhdfs_endpoint": endpoint})
