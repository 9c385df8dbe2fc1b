"""The distribution's version: the one place that spells it besides the packaging file."""

from __future__ import annotations

VERSION = "0.1.0"
