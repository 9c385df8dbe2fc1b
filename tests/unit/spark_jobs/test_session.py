"""Getting a session, as far as it needs no Java."""

from __future__ import annotations

import pytest

from delta_core.errors import ConfigurationError
from spark_jobs import installed_spark, session


def test_a_missing_pyspark_is_named_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_spark.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"deltaward\[spark\]"):
        session.get_session()


def _wrote(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    found = {name.replace("_", "-"): version for name, version in versions.items()}
    monkeypatch.setattr(installed_spark, "_installed", lambda folder: found)


def test_two_versions_in_one_folder_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _wrote(monkeypatch, pyspark="4.3.0", pyspark_client="4.2.0")
    with pytest.raises(ConfigurationError, match=r"pyspark 4\.3\.0 and pyspark-client 4\.2\.0 .*==4\.2\.0"):
        session.get_session("sc://nowhere:1")


def test_the_client_alone_starts_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    _wrote(monkeypatch, pyspark_client="4.2.0")
    with pytest.raises(ConfigurationError, match="Connect client"):
        session.get_session()
    assert installed_spark.check_installed(with_jvm=False).name == "pyspark"


def test_what_is_installed_here_is_of_one_version() -> None:
    folder = installed_spark.check_installed(with_jvm=True)
    assert set(installed_spark._installed(folder)) == {"pyspark", "pyspark-client"}
    assert installed_spark._installed(folder.parent) == {}
