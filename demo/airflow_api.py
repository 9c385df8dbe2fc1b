"""A small client for Airflow's REST API, which uses only the standard library."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from demo.environment import Login
from demo.processes import DemoError

Json = dict[str, Any]

_ATTEMPTS = 30

# Requests to a loopback address must not use a proxy from the environment.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class AirflowApi:
    """A client that logs in with the password before its first authorised request."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._token: str | None = None

    def health(self) -> Json:
        """The health of each service; empty if the server does not answer."""
        try:
            return self._send("GET", "/api/v2/monitor/health", token=None)
        except (OSError, ValueError):
            return {}

    def dag_ids(self) -> set[str]:
        return {dag["dag_id"] for dag in self._get("/api/v2/dags")["dags"]}

    def import_errors(self) -> list[str]:
        errors = self._get("/api/v2/importErrors")["import_errors"]
        return [f"{error['filename']}: {error['stack_trace']}" for error in errors]

    def pause(self, dag_id: str) -> None:
        self._set_paused(dag_id, True)

    def unpause(self, dag_id: str) -> None:
        self._set_paused(dag_id, False)

    def trigger(self, dag_id: str, *, run_id: str, conf: Json) -> None:
        """Start a manual run, one without a logical date."""
        body = {"logical_date": None, "dag_run_id": run_id, "conf": conf}
        self._post(f"/api/v2/dags/{dag_id}/dagRuns", body)

    def backfill(self, dag_id: str, *, from_date: str, to_date: str, conf: Json) -> int:
        """Create a backfill for a range of logical dates, with one run at a time; returns its id."""
        body = {"dag_id": dag_id, "from_date": from_date, "to_date": to_date, "dag_run_conf": conf}
        body["max_active_runs"] = 1
        patience = _ATTEMPTS
        while True:
            try:
                return int(self._post("/api/v2/backfills", body)["id"])
            except DemoError as error:
                # SQLite refused a second writer, and Airflow has rolled its changes back.
                patience -= 1
                if _status(error) != 503 or not patience:
                    raise
            time.sleep(1)

    def backfill_completed(self, backfill_id: int) -> bool:
        return self._get(f"/api/v2/backfills/{backfill_id}")["completed_at"] is not None

    def run(self, dag_id: str, run_id: str) -> Json:
        return self._get(f"/api/v2/dags/{dag_id}/dagRuns/{_quote(run_id)}")

    def runs(self, dag_id: str) -> list[Json]:
        """The DAG's runs, newest first."""
        return self._get(f"/api/v2/dags/{dag_id}/dagRuns?order_by=-id&limit=100")["dag_runs"]

    def task_instances(self, dag_id: str, run_id: str) -> list[Json]:
        path = f"/api/v2/dags/{dag_id}/dagRuns/{_quote(run_id)}/taskInstances?limit=100"
        return self._get(path)["task_instances"]

    def answer(self, dag_id: str, run_id: str, task_id: str, *, option: str) -> None:
        """Answer the question of a waiting task."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{_quote(run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        try:
            self._repeated("PATCH", path, {"chosen_options": [option], "params_input": {}})
        except DemoError as error:
            # An earlier attempt, whose reply was lost, has already answered.
            if _status(error) != 409:
                raise

    def questions(self, dag_id: str, run_id: str) -> list[Json]:
        """The questions of the run's tasks, with their answers."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{_quote(run_id)}/hitlDetails"
        return self._get(path)["hitl_details"]

    def xcom(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1) -> Any:
        """The return value of a task; None if it returned nothing."""
        path = (
            f"/api/v2/dags/{dag_id}/dagRuns/{_quote(run_id)}/taskInstances/{task_id}/xcomEntries/return_value"
        )
        try:
            return self._get(f"{path}?map_index={map_index}&deserialize=true")["value"]
        except DemoError as error:
            if _status(error) == 404:
                return None
            raise

    def _set_paused(self, dag_id: str, paused: bool) -> None:
        self._repeated("PATCH", f"/api/v2/dags/{dag_id}?update_mask=is_paused", {"is_paused": paused})

    def _get(self, path: str) -> Json:
        return self._repeated("GET", path, None)

    def _repeated(self, method: str, path: str, body: Json | None) -> Json:
        """Send an idempotent request, and repeat it while the server is busy."""
        patience = _ATTEMPTS
        while True:
            try:
                return self._authorised(method, path, body)
            except DemoError as error:
                patience -= 1
                if (_status(error) or 500) < 500 or not patience:
                    raise
            time.sleep(0.5)

    def _post(self, path: str, body: Json) -> Json:
        return self._authorised("POST", path, body)

    def _authorised(self, method: str, path: str, body: Json | None) -> Json:
        try:
            if self._token is None:
                credentials = {"username": self._login.user, "password": self._login.password}
                self._token = self._send("POST", "/auth/token", body=credentials, token=None)["access_token"]
            return self._send(method, path, body=body, token=self._token)
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")[:500]
            raise DemoError(f"{method} {path} was answered with {error.code}: {detail}") from error
        except OSError as error:
            raise DemoError(f"{method} {path} failed: {error}") from error

    def _send(self, method: str, path: str, *, body: Json | None = None, token: str | None) -> Json:
        request = urllib.request.Request(self._login.url + path, method=method)
        request.add_header("Accept", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        data = None
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        with _OPENER.open(request, data=data, timeout=30) as answer:
            return json.loads(answer.read() or b"{}")


def _status(error: DemoError) -> int | None:
    cause = error.__cause__
    return cause.code if isinstance(cause, urllib.error.HTTPError) else None


def _quote(name: str) -> str:
    return urllib.parse.quote(name, safe="")
