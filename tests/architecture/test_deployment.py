"""The images and the compose file: what runs is pinned, confined, watched, and given no secret openly."""

from __future__ import annotations

import json
import os
import re
import runpy
import stat
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from delta_airflow.hooks.settings import RunnerName, parse_settings
from tests.support.repository import ROOT
from tests.support.services import (
    DOCKER,
    HOST_SETTINGS,
    PORT_SETTINGS,
    read_compose,
    read_environment,
    service_specs,
)

COMPOSE = read_compose()
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
LASTING = sorted(set(SERVICES) - {"airflow-init"})
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
SECRET_WORDS = re.compile(r"PASSWORD|SECRET|TOKEN|_KEY|_CONN(_|$)|ACCESS")
READ_FROM_A_FILE = re.compile(r"(_FILE|_CMD|PASSWORDS_FILE)$|^DELTAWARD_SECRETS$")


def test_the_compose_file_fits_the_schema() -> None:
    tool = Path(sys.executable).with_name("check-jsonschema")
    command = [tool, "--builtin-schema", "vendor.compose-spec", DOCKER / "compose.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_promised_service_is_there() -> None:
    airflow = {
        f"airflow-{name}" for name in ("init", "api-server", "scheduler", "dag-processor", "triggerer")
    }
    spark = {"spark-master", "spark-worker-1", "spark-worker-2", "spark-connect"}
    assert set(SERVICES) == airflow | spark | {"postgres", "object-store"}
    assert [name for name, service in SERVICES.items() if service.get("profiles")] == ["object-store"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    limits = service["deploy"]["resources"]["limits"]
    assert set(limits) == {"cpus", "memory", "pids"}
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert service.get("user") or service["build"]["target"] in ("airflow", "spark")


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_service_is_watched_and_started_again(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] == "CMD"
    assert {"interval", "timeout", "start_period", "retries"} <= set(service["healthcheck"])


def test_the_conditions_of_a_start_can_be_met() -> None:
    for name, service in SERVICES.items():
        for other, wish in service.get("depends_on", {}).items():
            assert other in SERVICES, name
            ends = SERVICES[other]["restart"] == "no"
            assert wish["condition"] == ("service_completed_successfully" if ends else "service_healthy")


def test_every_image_is_pinned() -> None:
    for name, service in SERVICES.items():
        tag = service["image"].rpartition(":")[2]
        assert re.search(r"\d+\.\d+", tag), f"{name}: {service['image']}"
    for base in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE):
        assert base in ("build", "base") or re.fullmatch(r"python:\$\{PYTHON_VERSION\}-slim-bookworm", base)
    assert re.search(r"^ARG PYTHON_VERSION=3\.\d+\.\d+$", DOCKERFILE, re.MULTILINE)


def test_the_final_images_run_as_a_user_under_an_init_with_a_health_check() -> None:
    stages = {
        match[1]: text
        for text in re.split(r"(?m)^(?=FROM )", DOCKERFILE)
        if (match := re.match(r"FROM \S+ AS (\S+)", text))
    }
    assert "HEALTHCHECK" in stages["base"]
    for target in ("airflow", "spark"):
        assert stages[target].startswith("FROM base")
        assert re.search(r"^USER 10001$", stages[target], re.MULTILINE)
        assert re.search(r'^ENTRYPOINT \["tini", "--"', stages[target], re.MULTILINE)


def test_what_the_images_copy_is_there_and_not_ignored() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for source in line.split():
            assert (ROOT / source).exists(), source
            assert source.split("/")[0] in allowed, source
    assert "docker/secrets" in (ROOT / ".dockerignore").read_text().splitlines()


def test_no_setting_holds_a_secret() -> None:
    given = {
        f"{service}: {name}": value
        for service, spec in service_specs().items()
        for name, value in spec.environment.items()
        if SECRET_WORDS.search(name)
    }
    assert given
    assert not [name for name in given if not READ_FROM_A_FILE.search(name.partition(": ")[2])]
    assert all("/run/" in value for value in given.values()), given


def test_every_secret_is_made_and_every_made_one_is_used(tmp_path: Path) -> None:
    subprocess.run([DOCKER / "secrets.sh", tmp_path], check=True, capture_output=True)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == set(COMPOSE["secrets"])
    assert made == {secret for service in SERVICES.values() for secret in service.get("secrets", [])}
    assert all(entry["file"] == f"secrets/{name}" for name, entry in COMPOSE["secrets"].items())
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert json.loads((tmp_path / "airflow-passwords.json").read_text())["admin"]
    assert (tmp_path / "postgres-password").read_text() in (tmp_path / "airflow-database-url").read_text()

    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert len(set(before.values())) == len(before)
    (tmp_path / "spark-secret").unlink()
    subprocess.run([DOCKER / "secrets.sh", tmp_path], check=True, capture_output=True)
    after = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {"spark-secret"}


def test_only_those_who_hand_work_to_spark_know_its_secret() -> None:
    knowing = {name for name, service in SERVICES.items() if "spark-secret" in service.get("secrets", [])}
    spark = {name for name in SERVICES if name.startswith("spark-")}
    assert knowing == spark | {"airflow-scheduler"}


@pytest.mark.airflow
def test_airflow_knows_every_setting() -> None:
    from airflow.configuration import conf

    described = conf.configuration_description
    for name in read_environment(DOCKER / "airflow.env"):
        if name.startswith("AIRFLOW__"):
            section, option = name.removeprefix("AIRFLOW__").lower().split("__")
            options = described[section]["options"]
            asked = option.removesuffix("_cmd")
            # These are read, with a default in code, though Airflow's own list leaves them out.
            if section == "core" and option.startswith("simple_auth_manager"):
                continue
            assert asked in options, name
            assert asked == option or options[asked].get("sensitive"), name


def test_the_services_as_processes_keep_to_the_environment_files() -> None:
    known = read_environment(DOCKER / "airflow.env") | read_environment(DOCKER / "spark.env")
    assert set(known) >= HOST_SETTINGS
    assert set(known) >= set(PORT_SETTINGS)
    addresses = {address for address in PORT_SETTINGS.values() if "{" not in address}
    assert all(address.split(":")[0] in SERVICES for address in addresses)
    for shared in ("DELTAWARD_SPARK_MASTER", "DELTAWARD_RUNTIME", "SPARK_CONF_DIR"):
        airflow, spark = (read_environment(DOCKER / f"{name}.env")[shared] for name in ("airflow", "spark"))
        assert airflow == spark


def test_the_pools_are_what_airflow_imports() -> None:
    pools = json.loads((DOCKER / "services" / "pools.json").read_text())
    assert pools
    for pool in pools.values():
        assert set(pool) == {"slots", "description", "include_deferred"}
        assert pool["slots"] > 0


def test_a_service_that_does_not_exist_is_refused_and_settings_are_private(tmp_path: Path) -> None:
    environment = {**os.environ, "DELTAWARD_RUNTIME": str(tmp_path), "DELTAWARD_SECRETS": str(tmp_path)}
    environment |= {"SPARK_CONF_DIR": str(tmp_path / "spark"), "PYSPARK_PYTHON": sys.executable}
    environment |= {"DELTAWARD_DRIVER_HOST": "the-scheduler", "DELTAWARD_DRIVER_BIND": "0.0.0.0"}
    (tmp_path / "spark-secret").write_text("a shared secret")
    for script in ("airflow.sh", "spark.sh"):
        done = subprocess.run(
            [DOCKER / "services" / script, "celery"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, "celery" in done.stderr) == (2, True), done.stderr
    settings = tmp_path / "spark" / "spark-defaults.conf"
    written = dict(line.split(maxsplit=1) for line in settings.read_text().splitlines() if line[:1] == "s")
    assert written["spark.authenticate"] == "true"
    assert written["spark.authenticate.secret"] == "a shared secret"
    assert written["spark.driver.host"] == "the-scheduler"
    assert written["spark.driver.bindAddress"] == "0.0.0.0"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["spark-master"], 1, "spark-master: "),
        (["airflow-scheduler"], 1, "airflow-scheduler: "),
        (["nothing"], 1, "there is no service"),
        ([], 0, ""),
    ],
)
def test_a_health_check_says_what_is_wrong(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    environment = {
        **os.environ,
        "DELTAWARD_RUNTIME": str(tmp_path),
        "SPARK_MASTER_HOST": "127.0.0.1",
        "SPARK_MASTER_WEBUI_PORT": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": "http://127.0.0.1:1/execution/",
    }
    command = [sys.executable, DOCKER / "services" / "healthy.py", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("master", "wrong"), [("", "it has not registered at its master"), ("spark://master:7077", None)]
)
def test_a_worker_is_healthy_once_its_master_knows_it(tmp_path: Path, master: str, wrong: str | None) -> None:
    page = tmp_path / "json" / "index.html"
    page.parent.mkdir()
    page.write_text(json.dumps({"id": "worker-1", "masterurl": master, "cores": 2}))
    healthy = runpy.run_path(str(DOCKER / "services" / "healthy.py"))
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as worker:
        serving = Thread(target=worker.serve_forever)
        serving.start()
        port = str(worker.server_address[1])
        environment = {"DELTAWARD_SPARK_HOST": "127.0.0.1", "SPARK_WORKER_WEBUI_PORT": port}
        found = healthy["problem"]("spark-worker", environment)
        worker.shutdown()
        serving.join()
    assert found == wrong


def test_the_connect_server_finds_every_worker_when_it_registers() -> None:
    """Its executors are dealt out once: with one worker there, that one takes them all."""
    workers = {name for name in SERVICES if name.startswith("spark-worker")}
    assert len(workers) == 2
    assert workers <= set(SERVICES["spark-connect"]["depends_on"])


def _connection(secrets: Path) -> dict[str, Any]:
    prepare = runpy.run_path(str(DOCKER / "services" / "prepare.py"))
    environment = read_environment(DOCKER / "airflow.env") | {"DELTAWARD_SECRETS": str(secrets)}
    return prepare["connections"](environment)["deltaward_default"]


def test_a_token_becomes_the_connections_password(tmp_path: Path) -> None:
    assert "password" not in _connection(tmp_path)
    (tmp_path / "spark-connect-token").write_text("a token\n")
    assert _connection(tmp_path)["password"] == "a token"


def test_the_connection_of_the_deployment_is_one_that_the_provider_reads(tmp_path: Path) -> None:
    settings = parse_settings(_connection(tmp_path)["extra"])
    assert settings.runner is RunnerName.SPARK_CONNECT
    assert settings.allowed_roots == ("/data/tables", "/data/landing")
