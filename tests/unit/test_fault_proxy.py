"""The fault proxy does to a request what its plan says, and nothing to any other."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from tests.support.fault_plan import (
    ALL_FAULTS,
    Fault,
    FaultKind,
    FaultPoint,
    FaultQueue,
    RandomFaults,
    RequestFilter,
)
from tests.support.fault_proxy import FaultProxy
from tests.support.waiting import PATIENCE_SECONDS, comes_true

PUTS = RequestFilter(methods=frozenset({"PUT"}))


@dataclass(slots=True)
class Origin:
    """A server that keeps what reaches it and numbers its answers."""

    endpoint: str = ""
    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


class _OriginHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _OriginServer

    def do_PUT(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        if "Transfer-Encoding" in self.headers:
            body = b""
            while line := self.rfile.readline().strip():
                body += self.rfile.read(int(line, 16))
                self.rfile.readline()
                if int(line, 16) == 0:
                    break
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = self.requestline.split()[1]
        self.server.origin.seen.append((self.command, target, dict(self.headers.items()), body))
        answer = f"answer {len(self.server.origin.seen)}".encode()
        self.send_response(200)
        self.send_header("X-Kept", "as it is")
        if target.startswith("/chunked"):
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(answer), answer))
            return
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def log_message(self, *words: object) -> None:
        """Nothing."""


class _OriginServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _OriginHandler)
        self.origin = Origin(endpoint=f"http://127.0.0.1:{self.server_address[1]}/base")


@pytest.fixture
def origin() -> Iterator[Origin]:
    with _OriginServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.origin
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(origin: Origin) -> Iterator[FaultProxy]:
    with FaultProxy(origin.endpoint, hang_seconds=20) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=PATIENCE_SECONDS)
    yield connection
    connection.close()


def _call(
    client: http.client.HTTPConnection, method: str = "PUT", target: str = "/a", body: bytes = b"text"
) -> tuple[int, bytes]:
    client.request(method, target, body=body)
    answer = client.getresponse()
    return answer.status, answer.read()


def test_a_request_passes_untouched(
    origin: Origin, proxy: FaultProxy, client: http.client.HTTPConnection
) -> None:
    body = bytes(range(256)) * 4096
    headers = {"Host": "bucket.example:99", "X-Sent": "b, a", "Content-Length": str(len(body))}
    client.request("PUT", "//twice/%2Fa%20b?x=1&y=%C3%A4", body=body, headers=headers)
    socket_used = client.sock
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b"answer 1")
    assert answer.getheader("X-Kept") == "as it is"
    ((method, target, seen, got),) = origin.seen
    assert (method, target, got) == ("PUT", "//twice/%2Fa%20b?x=1&y=%C3%A4", body)
    assert seen == {**headers, "Accept-Encoding": "identity"}
    (record,) = proxy.requests
    assert (record.method, record.path, record.fault) == (method, target, None)
    assert (record.sent, record.server_status, record.status) == (1, 200, 200)
    # The connection is kept, and what follows on it is a request of its own.
    assert _call(client, "GET", "/next", b"") == (200, b"answer 2")
    assert client.sock is socket_used


def test_the_endpoint_keeps_the_upstreams_path(origin: Origin, proxy: FaultProxy) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/base", proxy.endpoint)
    assert proxy.endpoint != origin.endpoint


def test_chunked_bodies_pass_both_ways(origin: Origin, client: http.client.HTTPConnection) -> None:
    pieces = [b"one ", b"two ", b"three" * 10_000]
    client.request("PUT", "/chunked", body=iter(pieces), encode_chunked=True)
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b"answer 1")
    assert origin.seen[0][3] == b"".join(pieces)
    assert origin.seen[0][2]["Transfer-Encoding"] == "chunked"
    assert _call(client, target="/after") == (200, b"answer 2")


def test_head_has_its_length_and_no_body(client: http.client.HTTPConnection) -> None:
    client.request("HEAD", "/a")
    answer = client.getresponse()
    assert answer.read() == b""
    assert answer.getheader("Content-Length") == str(len("answer 1"))
    assert _call(client) == (200, b"answer 2")


@pytest.mark.parametrize("kind", [FaultKind.ERROR_500, FaultKind.ERROR_503, FaultKind.CONFLICT_409])
@pytest.mark.parametrize("point", list(FaultPoint))
def test_an_error_replaces_the_answer(
    origin: Origin, proxy: FaultProxy, client: http.client.HTTPConnection, kind: FaultKind, point: FaultPoint
) -> None:
    fault = Fault(kind=kind, point=point)
    proxy.inject(FaultQueue([fault]))
    status, body = _call(client)
    assert status == int(kind)
    assert b"<Error><Code>" in body
    reached = point is FaultPoint.AFTER
    assert len(origin.seen) == int(reached)
    (record,) = proxy.requests
    assert (record.fault, record.sent, record.status) == (fault, int(reached), status)
    assert record.server_status == (200 if reached else None)
    assert _call(client)[0] == 200


@pytest.mark.parametrize("point", list(FaultPoint))
def test_a_drop_closes_the_connection(
    origin: Origin, proxy: FaultProxy, client: http.client.HTTPConnection, point: FaultPoint
) -> None:
    proxy.inject(FaultQueue([Fault(kind=FaultKind.DROP, point=point)]))
    with pytest.raises(ConnectionError):
        _call(client)
    assert len(origin.seen) == int(point is FaultPoint.AFTER)
    assert proxy.requests[0].status is None
    client.close()
    assert _call(client)[0] == 200


@pytest.mark.parametrize("point", list(FaultPoint))
def test_a_hang_outlasts_the_client(origin: Origin, proxy: FaultProxy, point: FaultPoint) -> None:
    proxy.inject(FaultQueue([Fault(kind=FaultKind.HANG, point=point)]))
    client = http.client.HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=0.3)
    with pytest.raises(TimeoutError):
        _call(client)
    client.close()
    reached = int(point is FaultPoint.AFTER)
    assert comes_true(lambda: len(origin.seen) == reached)
    client = http.client.HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=PATIENCE_SECONDS)
    assert _call(client)[0] == 200
    client.close()


def test_a_hang_is_bounded_and_ends_with_the_proxy(origin: Origin) -> None:
    for hang_seconds, in_context in ((0.2, True), (3600.0, False)):
        proxy = FaultProxy(origin.endpoint, hang_seconds=hang_seconds)
        client = http.client.HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=PATIENCE_SECONDS)
        with proxy:
            proxy.inject(FaultQueue([Fault(kind=FaultKind.HANG)]))
            client.request("PUT", "/a", body=b"")
            if in_context:
                with pytest.raises(ConnectionError):
                    client.getresponse()
        if not in_context:
            with pytest.raises(ConnectionError):
                client.getresponse()
        client.close()


@pytest.mark.parametrize("point", list(FaultPoint))
def test_a_duplicate_is_sent_twice_and_answered_second(
    origin: Origin, proxy: FaultProxy, client: http.client.HTTPConnection, point: FaultPoint
) -> None:
    proxy.inject(FaultQueue([Fault(kind=FaultKind.DUPLICATE, point=point)]))
    assert _call(client) == (200, b"answer 2")
    assert origin.seen[0] == origin.seen[1]
    assert proxy.requests[0].sent == 2


def test_a_queue_is_used_up_in_order_by_the_chosen_requests(
    proxy: FaultProxy, client: http.client.HTTPConnection
) -> None:
    queue = FaultQueue([Fault(kind=FaultKind.ERROR_503), None, Fault(kind=FaultKind.CONFLICT_409)])
    proxy.inject(queue, matching=RequestFilter(methods=frozenset({"PUT"}), path=r"_delta_log/\d{20}\.json$"))
    commit = f"/t/_delta_log/{7:020d}.json"
    assert _call(client, "GET", commit)[0] == 200
    assert _call(client, "PUT", "/t/part.parquet")[0] == 200
    assert queue.left == 3
    assert [_call(client, "PUT", commit)[0] for _ in range(4)] == [503, 200, 409, 200]
    assert queue.left == 0


def test_a_seed_repeats_its_faults_in_any_order_of_requests() -> None:
    targets = [f"/t/{number}" for number in range(200)]

    def drawn(seed: str, order: list[str], rate: float = 0.3) -> dict[str, list[Fault | None]]:
        plan = RandomFaults(seed=seed, rate=rate)
        found: dict[str, list[Fault | None]] = {}
        for target in order:
            found.setdefault(target, []).append(plan.next_fault("PUT", target))
        return found

    once = drawn("a", targets * 3)
    assert drawn("a", targets[::-1] * 3) == once
    assert drawn("b", targets * 3) != once
    met = [fault for faults in once.values() for fault in faults if fault is not None]
    assert 120 < len(met) < 240
    assert set(met) == set(ALL_FAULTS)
    assert not any(fault for faults in drawn("a", targets, rate=0.0).values() for fault in faults)
    assert all(fault for faults in drawn("a", targets, rate=1.0).values() for fault in faults)


def test_many_clients_at_once_each_get_their_own_answer(origin: Origin, proxy: FaultProxy) -> None:
    proxy.inject(RandomFaults(seed="many", rate=0.5, faults=[Fault(kind=FaultKind.ERROR_503)]), matching=PUTS)
    statuses: list[int] = []

    def work(number: int) -> None:
        client = http.client.HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=PATIENCE_SECONDS)
        for turn in range(10):
            statuses.append(_call(client, target=f"/{number}/{turn}")[0])
        client.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == len(proxy.requests) == len(origin.seen) == 80
    assert 10 < statuses.count(503) < 70
    assert statuses.count(503) == sum(1 for one in proxy.requests if one.fault)


def test_an_upstream_that_is_not_there_is_told_from_a_fault() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with FaultProxy(f"http://127.0.0.1:{port}") as proxy:
        client = http.client.HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=PATIENCE_SECONDS)
        assert _call(client)[0] == 502
        assert proxy.requests[0].fault is None
        client.close()
