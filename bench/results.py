"""Where results go, and what they carry along."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

FOLDER = Path(__file__).parent / "results"

MEASURED_WITH = ("strandline", "pyspark", "delta-spark", "deltalake", "pyarrow", "duckdb", "pysail")


def write(name: str, found: dict[str, Any]) -> Path:
    """Write *found* with a note of the machine, and of what was installed there."""
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / f"{name}.json"
    text = json.dumps({"machine": _machine(), "code": code(), **found}, indent=2)
    file.write_text(f"{text}\n", encoding="utf-8")
    return file


def code() -> str:
    """The last commit of what is measured and of what measures; with a mark if something differs from it."""
    told = [_git("log", "-1", "--format=%h", "--", *_CODE), _git("status", "--porcelain", "--", *_CODE)]
    if None in told:
        return "unknown"
    commit, changed = told
    return f"{commit}, changed" if changed else str(commit)


_CODE = ("src", "bench", "tests/campaign/tpch", "requirements")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=FOLDER.parents[1], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in MEASURED_WITH},
    }


def _processor() -> str:
    """Its name, where the system tells."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
