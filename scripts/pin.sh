#!/bin/sh
# Writes requirements/dev.txt: exact versions of everything that development needs, for all supported Pythons.
# Arguments go to `uv pip compile`; for example: scripts/pin.sh --upgrade
set -eu
cd "$(dirname "$0")/.."

pins=requirements/dev.txt
resolved=$(mktemp)
trap 'rm -f "$resolved"' EXIT
if [ -f "$pins" ]; then cp "$pins" "$resolved"; fi

.venv/bin/uv pip compile pyproject.toml --group dev --all-extras --universal --python-version 3.11 \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet \
    --output-file "$resolved" "$@"

{
    echo "# Exact versions of what Strandline runs on and is developed with, on Python 3.11, 3.12 and 3.13."
    echo "# Written by scripts/pin.sh from pyproject.toml; change the ranges there, then run it."
    cat "$resolved"
} > "$pins"
