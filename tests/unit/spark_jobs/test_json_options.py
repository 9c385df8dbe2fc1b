"""The options of Spark's JSON reader: those with an effect on rows, and those that are refused."""

from __future__ import annotations

import pytest

from delta_core.errors import InvalidJobSpecError
from spark_jobs.loading.json_lines import _divided_options


def test_options_are_divided() -> None:
    options = {"LINESEP": ";", "pathGlobFilter": "*.json", "allowComments": "true"}
    assert _divided_options(options) == (
        {"LINESEP": ";", "pathGlobFilter": "*.json"},
        {"allowComments": "true"},
    )


@pytest.mark.parametrize("name", ["samplingRatio", "multiLine", "encoding", "mode", "dropFieldIfAllNull"])
def test_others_are_refused(name: str) -> None:
    with pytest.raises(InvalidJobSpecError, match=name):
        _divided_options({name: "true"})
