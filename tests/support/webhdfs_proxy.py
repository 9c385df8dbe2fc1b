"""Stands before a real NameNode and loses what it is told to lose."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class NameNodeProxy(ThreadingHTTPServer):
    """Passes requests on to a NameNode; a context manager that runs it. Bytes go to DataNodes past it.

    Attributes:
        fault: for each request's operation: `""`, `lost` (not passed on), `landed` (passed on, the answer is
            lost), or `late` (as `lost`, but passed on by `release`).
        answers: status and body of what `release` passed on.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = urlsplit(endpoint).netloc
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.fault: Callable[[str], str] = lambda operation: ""
        self.answers: list[tuple[int, bytes]] = []
        self._held: list[tuple[str, str]] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    def once(self, operation: str, fault: str) -> None:
        """The next request of an operation meets a fault; all is well afterwards."""
        left = [operation]
        lock = threading.Lock()

        def pick(asked: str) -> str:
            with lock:
                if asked not in left:
                    return ""
                left.remove(asked)
                return fault

        self.fault = pick

    def hold(self, method: str, target: str) -> None:
        self._held.append((method, target))

    def release(self) -> None:
        """Pass on what came and was held back."""
        for method, target in self._held:
            status, _, body = self.send(method, target)
            self.answers.append((status, body))
        self._held.clear()

    def send(self, method: str, target: str) -> tuple[int, str | None, bytes]:
        connection = http.client.HTTPConnection(self.behind, timeout=600)
        try:
            connection.request(method, target)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Location"), answer.read()
        finally:
            connection.close()

    def __enter__(self) -> NameNodeProxy:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: NameNodeProxy

    def do_GET(self) -> None:
        fault = self.server.fault(parse_qs(urlsplit(self.path).query)["op"][0])
        if fault == "late":
            self.server.hold(self.command, self.path)
        status, location, body = (0, None, b"")
        if fault not in ("lost", "late"):
            status, location, body = self.server.send(self.command, self.path)
        if fault:
            self.close_connection = True
            return
        self.send_response(status)
        if location is not None:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""
