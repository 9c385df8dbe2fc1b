"""Getting a session, as far as it needs no Java."""

from __future__ import annotations

import pytest

from delta_core.errors import ConfigurationError
from spark_jobs import session


def test_a_missing_pyspark_is_named_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"deltaward\[spark\]"):
        session.get_session()
