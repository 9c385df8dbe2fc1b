"""A long-lived process that runs one engine's operations and times them from inside.

Reads one JSON request a line from standard input, `{"operation": name, "arguments": {...}}`, and answers
one JSON line: `{"seconds": s, "value": v, "peak_rss_bytes": n}` or `{"error": text}`. Start-up and imports
are outside every timing. What libraries print goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path


def peak_rss_bytes() -> int:
    """The most memory that this program has had. `ru_maxrss` begins with what its parent had."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) << 10


def main() -> int:
    engine = importlib.import_module(f"benchmarks.engines.{sys.argv[1]}")
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if hasattr(engine, "start"):
        engine.start()
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        operation = getattr(engine, request["operation"])
        try:
            begin = time.perf_counter()
            value = operation(**request["arguments"])
            seconds = time.perf_counter() - begin
        except Exception:
            print(json.dumps({"error": traceback.format_exc()}), file=answers)
            continue
        answer = {"seconds": seconds, "value": value, "peak_rss_bytes": peak_rss_bytes()}
        print(json.dumps(answer), file=answers)
    if hasattr(engine, "stop"):
        engine.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
