"""The version of the distribution. Only this module and the packaging file contain it."""

from __future__ import annotations

VERSION = "0.1.0"
