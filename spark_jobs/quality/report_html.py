"""A report as one HTML page: without scripts and external resources, with every value escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d1d9e0;--card:#f6f8fa;
--ok:#1a7f37;--bad:#c4222e;--warn:#8a5a00}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--line:#3d444d;
--card:#151b23;--ok:#3fb950;--bad:#ff7b72;--warn:#e3b341}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1.5rem;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem;margin:0 0 .25rem}
p{margin:.25rem 0}.dim{color:var(--dim)}
.outcome{font-weight:600;text-transform:uppercase;letter-spacing:.04em}
.ok{color:var(--ok)}.bad{color:var(--bad)}.warn{color:var(--warn)}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.75rem;margin:1rem 0}
dl div{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.5rem .75rem}
dt{color:var(--dim);font-size:.85rem}dd{margin:0;font-size:1.2rem;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-weight:600;white-space:nowrap}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
"""

_MAX_SHOWN = 500
_CLASSES = {"passed": "ok", "warned": "warn", "quarantined": "warn", "failed": "bad"}
_METRICS = (
    ("rows", "rows"),
    ("bad rows", "bad_rows"),
    ("published", "published_rows"),
    ("quarantined", "quarantined_rows"),
    ("violate the contract", "rejectedRows"),
    ("expectations", "expectations"),
)


def to_html(document: Mapping[str, Any]) -> str:
    """The HTML page of a report document."""
    outcome = str(document["outcome"])
    metrics = "".join(
        f"<div><dt>{label}</dt><dd>{_string(document[key])}</dd></div>" for label, key in _METRICS
    )
    why = f'<p class="bad">{_string(document["why"])}</p>' if document.get("why") else ""
    quarantine = (
        f"<p>Quarantine: <code>{_string(document['quarantine_uri'])}</code> "
        f"version {_string(document['quarantine_version'])}</p>"
        if document.get("quarantine_uri")
        else ""
    )
    rows = "".join(_row(entry) for entry in document["results"])
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{_string(document["suite"])}: {_string(outcome)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{_string(document["suite"])}</h1>
<p class="outcome {_CLASSES.get(outcome, "bad")}">{_string(outcome)}</p>
{why}
<p class="dim"><code>{_string(document["table"])}</code> · job <code>{_string(document["job"])}</code> ·
{_string(document["createdAt"])} · {_string(document["engine"])} · on failure:
{_string(document["policy"]["on_failure"])}</p>
<dl>{metrics}</dl>
{quarantine}
<div class="wide"><table>
<thead><tr><th>result</th><th>expectation</th><th>arguments</th><th>unexpected</th>
<th>observed</th></tr></thead>
<tbody>{rows}</tbody>
</table></div>
</body>
</html>
"""


def _row(entry: Mapping[str, Any]) -> str:
    if entry["success"]:
        word, colour = "passes", "ok"
    else:
        word = "error" if entry["error"] else "fails"
        colour = "warn" if entry["severity"] == "warning" else "bad"
    count, percent = entry["unexpectedCount"], entry["unexpectedPercent"]
    unexpected = "" if count is None else f"{count}"
    if count and isinstance(percent, (int, float)):
        unexpected += f" ({percent:.2f} %)"
    column = entry["column"]
    column_html = "" if column is None else f"<br><code>{_string(column)}</code>"
    if entry["error"]:
        observed = _string(entry["error"])
    elif entry["samples"]:
        observed = ", ".join(f"<code>{_string(value)}</code>" for value in entry["samples"])
    else:
        observed = "" if entry["observed"] is None else f"<code>{_string(entry['observed'])}</code>"
    return (
        f'<tr><td class="{colour}">{word}</td><td>{_string(entry["type"])}{column_html}</td>'
        f"<td><code>{_string(_truncated(json.dumps(entry['kwargs'], ensure_ascii=False)))}</code></td>"
        f'<td class="n">{_string(unexpected)}</td><td>{observed}</td></tr>\n'
    )


def _truncated(text: str) -> str:
    """The first characters of a long string. The JSON report contains the whole string."""
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def _string(value: Any) -> str:
    """A value as escaped HTML text, which a browser never executes."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return html.escape(shown, quote=True)
