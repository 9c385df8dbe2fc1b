#!/usr/bin/env bash
# Makes .venv/ with deltaward (editable), all its extras for development and the pinned versions.
#
# Needs Python 3.11 or later and access to PyPI. uv installs the packages. If uv is missing, pip fetches it into
# .tools/, so that nothing outside this folder changes. As root on a Debian-like system, a missing Python, pip or
# venv is installed from Debian's packages. Otherwise a message explains what to do.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'deltaward: %s\n' "$1" >&2; exit 1; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14; do
    if command -v "$candidate" >/dev/null 2>&1 && new_enough "$candidate"; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}

debian_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y -q --no-install-recommends "$@" >&2 && return 0
  apt-get update -q >&2 && apt-get install -y -q --no-install-recommends "$@" >&2
}

fetch_uv() { # PYTHON: puts uv into .tools/, pinned by constraints.txt like everything else
  local python=$1
  rm -rf .tools/uv .tools/bootstrap
  if "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m pip install -q --disable-pip-version-check --constraint constraints.txt \
      --target .tools/uv uv >&2
  elif "$python" -m venv .tools/bootstrap >/dev/null 2>&1; then
    .tools/bootstrap/bin/python -m pip install -q --disable-pip-version-check \
      --constraint constraints.txt --target .tools/uv uv >&2
  else
    return 1
  fi
}

python=$(find_python) || {
  debian_install python3 python3-venv || fail "no Python 3.11 or later found; install one or set PYTHON."
  python=$(find_python) || fail "this system's Python is older than 3.11; install a newer one and set PYTHON."
}

if command -v uv >/dev/null 2>&1 && uv --version >/dev/null 2>&1; then
  uv=uv
else
  uv=.tools/uv/bin/uv
  if ! "$uv" --version >/dev/null 2>&1; then
    echo "deltaward: fetching uv into .tools/" >&2
    fetch_uv "$python" || { debian_install python3-venv && fetch_uv "$python"; } ||
      fail "$python has neither pip nor a working venv module; install python3-venv (or uv) and run this again."
  fi
fi

# Use the system's certificates if it has any, so that uv trusts a proxy's authority, as pip does.
[ -s /etc/ssl/certs/ca-certificates.crt ] && export SSL_CERT_FILE="${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"

"$uv" venv -q --python "$python" --allow-existing .venv
echo "deltaward: installing into .venv/ (the first time takes a few minutes)" >&2
install() {
  "$uv" pip install "$@" --python .venv/bin/python --quiet --constraint constraints.txt \
    --build-constraint constraints.txt --compile-bytecode --editable '.[dev]'
}
# Every version is pinned, so the packages in uv's cache are those that a registry would send. Some registries
# forbid uv to use its cache without a request. uv would then build PySpark again, which takes 1.4 GB of the
# cache and 25 s for each environment.
install --offline 2>/dev/null || {
  install
  "$uv" cache prune --quiet || true
}
