#!/usr/bin/env bash
# Names the folder of the golden tables for the tests: .tools/golden becomes a link to it.
#
# Usage: scripts/golden.sh [FOLDER]
#
# Without FOLDER it is the folder in DELTAWARD_GOLDEN, or else the folder of the last call, or else shared/golden
# beside the checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly LINK=.tools/golden

found=""
for folder in "${1:-${DELTAWARD_GOLDEN:-}}" "$LINK" ../shared/golden; do
  [ -n "$folder" ] || continue
  if grep -qs '"name"' "$folder/manifest.json"; then
    found=$(cd "$folder" && pwd -P)
    break
  fi
  if [ "$folder" = "${1:-${DELTAWARD_GOLDEN:-}}" ]; then
    printf 'deltaward: %s has no manifest.json that names tables, so it is not a folder of golden tables.\n' "$folder" >&2
    exit 2
  fi
done
if [ -z "$found" ]; then
  printf 'deltaward: the golden tables are in no registry. Name their folder: make golden GOLDEN=FOLDER\n' >&2
  exit 2
fi
mkdir -p .tools
ln -sfn "$found" "$LINK"
printf 'deltaward: %s golden tables in %s\n' "$(grep -o '"name"' "$LINK/manifest.json" | wc -l)" "$LINK"
