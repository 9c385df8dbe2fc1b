"""A reverse proxy that loses, refuses, delays and doubles HTTP requests on the way to a server.

What decides a commit is the request whose answer never came: `Fault(kind=DROP, point=AFTER)` lets the server
carry it out and closes the connection. Method, target, headers and body reach the server as they were sent
(the Host header too, so that signatures hold).
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit
from xml.sax.saxutils import escape

from tests.support.fault_plan import Fault, FaultKind, FaultPlan, FaultPoint, FaultQueue, RequestFilter

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.05
_UPSTREAM_SECONDS = 60.0
_ERROR_CODES = {409: "ConditionalRequestConflict", 500: "InternalError", 502: "BadGateway", 503: "SlowDown"}
_NO_BODY = (204, 304)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedRequest:
    """What became of a request: how often it was sent on, what the server said last, what the client got.

    A status is None where there was none: the request never reached the server, or nothing was answered.
    """

    method: str
    path: str
    fault: Fault | None
    sent: int
    server_status: int | None
    status: int | None


class FaultProxy:
    """A proxy on a free loopback port in front of `upstream`, as long as the context lasts.

    `hang_seconds` bounds a hang; leaving the context ends it too.
    """

    def __init__(self, upstream: str, *, hang_seconds: float = 30.0) -> None:
        self._url = urlsplit(upstream)
        self._hang_seconds = hang_seconds
        self._plan: FaultPlan = FaultQueue(())
        self._matching = RequestFilter()
        self._requests: list[ProxiedRequest] = []
        self._failures: list[BaseException] = []
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True)

    @property
    def endpoint(self) -> str:
        """The upstream's address with the proxy's host and port."""
        port = self._server.server_address[1]
        return urlunsplit(self._url._replace(netloc=f"{_LOOPBACK}:{port}"))

    @property
    def upstream(self) -> tuple[str, int]:
        """The server's host and port."""
        return self._url.hostname or _LOOPBACK, self._url.port or 80

    @property
    def requests(self) -> tuple[ProxiedRequest, ...]:
        """What has come so far, in the order in which the fates were settled."""
        with self._lock:
            return tuple(self._requests)

    def inject(self, plan: FaultPlan, *, matching: RequestFilter | None = None) -> None:
        """From here on this plan decides about the requests that the filter chooses, and no other plan."""
        with self._lock:
            self._plan, self._matching = plan, matching or RequestFilter()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._failures and error is None:
            raise RuntimeError("the proxy itself failed") from self._failures[0]

    def _settle(self, method: str, target: str) -> Fault | None:
        with self._lock:
            plan, matching = self._plan, self._matching
        return plan.next_fault(method, target) if matching.matches(method, target) else None

    def _record(self, request: ProxiedRequest) -> None:
        with self._lock:
            self._requests.append(request)

    def _note_failure(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, ConnectionError):
            self._failures.append(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    """One request after another of one client's connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        # The parsed path has lost a doubled slash at its start; what the client signed has not.
        target = self.requestline.split()[1]
        body = self._body()
        proxy = self.server.proxy
        fault = proxy._settle(self.command, target)
        sent, answer = 0, None
        if fault is None or fault.kind is FaultKind.DUPLICATE or fault.point is FaultPoint.AFTER:
            sent = 2 if fault is not None and fault.kind is FaultKind.DUPLICATE else 1
            answers = [self._forward(target, body) for _ in range(sent)]
            answer = answers[-1]
        given = self._disturbed(fault, answer)
        record = ProxiedRequest(
            method=self.command,
            path=target,
            fault=fault,
            sent=sent,
            server_status=answer.status if answer else None,
            status=given.status if given else None,
        )
        # Before the client has its answer: it may look at the records at once.
        proxy._record(record)
        if fault is not None and fault.kind is FaultKind.HANG:
            proxy._stopped.wait(proxy._hang_seconds)
        if given is None:
            self.close_connection = True
        else:
            self._reply(given)

    def _body(self) -> bytes:
        """The request's body with its framing: chunks stay the chunks that they are."""
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        size = None
        while size != 0:
            line = self.rfile.readline()
            size = int(line.partition(b";")[0], 16)
            parts += [line, self.rfile.read(size + 2) if size else b""]
        while parts[-1] != b"\r\n":  # trailers, up to the empty line
            parts.append(self.rfile.readline())
        return b"".join(parts)

    def _forward(self, target: str, body: bytes) -> _Answer:
        """Send the request on and read the answer; 502 when there is none.

        Each has a connection of its own: one that the server had closed would look like a lost answer.
        """
        lines = [
            f"{self.command} {target} HTTP/1.1",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        proxy = self.server.proxy
        try:
            with socket.create_connection(proxy.upstream, timeout=_UPSTREAM_SECONDS) as upstream:
                upstream.sendall(head + body)
                with contextlib.closing(http.client.HTTPResponse(upstream, method=self.command)) as response:
                    response.begin()
                    return _Answer(
                        status=response.status,
                        reason=response.reason,
                        headers=tuple(response.getheaders()),
                        body=response.read(),
                    )
        except (OSError, http.client.HTTPException) as error:
            return _error(502, str(error))

    def _disturbed(self, fault: Fault | None, answer: _Answer | None) -> _Answer | None:
        """What the client is answered; None closes its connection."""
        if fault is None or fault.kind is FaultKind.DUPLICATE:
            return answer
        if fault.kind in (FaultKind.DROP, FaultKind.HANG):
            return None
        return _error(int(fault.kind), f"injected {fault.point} the server")

    def _reply(self, answer: _Answer) -> None:
        # Of the answer's own framing only the length of a body that HEAD leaves out is kept.
        dropped = {"connection", "keep-alive", "transfer-encoding"}
        bodiless = self.command == "HEAD" or answer.status in _NO_BODY
        if not bodiless:
            dropped.add("content-length")
        headers = [(name, value) for name, value in answer.headers if name.lower() not in dropped]
        if not bodiless:
            headers.append(("Content-Length", str(len(answer.body))))
        if self.close_connection:
            headers.append(("Connection", "close"))
        lines = [
            f"HTTP/1.1 {answer.status} {answer.reason}",
            *(f"{name}: {value}" for name, value in headers),
        ]
        body = b"" if bodiless else answer.body
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = False

    def __init__(self, proxy: FaultProxy) -> None:
        super().__init__((_LOOPBACK, 0), _Handler)
        self.proxy = proxy
        self._clients: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._clients.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._clients.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone away is what a fault is for; whatever else goes wrong is kept."""
        self.proxy._note_failure(sys.exc_info()[1])

    def server_close(self) -> None:
        # Idle connections would be waited for until their clients close them.
        with self._lock:
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
        super().server_close()


def _error(status: int, message: str) -> _Answer:
    """An error as an object store words it: clients read the code."""
    body = f"<Error><Code>{_ERROR_CODES[status]}</Code><Message>{escape(message)}</Message></Error>"
    return _Answer(
        status=status,
        reason=http.client.responses[status],
        headers=(("Content-Type", "application/xml"),),
        body=body.encode(),
    )
