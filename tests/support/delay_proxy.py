"""A proxy that delays each HTTP request and counts them: `python -m tests.support.delay_proxy HOST:PORT MS`.

It runs as a process of its own, so that it takes no time of the client's interpreter. It prints its port, and
for each line on standard input the number of requests so far. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator

from demo.processes import LOOPBACK
from tests.support.repository import ROOT

_REQUEST = re.compile(rb"(?m)^(GET|HEAD|PUT|POST|DELETE) [^\r\n]* HTTP/1\.1\r$")
_CHUNK = 1 << 16
_seen = 0


class DelayProxy:
    """A running proxy.

    Attributes:
        endpoint: its address.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.endpoint = f"http://{LOOPBACK}:{int(process.stdout.readline())}"

    def requests(self) -> int:
        """The number of requests so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def delay_proxy(upstream: str, *, milliseconds: float) -> Iterator[DelayProxy]:
    """A proxy in front of `http://host:port`, as long as the context lasts."""
    command = [sys.executable, "-m", __name__, upstream.removeprefix("http://"), str(milliseconds)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield DelayProxy(process)
        finally:
            process.kill()


async def _serve(host: str, port: int, seconds: float) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(host, port)
        there = asyncio.create_task(_pump(reader, upstream_writer, seconds=seconds))
        back = asyncio.create_task(_pump(upstream_reader, writer, seconds=0))
        await asyncio.wait([there, back])

    server = await asyncio.start_server(client, LOOPBACK, 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(_seen, flush=True)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, *, seconds: float) -> None:
    global _seen
    with contextlib.suppress(ConnectionError):
        while data := await source.read(_CHUNK):
            if seconds and (found := len(_REQUEST.findall(data))):
                _seen += found
                await asyncio.sleep(seconds)
            target.write(data)
            await target.drain()
    target.close()


if __name__ == "__main__":
    _host, _, _port = sys.argv[1].partition(":")
    asyncio.run(_serve(_host, int(_port), float(sys.argv[2]) / 1000))
