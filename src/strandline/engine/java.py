"""Java, looked for before Spark is started, so that its absence is said in one sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from strandline.errors import EngineError

OLDEST = 17


def require_java() -> None:
    """Raise EngineError unless a Java that Spark 4 runs on is there."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = f"install Java {OLDEST} or newer (for example openjdk-{OLDEST}-jre-headless) or set JAVA_HOME to one."
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME is {home}, but has no bin/java" if home else "no java is on the PATH"
        raise EngineError("JAVA_MISSING", f"Spark needs Java {OLDEST} or newer; {where}; {advice}")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)(?:\.(\d+))?', shown)
    version = int(found[2] or 0) if found and found[1] == "1" else int(found[1]) if found else 0
    if version < OLDEST:
        line = shown.splitlines()[0] if shown else "nothing"
        raise EngineError("JAVA_TOO_OLD", f"Spark needs Java {OLDEST} or newer; {java} says {line}; {advice}")
