"""What the client of Airflow's REST API does when the server is busy, or has heard it before."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from demo.airflow_api import AirflowApi
from demo.environment import Login
from demo.processes import DemoError

ANSWER = "/api/v2/dags/d/dagRuns/r/taskInstances/approve/-1/hitlDetails"


class Server(HTTPServer):
    """Answers each request for a path with the next of its status codes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.codes: dict[str, list[int]] = {"/auth/token": [201]}
        self.seen: list[tuple[str, str, object]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"null")
        codes = self.server.codes[self.path]
        if self.path != "/auth/token":
            self.server.seen.append((self.command, self.path, body))
        content = json.dumps({"access_token": "t"}).encode()
        self.send_response(codes.pop(0) if len(codes) > 1 else codes[0])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_PATCH = answer  # noqa: N815 (the names are the base class's)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test's output is not the place."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def api(server: Server) -> AirflowApi:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return AirflowApi(Login(url=url, user="admin", password="secret"))


def test_an_answer_is_given_again_while_the_server_is_busy(server: Server, api: AirflowApi) -> None:
    server.codes[ANSWER] = [503, 200]
    api.answer("d", "r", "approve", option="Reject")
    assert server.seen == [("PATCH", ANSWER, {"chosen_options": ["Reject"], "params_input": {}})] * 2


def test_an_answer_that_had_arrived_is_not_an_error(server: Server, api: AirflowApi) -> None:
    server.codes[ANSWER] = [503, 409]
    api.answer("d", "r", "approve", option="Approve")
    assert len(server.seen) == 2


def test_an_answer_that_is_not_allowed_is_one(server: Server, api: AirflowApi) -> None:
    server.codes[ANSWER] = [403]
    with pytest.raises(DemoError, match="answered with 403"):
        api.answer("d", "r", "approve", option="Approve")
    assert len(server.seen) == 1


def test_only_the_flag_of_a_paused_dag_is_changed(server: Server, api: AirflowApi) -> None:
    path = "/api/v2/dags/d?update_mask=is_paused"
    server.codes[path] = [200]
    api.unpause("d")
    assert server.seen == [("PATCH", path, {"is_paused": False})]
