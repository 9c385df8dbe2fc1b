"""The gate's outcome in the publishing commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from delta_core.transaction import CommitProperties

QUALITY_KEY = "quality"
"""The key in `commitInfo.userMetadata`, next to the job's other provenance."""


def with_quality(properties: CommitProperties, quality: Mapping[str, Any]) -> CommitProperties:
    """The properties with the gate's metrics in `user_metadata`.

    Existing `user_metadata` that is not a JSON object becomes the entry `note`.
    """
    document: dict[str, Any] = {}
    if properties.user_metadata:
        try:
            existing = json.loads(properties.user_metadata)
        except ValueError:
            existing = None
        document = existing if isinstance(existing, dict) else {"note": properties.user_metadata}
    return replace(properties, user_metadata=json.dumps({**document, QUALITY_KEY: dict(quality)}))
