#!/bin/sh
# Checks that the Python given as the first argument (python3 by default) can make the virtual environment.
# It uses shell builtins only, so that it runs wherever there is a shell.

python=${1:-python3}

explain() {
    echo "Strandline needs Python 3.11 or newer, with the modules venv and ensurepip."
    echo "$1"
    echo
    echo "$2"
} >&2

how_to_get="To get one:
  Debian, Ubuntu   sudo apt install python3 python3-venv
  macOS            brew install python@3.12
  anywhere         pyenv install 3.12
If it has another name, say which: make setup PYTHON=python3.12"

where=$(command -v "$python")
if [ -z "$where" ]; then
    explain "Found: no program $python." "$how_to_get"
    exit 1
fi

version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>&1)
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    explain "Found: Python ${version:-of unknown version}, at $where." "$how_to_get"
    exit 1
fi

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    explain "Found: Python $version, at $where, without venv or ensurepip." \
        "Debian and Ubuntu keep them in a package of their own: sudo apt install python3-venv"
    exit 1
fi
