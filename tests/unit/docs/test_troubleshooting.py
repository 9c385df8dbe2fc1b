"""docs/troubleshooting.md has every error code."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import delta_core
from delta_core.errors import DeltaError
from tests.support.repository import ROOT


def _classes(of: type[DeltaError]) -> Iterator[type[DeltaError]]:
    yield of
    for below in of.__subclasses__():
        yield from _classes(below)


def test_the_page_lists_exactly_the_codes_of_the_library() -> None:
    for module in pkgutil.walk_packages(delta_core.__path__, "delta_core."):
        importlib.import_module(module.name)
    plugin = (ROOT / "plugins/delta_airflow/errors.py").read_text()
    codes = {
        *(found.code for found in _classes(DeltaError) if found.__module__.startswith("delta_core")),
        *re.findall(r'code = "([A-Z_]+)"', plugin),
    }
    page = (ROOT / "docs/troubleshooting.md").read_text()
    listed = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", page))
    assert listed == codes
