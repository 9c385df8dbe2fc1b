"""A secret in every option: it is in no message, representation, log record, result, report or argument."""

from __future__ import annotations

import base64
import copy
import json
import logging
import pickle
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from delta_core import DeltaTable, write_deltalake
from delta_core.cli.app import app
from delta_core.conformance.place import Place
from delta_core.conformance.workers import worker_processes
from delta_core.errors import DeltaError
from delta_core.jobs.codec import result_to_json, spec_to_json
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.storage.open import open_store
from delta_core.storage.option_names import AZURE_OPTIONS, GCS_OPTIONS, S3_OPTIONS
from delta_core.storage.probe import forget_probes

pytestmark = pytest.mark.slow

CANARY = "c4n4ryS3cr3tThatNobodyMaySee"
KEY = base64.b64encode(CANARY.encode()).decode()
SECRET_OPTIONS = {
    *("secret_access_key", "session_token", "access_key_id", "sse_customer_key_base64", "sse_kms_key_id"),
    *("account_key", "client_secret", "sas_key", "token", "service_account_key", "bearer_token"),
}


class _Echo(BaseHTTPRequestHandler):
    """Answers with an error that holds everything it was sent, as some gateways do."""

    protocol_version = "HTTP/1.1"
    status = 403

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = "".join(f"{name}: {value}\n" for name, value in self.headers.items())
        body = f"<html>{self.path}\n{sent} password={CANARY} AWS_SECRET_ACCESS_KEY={CANARY}</html>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_PUT = do_HEAD = do_POST = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture(params=[400, 403])
def echo(request: pytest.FixtureRequest) -> Iterator[str]:
    handler = type("Handler", (_Echo,), {"status": request.param})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    forget_probes()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()
    forget_probes()


def services(endpoint: str) -> dict[str, dict[str, str]]:
    """A table's URI and its options, each with a secret wherever one can be."""
    account = {"client_email": CANARY, "private_key": CANARY, "private_key_id": CANARY, "disable_oauth": True}
    s3 = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": CANARY,
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "AWS_SESSION_TOKEN": CANARY,
        "AWS_REGION": "us-east-1",
    }
    locking = {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "endpoint_url_dynamodb": endpoint}
    return {
        "s3://bucket/t": s3,
        "s3://locked/t": {**s3, **locking},
        "gs://bucket/t": {"base_url": endpoint, "service_account_key": json.dumps(account)},
        "az://container/t": {"account_name": "name", "account_key": KEY, "endpoint": endpoint},
        "az://shared/t": {"account_name": "name", "sas_key": f"sv=1&sig={CANARY}", "endpoint": endpoint},
        "az://bearer/t": {"account_name": "name", "token": CANARY, "endpoint": endpoint},
        "hdfs://name/t": {"webhdfs_endpoint": endpoint, "delegation_token": CANARY},
    }


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=logging.DEBUG)
        self.strings: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.strings += [logging.Formatter().format(record), repr(vars(record))]


@pytest.fixture
def records() -> Iterator[_Records]:
    logger, handler = logging.getLogger("delta_core"), _Records()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def strings_of(error: BaseException) -> list[str]:
    found = ["".join(traceback.format_exception(error)), repr(error), str(error), repr(vars(error))]
    return [*found, repr(pickle.loads(pickle.dumps(error))), repr(copy.copy(error))]


def hits(strings: list[str]) -> list[str]:
    return [text[:300] for text in strings if CANARY in text or KEY in text]


@pytest.mark.parametrize("uri", services(""))
def test_no_failure_of_a_store_shows_it(uri: str, echo: str, records: _Records) -> None:
    options = services(echo)[uri]
    store = open_store(uri, storage_options=options)
    shown = [repr(store), str(store), repr(getattr(store, "inner", None)), store.uri]
    failures = 0
    calls = [
        lambda: store.read("_delta_log/x"),
        lambda: store.head("x"),
        lambda: store.list_directory("_delta_log", start_after="0"),
        lambda: list(store.walk()),
        lambda: store.put_if_absent("_delta_log/00000000000000000000.json", b"x"),
        lambda: store.put("x", b"x"),
        lambda: store.delete("x"),
        lambda: DeltaTable(uri, storage_options=options),
        lambda: write_deltalake(uri, pa.table({"id": [1]}), storage_options=options),
    ]
    for call in calls:
        try:
            call()
        except DeltaError as error:
            failures += 1
            shown += strings_of(error)
    assert failures >= 6
    assert hits([*shown, *records.strings]) == []


@pytest.mark.parametrize("uri", services(""))
def test_no_job_shows_it(uri: str, echo: str, records: _Records) -> None:
    spec = JobSpec(kind="describe", table=TableRef(uri=uri), storage_ref="vault")
    context = JobContext(storage_options=services(echo)[uri])
    result = run_job(spec, context)
    assert result.error is not None
    shown = [
        spec_to_json(spec),
        result_to_json(result),
        repr(spec),
        repr(result),
        repr(context),
        str(context),
    ]
    assert hits([*shown, *records.strings]) == []


def test_no_option_that_is_wrong_shows_its_value() -> None:
    shown = []
    for uri, names in {"s3://b/t": S3_OPTIONS, "gs://b/t": GCS_OPTIONS, "az://c/t": AZURE_OPTIONS}.items():
        wrong = [{name + "x": CANARY} for name in sorted(names)]
        wrong += [{name: CANARY, f"AWS_{name}".upper(): f"{CANARY}2"} for name in sorted(names)]
        wrong += [{name: CANARY} for name in sorted(names - SECRET_OPTIONS)]
        wrong += [{"endpoint": f"http://user:{CANARY}@host"}, {"endpoint": f"http://host?sig={CANARY}"}]
        for options in wrong:
            try:
                shown.append(repr(open_store(uri, storage_options=options)))
            except DeltaError as error:
                shown += strings_of(error)
    for uri in (f"s3://user:{CANARY}@b/t", f"s3://b/t?X-Amz-Signature={CANARY}", f"hdfs://u:{CANARY}@n/t"):
        with pytest.raises(DeltaError) as refused:
            open_store(uri)
        shown += strings_of(refused.value)
    assert len(shown) > 100
    assert hits(shown) == []


def test_no_command_shows_it(echo: str, tmp_path: Path) -> None:
    options, report = tmp_path / "options.json", tmp_path / "report.md"
    options.write_text(json.dumps(services(echo)["s3://bucket/t"]))
    arguments = ["store-conformance", "s3://bucket/t", "--options", str(options), "--report", str(report)]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 4
    assert hits([answer.output, report.read_text()]) == []


def test_no_process_shows_it(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {})
    place.options = {"secret_access_key": CANARY}
    before = set(psutil.Process().children(recursive=True))
    with suppress(DeltaError), worker_processes(place, 1) as workers:
        assert workers
        started = set(psutil.Process().children(recursive=True)) - before
        assert started
        assert hits([repr(child.cmdline()) + repr(child.environ()) for child in started]) == []


def test_the_option_names_that_are_secret_are_options() -> None:
    assert SECRET_OPTIONS <= S3_OPTIONS | GCS_OPTIONS | AZURE_OPTIONS
