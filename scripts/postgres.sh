#!/usr/bin/env bash
# Prints the folder with PostgreSQL's server programs (initdb, postgres). Installs them when the machine has none.
#
# Tries in this order: POSTGRES_BIN, the PATH, Debian's folders, Debian's package (as root on a Debian-like
# system); otherwise a message explains what to do. The package's own cluster is not started.
set -euo pipefail

complete() { # FOLDER: whether initdb and postgres are there and run
  [ -x "$1/initdb" ] && [ -x "$1/postgres" ] && "$1/postgres" --version >/dev/null 2>&1
}

find_postgres() {
  local candidate on_path
  on_path=$(command -v initdb || true)
  [ -z "$on_path" ] || on_path=$(dirname "$(readlink -f "$on_path")")
  for candidate in "${POSTGRES_BIN:-}" "$on_path" $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV); do
    [ -n "$candidate" ] && complete "$candidate" && printf '%s\n' "$candidate" && return 0
  done
  return 1
}

find_postgres && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "deltaward: installing postgresql" >&2
  export DEBIAN_FRONTEND=noninteractive
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    # The package would start a server of its own; Debian asks this program first.
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
  fi
  { apt-get install -y -q --no-install-recommends postgresql ||
    { apt-get update -q && apt-get install -y -q --no-install-recommends postgresql; }; } >&2 || true
  find_postgres && exit 0
fi

echo "deltaward: the services need PostgreSQL's server: install it (Debian: postgresql) or set POSTGRES_BIN to the folder of initdb." >&2
exit 1
