"""The jars that Spark needs beside its own: Delta Lake and the PostgreSQL JDBC driver.

``python -m strandline.engine.jars`` fetches them once into the Python environment, ``--list`` names them. From then on
sessions get them as ``spark.jars`` and need no network. Spark's own resolver does the work, so that its settings hold
(``DEFAULT_ARTIFACT_REPOSITORY``, ``spark.jars.ivySettings``) where Maven Central cannot be reached directly.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from strandline.errors import EngineError

PACKAGES = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.postgresql:postgresql:42.7.7",
)
"""Maven coordinates of what is fetched; what these depend on comes with them."""

MANIFEST = "manifest.json"
"""Written last, so that a folder with a manifest is a complete one."""


def jar_paths(folder: Path | None = None, packages: Sequence[str] = PACKAGES) -> list[str]:
    """The fetched jars, for ``spark.jars``; empty where they were not fetched, or for other versions."""
    folder = folder or jar_folder()
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return []
    if not isinstance(manifest, dict) or {**manifest, "jars": None} != {**_wanted(packages), "jars": None}:
        return []
    jars = [folder / name for name in manifest["jars"]]
    return [str(jar) for jar in jars] if all(jar.is_file() for jar in jars) else []


def jar_folder() -> Path:
    """Where the jars are kept: inside the Python environment, so that they go when it goes."""
    return Path(sys.prefix) / "share" / "strandline" / "jars"


def fetch(folder: Path | None = None, packages: Sequence[str] = PACKAGES) -> list[str]:
    """Fetches the jars unless they are there, and returns their paths."""
    folder = folder or jar_folder()
    if present := jar_paths(folder, packages):
        return present
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The new folder is filled beside the old one and takes its place whole.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".jars-") as scratch:
        filled = Path(scratch) / "filled"
        filled.mkdir()
        names = []
        for jar in _not_in_spark(_resolved(Path(scratch) / "ivy", packages)):
            shutil.copyfile(jar, filled / jar.name)
            names.append(jar.name)
        (filled / MANIFEST).write_text(
            json.dumps({**_wanted(packages), "jars": sorted(names)}, indent=2) + "\n", encoding="utf-8"
        )
        if folder.exists():
            folder.rename(Path(scratch) / "replaced")
        filled.rename(folder)
    return jar_paths(folder, packages)


def _wanted(packages: Sequence[str]) -> dict[str, object]:
    return {"packages": list(packages), "pyspark": version("pyspark")}


def _resolved(ivy: Path, packages: Sequence[str]) -> list[Path]:
    """Has Spark resolve the packages into an Ivy folder, and returns all jars it found."""
    # `spark-submit` resolves packages before it starts the application, and an empty one needs no session.
    ivy.mkdir()
    application = ivy / "nothing.py"
    application.touch()
    spark = _spark_home()
    command = [str(spark / "bin" / "spark-submit"), "--master", "local[1]"]
    command += ["--conf", f"spark.jars.ivy={ivy}", "--packages", ",".join(packages), str(application)]
    environment = {**os.environ, "SPARK_HOME": str(spark), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    jars = sorted((ivy / "jars").glob("*.jar"))
    if done.returncode != 0 or not jars:
        raise EngineError(
            "JARS_NOT_FETCHED",
            f"Spark's resolver could not fetch {', '.join(packages)}; its output ends below; "
            "check the network, or set DEFAULT_ARTIFACT_REPOSITORY to a mirror of Maven Central.",
            excerpt=_telling_lines(done.stdout + done.stderr),
        )
    return jars


def _telling_lines(output: str) -> str:
    """The end of the resolver's output, without empty lines and Java's stack traces."""
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("\tat ")]
    return "\n".join(lines[-20:])


def _not_in_spark(jars: list[Path]) -> list[Path]:
    """The jars whose artifact Spark does not bring itself: where it does, its own version is right."""
    brought = {_artifact(jar.stem) for jar in (_spark_home() / "jars").glob("*.jar")}
    # Ivy names a file <group>_<artifact>-<version>.jar, and a group has no underscore.
    return [jar for jar in jars if _artifact(jar.stem.split("_", 1)[1]) not in brought]


def _artifact(stem: str) -> str:
    """``delta-spark_4.1_2.13`` for ``delta-spark_4.1_2.13-4.4.0``: a version begins at a dash and a digit."""
    return re.split(r"-(?=\d)", stem, maxsplit=1)[0]


def _spark_home() -> Path:
    """The folder of the installed pyspark, found without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EngineError(
            "NO_PYSPARK", f"There is no pyspark in {sys.prefix}; install Strandline with its dependencies."
        )
    return Path(spec.origin).parent


def main(arguments: Sequence[str]) -> int:
    """Fetches the jars; says nothing where they are there already. ``--list`` says where they are."""
    if "--list" in arguments:
        print(",".join(jar_paths()))
        return 0
    if jar_paths():
        return 0
    print("fetching Spark jars (once) ...", flush=True)
    try:
        fetch()
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
