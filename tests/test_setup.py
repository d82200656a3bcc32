"""What `make setup` says of the Java and the Python it finds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHELL = shutil.which("sh") or "/bin/sh"

JAVA_8 = 'openjdk version "1.8.0_392"'
JAVA_11 = 'openjdk version "11.0.21" 2023-10-17'
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_21 = 'java version "21" 2023-09-19 LTS'
JAVA_25 = 'openjdk version "25-ea" 2025-09-16'


def run_check(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a check script with nothing in its environment but what is given."""
    command = [SHELL, str(ROOT / "scripts" / script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def write_program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{SHELL}\n{body}\n")
    path.chmod(0o755)
    return path


def write_java(folder: Path, *lines: str) -> Path:
    """A `java` that prints these lines as its version, to standard error as the real one does."""
    return write_program(folder / "java", "\n".join(f"echo '{line}' >&2" for line in lines))


def test_no_java_is_an_error_that_says_how_to_get_one(tmp_path: Path) -> None:
    done = run_check("check_java.sh", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "Found: no java on the PATH, and JAVA_HOME is not set." in done.stderr
    for hint in ("apt install", "brew install", "sdk install", "set JAVA_HOME"):
        assert hint in done.stderr


@pytest.mark.parametrize("line", [JAVA_8, JAVA_11])
def test_an_old_java_is_an_error_that_names_version_and_place(tmp_path: Path, line: str) -> None:
    java = write_java(tmp_path, line, "OpenJDK Runtime Environment")
    done = run_check("check_java.sh", PATH=str(tmp_path))
    assert done.returncode == 1
    assert f"Found: {line}, at {java} (from the PATH)." in done.stderr
    assert "needs Java 17 or newer" in done.stderr


@pytest.mark.parametrize("line", [JAVA_17, JAVA_21, JAVA_25])
def test_a_new_enough_java_passes_in_silence(tmp_path: Path, line: str) -> None:
    write_java(tmp_path, "Picked up JAVA_TOOL_OPTIONS: -Xmx1g", line)
    done = run_check("check_java.sh", PATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    old = write_java(tmp_path / "old" / "bin", JAVA_11).parent.parent
    new = write_java(tmp_path / "new" / "bin", JAVA_17).parent.parent
    assert run_check("check_java.sh", PATH=str(old / "bin"), JAVA_HOME=str(new)).returncode == 0
    done = run_check("check_java.sh", PATH=str(new / "bin"), JAVA_HOME=str(old))
    assert done.returncode == 1
    assert f"{old}/bin/java (from JAVA_HOME)" in done.stderr


def test_a_java_home_without_java_is_an_error(tmp_path: Path) -> None:
    write_java(tmp_path / "bin", JAVA_17)
    done = run_check("check_java.sh", PATH=str(tmp_path / "bin"), JAVA_HOME=str(tmp_path / "gone"))
    assert done.returncode == 1
    assert f"JAVA_HOME is {tmp_path / 'gone'}, but there is no program" in done.stderr


def test_a_java_that_tells_no_version_is_an_error(tmp_path: Path) -> None:
    write_java(tmp_path, "Unable to locate a Java Runtime.")
    done = run_check("check_java.sh", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "Unable to locate a Java Runtime." in done.stderr


def test_java_is_checked_before_python(tmp_path: Path) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    python = write_program(tmp_path / "python3", "echo python was asked >&2; exit 1")
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "gone")}
    command = [make, "-C", str(ROOT), "prerequisites", f"PYTHON={python}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "needs Java 17 or newer" in done.stderr
    assert "python was asked" not in done.stderr


def test_this_python_passes() -> None:
    done = run_check("check_python.sh", sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_missing_python_is_an_error(tmp_path: Path) -> None:
    done = run_check("check_python.sh", "python3", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "Found: no program python3." in done.stderr
    assert "make setup PYTHON=" in done.stderr


def test_an_old_python_is_an_error_that_names_version_and_place(tmp_path: Path) -> None:
    answers = 'case "$2" in *print*) echo 3.9.18 ;; *) exit 1 ;; esac'
    python = write_program(tmp_path / "python3", answers)
    done = run_check("check_python.sh", "python3", PATH=str(tmp_path))
    assert done.returncode == 1
    assert f"Found: Python 3.9.18, at {python}." in done.stderr


def test_a_python_without_venv_names_the_package_that_has_it(tmp_path: Path) -> None:
    answers = 'case "$2" in *print*) echo 3.11.2 ;; *ensurepip*) exit 1 ;; esac'
    write_program(tmp_path / "python3", answers)
    done = run_check("check_python.sh", "python3", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr
