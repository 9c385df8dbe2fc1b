"""The gate's outcome in the publishing commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from delta_core.transaction.commit_properties import CommitProperties

QUALITY_KEY = "quality"
"""In `commitInfo.userMetadata`, beside the job's other provenance."""


def with_quality(properties: CommitProperties, quality: Mapping[str, Any]) -> CommitProperties:
    """The properties with the gate's figures in `user_metadata`; other text there is kept under `note`."""
    document: dict[str, Any] = {}
    if properties.user_metadata:
        try:
            found = json.loads(properties.user_metadata)
        except ValueError:
            found = None
        document = found if isinstance(found, dict) else {"note": properties.user_metadata}
    return replace(properties, user_metadata=json.dumps({**document, QUALITY_KEY: dict(quality)}))
