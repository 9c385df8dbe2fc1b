#!/usr/bin/env bash
# Resolves every dependency of pyproject.toml again, and writes the versions to constraints.txt, without addresses.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -s /etc/ssl/certs/ca-certificates.crt ] && export SSL_CERT_FILE="${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"
new=$(mktemp)
trap 'rm -f "$new"' EXIT
.venv/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
  --no-header --no-annotate --no-emit-index-url --quiet --output-file "$new"
{
  echo "# Exact versions of everything deltaward installs. Refresh with: make constraints"
  cat "$new"
} >constraints.txt
