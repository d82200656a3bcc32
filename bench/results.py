"""Where results go, and what they carry along."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


def write(name: str, found: dict[str, Any]) -> Path:
    """Write *found* with a note of the machine."""
    FOLDER.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}
    file = FOLDER / f"{name}.json"
    file.write_text(json.dumps({"machine": machine, **found}, indent=2) + "\n", encoding="utf-8")
    return file
