"""Settings that a driver is handed by its environment, as far as it needs no Java."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from delta_core.errors import ConfigurationError
from spark_jobs import session
from spark_jobs.environment_conf import VARIABLE, handed_conf

NAME = "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net"


def test_nothing_is_handed_over_unless_the_variable_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert handed_conf(with_jvm=True) == {}
    monkeypatch.setenv(VARIABLE, "")
    assert handed_conf(with_jvm=False) == {}


def test_what_is_handed_over_is_hidden_on_sparks_pages_under_every_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv(VARIABLE, json.dumps({NAME: "x"}))
    conf = handed_conf(with_jvm=True)
    assert conf.pop(NAME) == "x"
    (redaction,) = conf.values()
    for name in (NAME, NAME.removeprefix("spark.hadoop."), "spark.authenticate.secret", "Some.Password"):
        assert re.search(redaction, name)
    for name in ("spark.master", "spark.hadoop.fs.azure.account.auth.type"):
        assert not re.search(redaction, name)


def test_a_redaction_that_is_given_stays_and_a_connect_server_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {NAME: "x", "spark.redaction.regex": "key"}
    monkeypatch.setenv(VARIABLE, json.dumps(given))
    assert handed_conf(with_jvm=True) == given
    monkeypatch.setenv(VARIABLE, json.dumps({NAME: "x"}))
    assert handed_conf(with_jvm=False) == {NAME: "x"}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "null", '"CANARY"', "CANARY"])
def test_another_text_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigurationError, match=VARIABLE) as caught:
        handed_conf(with_jvm=True)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None


class Refused(AnalysisException):
    """As a server answers: its message has the value."""

    def __init__(self) -> None:
        super().__init__("cannot set spark.executor.memory to CANARY")

    def getCondition(self) -> str:  # noqa: N802 - pyspark's name
        return "CANNOT_MODIFY_CONFIG"


def test_a_setting_that_the_connect_server_refuses_is_named_and_the_session_is_stopped() -> None:
    def refuse(key: str, value: str) -> None:
        raise Refused

    stopped: list[bool] = []
    refusing = SimpleNamespace(conf=SimpleNamespace(set=refuse), stop=lambda: stopped.append(True))
    with pytest.raises(ConfigurationError, match=r"spark\.executor\.memory") as caught:
        session._set(refusing, "spark.executor.memory", "CANARY")  # type: ignore[arg-type]
    assert caught.value.cause == "Spark's error is CANNOT_MODIFY_CONFIG."
    assert "CANARY" not in str(caught.value)
    assert stopped == [True]
