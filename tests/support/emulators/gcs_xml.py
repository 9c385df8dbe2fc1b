"""The XML interface of Google Cloud Storage in front of a server that has the JSON interface alone.

Object clients in Rust speak XML: `PUT /bucket/object` with `x-goog-if-generation-match`, reads, deletes and
listings. Each becomes the JSON request of the same meaning, and nothing is decided here: preconditions are
checked by the server, under its own lock.
"""

from __future__ import annotations

import email.utils
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from tests.support.emulators.process import LOOPBACK

_PRECONDITION = "x-goog-if-generation-match"
_READ_CONDITIONS = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Range")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What either side is answered."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.body)
        return answer


class JsonInterface:
    """The requests to the server behind, a connection each."""

    def __init__(self, port: int) -> None:
        self._port = port

    def put(self, bucket: str, name: str, body: bytes, *, kind: str, generation: str | None) -> Answer:
        query = {"uploadType": "media", "name": name}
        if generation is not None:
            query["ifGenerationMatch"] = generation
        path = f"/upload/storage/v1/b/{quote(bucket)}/o?{urlencode(query)}"
        return self._send("POST", path, body=body, headers={"Content-Type": kind})

    def metadata(self, bucket: str, name: str, generation: str | None) -> Answer:
        query = "" if generation is None else f"?generation={quote(generation)}"
        return self._send("GET", self._object(bucket, name) + query)

    def content(self, bucket: str, name: str, generation: str, headers: Mapping[str, str]) -> Answer:
        path = f"{self._object(bucket, name)}?alt=media&generation={quote(generation)}"
        return self._send("GET", path, headers=headers)

    def delete(self, bucket: str, name: str, generation: str | None) -> Answer:
        query = "" if generation is None else f"?ifGenerationMatch={quote(generation)}"
        return self._send("DELETE", self._object(bucket, name) + query)

    def listing(self, bucket: str, query: Mapping[str, str]) -> Answer:
        return self._send("GET", f"/storage/v1/b/{quote(bucket)}/o?{urlencode(query)}")

    def _object(self, bucket: str, name: str) -> str:
        return f"/storage/v1/b/{quote(bucket)}/o/{quote(name, safe='')}"

    def _send(
        self, method: str, path: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=600)
        try:
            connection.request(method, path, body=body, headers=dict(headers or {}))
            answer = connection.getresponse()
            return Answer(status=answer.status, body=answer.read(), headers=dict(answer.getheaders()))
        finally:
            connection.close()


class _Handler(BaseHTTPRequestHandler):
    """One XML request after another of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.query or "x-goog-copy-source" in self.headers or "Transfer-Encoding" in self.headers:
            # Multipart uploads and copies: on this server neither would check its precondition.
            self.close_connection = True
            return self._answer(Answer(status=501, body=_error("NotImplemented", self.path)))
        answer = self.server.objects.put(
            self.bucket,
            self.name,
            body,
            kind=self.headers.get("Content-Type", "application/octet-stream"),
            generation=self.headers.get(_PRECONDITION),
        )
        if answer.status != 200:
            return self._answer(_refused(answer, self.path))
        return self._answer(Answer(status=200, headers=_object_headers(answer.json())))

    def do_GET(self) -> None:
        if not self.name:
            return self._answer(self._list())
        found = self.server.objects.metadata(self.bucket, self.name, self.query.get("generation"))
        if found.status != 200:
            return self._answer(_refused(found, self.path))
        described = found.json()
        if self.command == "HEAD":
            headers = {**_object_headers(described), "Content-Length": described["size"]}
            return self._answer(Answer(status=200, headers=headers))
        wanted = {name: self.headers[name] for name in _READ_CONDITIONS if name in self.headers}
        # The content of the generation just described, though another writer may have put a later one.
        read = self.server.objects.content(self.bucket, self.name, described["generation"], wanted)
        headers = _object_headers(described)
        if "Content-Range" in read.headers:
            headers["Content-Range"] = read.headers["Content-Range"]
        body = read.body if read.status < 400 else _error(http.client.responses[read.status], self.path)
        return self._answer(Answer(status=read.status, body=body, headers=headers))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        answer = self.server.objects.delete(self.bucket, self.name, self.headers.get(_PRECONDITION))
        self._answer(Answer(status=204) if answer.status < 300 else _refused(answer, self.path))

    def do_POST(self) -> None:
        self.close_connection = True
        self._answer(Answer(status=501, body=_error("NotImplemented", self.path)))

    @property
    def bucket(self) -> str:
        return unquote(urlsplit(self.path).path.lstrip("/").partition("/")[0])

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.path).path.lstrip("/").partition("/")[2])

    @property
    def query(self) -> dict[str, str]:
        given = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[-1] for name, values in given.items()}

    def _list(self) -> Answer:
        asked = self.query
        names = {
            "prefix": "prefix",
            "delimiter": "delimiter",
            "max-keys": "maxResults",
            "continuation-token": "pageToken",
        }
        query = {json_name: asked[name] for name, json_name in names.items() if asked.get(name)}
        after = asked.get("start-after")
        if after:
            query["startOffset"] = after
        answer = self.server.objects.listing(self.bucket, query)
        if answer.status != 200:
            return _refused(answer, self.path)
        page = answer.json()
        # XML starts after the name, JSON with it.
        items = [item for item in page.get("items", []) if item["name"] != after]
        token = page.get("nextPageToken")
        parts = [
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>',
            f"<IsTruncated>{str(bool(token)).lower()}</IsTruncated>",
            f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else "",
            *(_listed(item) for item in items),
            *(
                f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
                for folder in page.get("prefixes", [])
            ),
            "</ListBucketResult>",
        ]
        return Answer(status=200, body="".join(parts).encode(), headers={"Content-Type": "application/xml"})

    def _answer(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = dict(answer.headers)
        if answer.status != 204:
            headers.setdefault("Content-Length", str(len(answer.body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *words: object) -> None:
        """Nothing: the server behind has a log."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, objects: JsonInterface) -> None:
        super().__init__((LOOPBACK, 0), _Handler)
        self.objects = objects


class XmlDoor:
    """The XML interface on a free loopback port, as long as the context lasts."""

    def __init__(self, *, upstream_port: int) -> None:
        self._server = _Server(JsonInterface(upstream_port))
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _object_headers(described: Mapping[str, Any]) -> dict[str, str]:
    moment = datetime.fromisoformat(described["updated"])
    return {
        "ETag": f'"{described["etag"].strip(chr(34))}"',
        "Last-Modified": email.utils.format_datetime(moment, usegmt=True),
        "x-goog-generation": str(described["generation"]),
        "Content-Type": described.get("contentType", "application/octet-stream"),
    }


def _listed(item: Mapping[str, Any]) -> str:
    fields = {
        "Key": item["name"],
        "LastModified": item["updated"],
        "ETag": f'"{item["etag"].strip(chr(34))}"',
        "Generation": str(item["generation"]),
        "Size": str(item["size"]),
    }
    return f"<Contents>{''.join(f'<{tag}>{escape(text)}</{tag}>' for tag, text in fields.items())}</Contents>"


def _refused(answer: Answer, path: str) -> Answer:
    code = {404: "NoSuchKey", 412: "PreconditionFailed"}.get(answer.status, "InternalError")
    return Answer(status=answer.status, body=_error(code, path), headers={"Content-Type": "application/xml"})


def _error(code: str, path: str) -> bytes:
    return f"<Error><Code>{escape(code)}</Code><Message>{escape(path)}</Message></Error>".encode()
