"""HDFS in memory behind a WebHDFS server, with faults: enough of it for the store, and as Hadoop 3.4 answers.

One server plays the NameNode and, below `/data-node`, the DataNode. Several may share one `FakeHdfs`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

WRITE_TIME_MS = 1_700_000_000_000
_PREFIX = "/webhdfs/v1"
_DATA_NODE = "/data-node"


class HdfsError(Exception):
    """An answer that is an exception of Java's."""

    def __init__(self, status: int, name: str, message: str = "told by the fake") -> None:
        super().__init__(message)
        self.status, self.name = status, name


class FakeHdfs:
    """Files and directories, and what goes wrong.

    Attributes:
        faults: (operation, fault) pairs, each used up by the next such request. Faults: `lost` (the
            connection ends, nothing is done), `landed` (it is done, then the connection ends), `late` (the
            connection ends and it is done after the next request), `doubled` (done twice, answered as the
            second time), `unframed` (answered whole, without a length: the connection's end is the answer's),
            `cut` (as that, and only half of it), a number (that status, nothing is done,
            no JSON), or the name of an exception (answered as 403).
        requests: what was asked, in order: operation and path; a DataNode's begin with `data:`.
        queries: the query of each request.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.files: dict[str, bytes] = {}
        self.directories: set[str] = {""}
        self.faults: list[tuple[str, str]] = []
        self.late: list[Callable[[], object]] = []
        self.requests: list[tuple[str, str]] = []
        self.queries: list[dict[str, str]] = []
        self.page_entries = 1000
        self.knows_pages = True
        self.knows_rename_options = True

    def fault(self, operation: str) -> str:
        with self.lock:
            for index, (named, fault) in enumerate(self.faults):
                if named == operation:
                    del self.faults[index]
                    return fault
        return ""

    def perform(self, operation: str, path: str, query: dict[str, str]) -> Any:
        with self.lock:
            return getattr(self, f"_{operation.lower()}")(path, query)

    def store(self, path: str, body: bytes) -> None:
        with self.lock:
            self._mkdirs(path.rpartition("/")[0], {})
            if path in self.directories or path in self.files:
                raise HdfsError(403, "FileAlreadyExistsException")
            self.files[path] = body

    def content(self, path: str) -> bytes:
        with self.lock:
            if self._status(path)["type"] != "FILE":
                raise HdfsError(404, "FileNotFoundException", f"Path is not a file: {path}")
            return self.files[path]

    def temporary_files(self) -> list[str]:
        return [path for path in self.files if "/.tmp-" in path]

    def _mkdirs(self, path: str, query: dict[str, str]) -> Any:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            ancestor = "/".join(parts[:end])
            if ancestor in self.files:
                raise HdfsError(403, "ParentNotDirectoryException", f"{ancestor} (is not a directory)")
            self.directories.add(ancestor)
        return {"boolean": True}

    def _status(self, path: str, name: str = "") -> dict[str, Any]:
        if path in self.files:
            kind, length = "FILE", len(self.files[path])
        elif path in self.directories:
            kind, length = "DIRECTORY", 0
        elif any(path.startswith(f"{file}/") for file in self.files):
            raise HdfsError(403, "AccessControlException", "(is not a directory)")
        else:
            raise HdfsError(404, "FileNotFoundException", f"File does not exist: {path}")
        return {"pathSuffix": name, "type": kind, "length": length, "modificationTime": WRITE_TIME_MS}

    def _getfilestatus(self, path: str, query: dict[str, str]) -> Any:
        return {"FileStatus": self._status(path)}

    def _children(self, path: str) -> list[dict[str, Any]]:
        if path in self.files:
            return [self._status(path)]
        self._status(path)
        inside = [name for name in (*self.files, *self.directories) if name.rpartition("/")[0] == path]
        return [self._status(full, full.rpartition("/")[2]) for full in sorted(inside) if full != path]

    def _liststatus(self, path: str, query: dict[str, str]) -> Any:
        return {"FileStatuses": {"FileStatus": self._children(path)}}

    def _liststatus_batch(self, path: str, query: dict[str, str]) -> Any:
        if not self.knows_pages:
            raise HdfsError(400, "IllegalArgumentException", "not a valid GET operation")
        after = query.get("startAfter", "")
        left = [
            entry for entry in self._children(path) if not entry["pathSuffix"] or entry["pathSuffix"] > after
        ]
        page, rest = left[: self.page_entries], left[self.page_entries :]
        listed = {"FileStatuses": {"FileStatus": page}}
        return {"DirectoryListing": {"partialListing": listed, "remainingEntries": len(rest)}}

    def _rename(self, path: str, query: dict[str, str]) -> Any:
        target = query["destination"]
        if not self.knows_rename_options:
            if path not in self.files or target in self.files:
                return {"boolean": False}
        elif path not in self.files:
            raise HdfsError(404, "FileNotFoundException", f"rename source {path} is not found.")
        elif target in self.directories:
            raise HdfsError(403, "IOException", "Source and destination must both be directories")
        elif target in self.files and query["renameoptions"] != "OVERWRITE":
            raise HdfsError(403, "FileAlreadyExistsException", f"rename destination {target} already exists")
        self.files[target] = self.files.pop(path)
        return None if self.knows_rename_options else {"boolean": True}

    def _delete(self, path: str, query: dict[str, str]) -> Any:
        if path in self.directories and self._children(path):
            raise HdfsError(403, "PathIsNotEmptyDirectoryException")
        if path.rpartition("/")[0] in self.files:
            raise HdfsError(403, "AccessControlException", "(is not a directory)")
        found = self.files.pop(path, None) is not None or path in self.directories
        self.directories.discard(path)
        return {"boolean": found}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: FakeNode

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hdfs, operation = self.server.hdfs, query.get("op", "")
        to_data_node = url.path.startswith(_DATA_NODE)
        path = unquote(url.path.removeprefix(_DATA_NODE).removeprefix(_PREFIX)).rstrip("/")
        asked = f"data:{operation}" if to_data_node else operation
        if not to_data_node and self.server.standby:
            self._refuse(HdfsError(403, "StandbyException"))
            return
        with hdfs.lock:
            hdfs.requests.append((asked, path))
            hdfs.queries.append(query)
        fault = hdfs.fault(asked)
        late, hdfs.late = hdfs.late, []
        if fault == "late":
            hdfs.late.append(lambda: hdfs.perform(operation, path, query))
        if fault in ("lost", "late"):
            self.close_connection = True
            return
        try:
            if fault.isdigit():
                self._answer(int(fault), b"<html>no WebHDFS</html>")
            elif fault and fault not in ("landed", "doubled", "unframed", "cut"):
                raise HdfsError(403, fault)
            else:
                if fault == "doubled":
                    self._done(asked, path, query, body)
                status, content = self._done(asked, path, query, body)
                if fault == "landed":
                    self.close_connection = True
                elif fault in ("unframed", "cut"):
                    self._answer(
                        status, content[: len(content) // 2] if fault == "cut" else content, ends=False
                    )
                else:
                    self._answer(status, content)
        except HdfsError as error:
            self._refuse(error)
        for act in late:
            try:
                act()
            except HdfsError:
                continue

    do_PUT = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

    def _done(self, asked: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, bytes]:
        hdfs = self.server.hdfs
        if asked == "CREATE":
            assert not body, "bytes are sent to the DataNode only"
            return 307, b""
        if asked == "OPEN":
            hdfs.content(path)
            return 307, b""
        if asked == "data:CREATE":
            hdfs.store(path, body)
            return 201, b""
        if asked == "data:OPEN":
            offset = int(query.get("offset", 0))
            return 200, hdfs.content(path)[offset:][: int(query.get("length", 1 << 60))]
        found = hdfs.perform(asked, path, query)
        return 200, b"" if found is None else json.dumps(found).encode()

    def _answer(self, status: int, content: bytes, *, ends: bool = True) -> None:
        self.send_response(status)
        if status == 307:
            url = urlsplit(self.path)
            path = quote(unquote(url.path))
            self.send_header(
                "Location", self.server.location or f"{self.server.url}{_DATA_NODE}{path}?{url.query}"
            )
        kind = (
            "application/octet-stream"
            if self.path.startswith(_DATA_NODE) and status == 200
            else "application/json"
        )
        self.send_header("Content-Type", "text/html" if content.startswith(b"<html") else kind)
        self.send_header("Set-Cookie", "hadoop.auth=secret; Path=/")
        if ends:
            self.send_header("Content-Length", str(len(content)))
        else:
            self.send_header("Connection", "close")  # and http.server then closes it
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, error: HdfsError) -> None:
        told = {"exception": error.name, "javaClassName": f"x.{error.name}", "message": f"{error}\n\tat x.Y"}
        self._answer(error.status, json.dumps({"RemoteException": told}).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


class FakeNode(ThreadingHTTPServer):
    """A server on a loopback port; a context manager that runs it.

    Attributes:
        standby: answers every request to the NameNode with StandbyException.
        location: sent in redirects instead of this server's own address.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, hdfs: FakeHdfs, *, standby: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hdfs = hdfs
        self.standby = standby
        self.location = ""
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> FakeNode:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
