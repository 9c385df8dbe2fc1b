"""A broker of one process that speaks as much of Kafka's protocol as a consumer of assigned partitions needs.

Answers ApiVersions (0), Metadata (up to 5), ListOffsets (up to 2) and Fetch (4), in the encodings of Kafka's
protocol guide. Topics have one partition and are kept in memory. Nothing is produced over the network.
"""

from __future__ import annotations

import socketserver
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

_LOOPBACK = "127.0.0.1"
_FETCH, _LIST_OFFSETS, _METADATA, _API_VERSIONS = 1, 2, 3, 18
_VERSIONS = {_FETCH: (4, 4), _LIST_OFFSETS: (1, 2), _METADATA: (0, 5), _API_VERSIONS: (0, 0)}
_UNSUPPORTED_VERSION, _UNKNOWN_TOPIC = 35, 3
_EARLIEST = -2


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a topic."""

    key: bytes | None
    value: bytes
    timestamp_ms: int


@dataclass(slots=True)
class _Reader:
    """The fields of a request, one after the other."""

    data: bytes
    at: int = 0

    def number(self, code: str) -> int:
        (value,) = struct.unpack_from(f">{code}", self.data, self.at)
        self.at += struct.calcsize(code)
        return int(value)

    def string(self) -> str | None:
        size = self.number("h")
        if size < 0:
            return None
        found = self.data[self.at : self.at + size].decode()
        self.at += size
        return found

    def array(self) -> range:
        return range(max(0, self.number("i")))


def _string(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(value.encode())) + value.encode()


def _array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


@dataclass(slots=True)
class KafkaBroker:
    """A broker on a free loopback port, as long as the context lasts."""

    _topics: dict[str, list[Message]] = field(default_factory=dict)
    _lock: threading.Condition = field(default_factory=threading.Condition)
    _server: socketserver.ThreadingTCPServer | None = None

    def __enter__(self) -> Self:
        broker = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                broker._serve(self.request.recv, self.request.sendall)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server((_LOOPBACK, 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """The value of `kafka.bootstrap.servers`."""
        assert self._server is not None
        return f"{_LOOPBACK}:{self._server.server_address[1]}"

    def produce(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        """Append messages to a topic, which is created if it does not exist."""
        with self._lock:
            now_ms = int(time.time() * 1000)
            self._topics.setdefault(topic, []).extend(Message(key, value, now_ms) for value in values)
            self._lock.notify_all()

    def _serve(self, receive: Callable[[int], bytes], send: Callable[[bytes], None]) -> None:
        def exactly(size: int) -> bytes:
            parts = b""
            while len(parts) < size:
                more = receive(size - len(parts))
                if not more:
                    raise ConnectionError
                parts += more
            return parts

        try:
            while True:
                request = _Reader(exactly(struct.unpack(">i", exactly(4))[0]))
                answer = self._answer(request)
                send(struct.pack(">i", len(answer)) + answer)
        except ConnectionError:
            return

    def _answer(self, request: _Reader) -> bytes:
        api, version, correlation = request.number("h"), request.number("h"), request.number("i")
        request.string()  # the client's name
        head = struct.pack(">i", correlation)
        low, high = _VERSIONS.get(api, (0, -1))
        if api == _API_VERSIONS:
            error = 0 if low <= version <= high else _UNSUPPORTED_VERSION
            listed = [struct.pack(">hhh", key, *span) for key, span in sorted(_VERSIONS.items())]
            return head + struct.pack(">h", error) + _array(listed)
        if not low <= version <= high:
            raise ConnectionError
        if api == _METADATA:
            return head + self._metadata(request, version)
        if api == _LIST_OFFSETS:
            return head + self._offsets(request, version)
        return head + self._fetched(request)

    def _metadata(self, request: _Reader, version: int) -> bytes:
        count = request.number("i")
        named = [request.string() or "" for _ in range(max(0, count))]
        with self._lock:
            known = dict(self._topics)
        names = list(known) if count < 0 or (count == 0 and version == 0) else named
        host, port = self.address.split(":")
        broker = struct.pack(">i", 0) + _string(host) + struct.pack(">i", int(port))
        topics = []
        for name in names:
            partition = struct.pack(">hii", 0, 0, 0) + _array([struct.pack(">i", 0)]) * 2
            partition += _array([]) if version >= 5 else b""
            topic = struct.pack(">h", 0 if name in known else _UNKNOWN_TOPIC) + _string(name)
            topic += b"\0" if version >= 1 else b""
            topics.append(topic + _array([partition] if name in known else []))
        answer = struct.pack(">i", 0) if version >= 3 else b""
        answer += _array([broker + (_string(None) if version >= 1 else b"")])
        answer += _string("deltaward") if version >= 2 else b""
        answer += struct.pack(">i", 0) if version >= 1 else b""
        return answer + _array(topics)

    def _offsets(self, request: _Reader, version: int) -> bytes:
        request.number("i")  # the replica
        if version >= 2:
            request.number("b")  # the isolation level
        topics = []
        for _ in request.array():
            name = request.string() or ""
            partitions = []
            for _ in request.array():
                index, wanted = request.number("i"), request.number("q")
                with self._lock:
                    messages = list(self._topics.get(name, ()))
                offset = len(messages)
                if wanted == _EARLIEST:
                    offset = 0
                elif wanted >= 0:
                    offset = next((i for i, one in enumerate(messages) if one.timestamp_ms >= wanted), -1)
                partitions.append(struct.pack(">ihqq", index, 0, -1, offset))
            topics.append(_string(name) + _array(partitions))
        return (struct.pack(">i", 0) if version >= 2 else b"") + _array(topics)

    def _fetched(self, request: _Reader) -> bytes:
        request.number("i")  # the replica
        wait_ms = request.number("i")
        for code in ("i", "i", "b"):  # least and most bytes, the isolation level
            request.number(code)
        wanted = []
        for _ in request.array():
            name = request.string() or ""
            for _ in request.array():
                index, offset, _ = request.number("i"), request.number("q"), request.number("i")
                wanted.append((name, index, offset))
        with self._lock:
            self._lock.wait_for(
                lambda: any(offset < len(self._topics.get(name, ())) for name, _, offset in wanted),
                timeout=wait_ms / 1000,
            )
            found = [
                (name, index, offset, list(self._topics.get(name, ()))) for name, index, offset in wanted
            ]
        topics = []
        for name, index, offset, messages in found:
            records = record_batch(offset, messages[offset : offset + 500])
            partition = struct.pack(">ihqq", index, 0, len(messages), len(messages)) + _array([])
            partition += struct.pack(">i", len(records)) + records
            topics.append(_string(name) + _array([partition]))
        return struct.pack(">i", 0) + _array(topics)


def record_batch(first: int, messages: Sequence[Message]) -> bytes:
    """Messages in the format of a log, version 2; empty without any."""
    if not messages:
        return b""
    start_ms = messages[0].timestamp_ms
    records = b""
    for place, message in enumerate(messages):
        body = b"\0" + _varint(message.timestamp_ms - start_ms) + _varint(place)
        for part in (message.key, message.value):
            body += _varint(-1) if part is None else _varint(len(part)) + part
        body += _varint(0)  # no headers
        records += _varint(len(body)) + body
    last = len(messages) - 1
    after_crc = struct.pack(">hiqqqhii", 0, last, start_ms, messages[-1].timestamp_ms, -1, -1, -1, last + 1)
    after_crc += records
    after_length = struct.pack(">ibI", 0, 2, crc32c(after_crc)) + after_crc
    return struct.pack(">qi", first, len(after_length)) + after_length


def crc32c(data: bytes) -> int:
    """The checksum of Castagnoli."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _CRC[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _crc_of(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC = [_crc_of(byte) for byte in range(256)]


def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    found = b""
    while zigzag > 0x7F:
        found += bytes([zigzag & 0x7F | 0x80])
        zigzag >>= 7
    return found + bytes([zigzag])
