"""All that a process can be asked to run, by name."""

from __future__ import annotations

from tests.concurrency.kill_points.featured import Featured
from tests.concurrency.kill_points.featured_changes import EVERY_FEATURED
from tests.concurrency.kill_points.operation import Operation
from tests.concurrency.kill_points.operations import OPERATIONS
from tests.concurrency.kill_points.recovery import LEFT_BEHIND

EVERY: dict[str, Operation | Featured] = {**OPERATIONS, **EVERY_FEATURED, LEFT_BEHIND.name: LEFT_BEHIND}
