from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import InvalidJobSpecError
from delta_core.jobs.kinds import BUILTIN_KINDS
from delta_core.jobs.wire_schema import job_result_document, job_spec_document

DOCS = Path(__file__).parents[3] / "docs"


def published(name: str, document: dict[str, Any]) -> str:
    path = DOCS / name
    text = json.dumps(document, indent=2) + "\n"
    if os.environ.get("UPDATE"):
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def test_the_published_spec_schema_is_what_the_codec_checks() -> None:
    document = job_spec_document(BUILTIN_KINDS)
    assert json.loads(published("job-spec.schema.json", document)) == document, "UPDATE=1 writes it again"


def test_the_published_result_schema_is_what_the_codec_checks() -> None:
    document = job_result_document()
    assert json.loads(published("job-result.schema.json", document)) == document, "UPDATE=1 writes it again"


@pytest.mark.parametrize("kind", BUILTIN_KINDS, ids=lambda kind: kind.name)
def test_every_kind_describes_itself_and_refuses_unknown_params(kind: Any) -> None:
    assert kind.help.endswith(".")
    assert kind.params_schema["additionalProperties"] is False
    with pytest.raises(InvalidJobSpecError, match="no_such_parameter is unknown"):
        kind.check_params({"no_such_parameter": 1})


def test_kinds_are_the_ones_promised() -> None:
    names = {kind.name for kind in BUILTIN_KINDS}
    assert names == {
        *("checkpoint", "cleanup_metadata", "describe", "observe", "optimize"),
        *("plan", "repair", "restore", "vacuum", "verify"),
        *("auto_compact", "clone", "convert", "properties"),
    }
