"""Versity's S3 gateway over a folder: it honours `If-None-Match: *` on PUT, also under a race."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

from tests.support.emulators.installation import program
from tests.support.emulators.process import LOOPBACK, running, speaks_http
from tests.support.emulators.s3 import S3Server

NAME = "versitygw"


@contextlib.contextmanager
def versitygw(folder: Path) -> Iterator[S3Server]:
    """A gateway whose buckets are folders of `folder/buckets`; the file system needs extended attributes.

    It refuses conditional writes when started with `--disable-object-lock-file`.
    """
    buckets = folder / "buckets"
    buckets.mkdir(parents=True, exist_ok=True)
    keys = {"ROOT_ACCESS_KEY": f"key-{secrets.token_hex(8)}", "ROOT_SECRET_KEY": secrets.token_hex(20)}

    def command(port: int) -> list[str]:
        address = ["--port", f"{LOOPBACK}:{port}", "--region", "us-east-1", "--quiet"]
        return [str(program(NAME)), *address, "posix", str(buckets)]

    with running(command, folder=folder, ready=speaks_http, environment=keys) as port:
        yield S3Server(
            endpoint=f"http://{LOOPBACK}:{port}",
            access_key=keys["ROOT_ACCESS_KEY"],
            secret_key=keys["ROOT_SECRET_KEY"],
        )
