"""Benchmarks: ``python -m bench [NAME ...]``. Each prints a table and writes JSON below ``bench/results``.

Everything that is compared runs side by side in one process; nothing here asserts a time.
"""

from __future__ import annotations

import os
import sys
from unittest import mock

from bench import capture, choice, copy, differential, freshness, grow, integrate, noop, refresh, tpch, vdag, whips

BENCHMARKS = {
    "refresh": refresh.run,
    "noop": noop.run,
    "capture": capture.run,
    "copy": copy.run,
    "differential": differential.run,
    "integrate": integrate.run,
    "whips": whips.run,
    "choice": choice.run,
    "vdag": vdag.run,
    "tpch": tpch.run,
    "freshness": freshness.run,
    "grow": grow.run,
}

ALSO_CALLED = {
    "tpch-refresh": ("tpch", {}),
    "install": ("whips", {"PARTS": "duplicates,deletions"}),
    "aggregates": ("whips", {"PARTS": "aggregates"}),
}
"""Names of parts of others: the benchmark, and what is set in the environment for it."""


def run(name: str) -> None:
    """Run one benchmark; what the environment says goes before what its name means.

    The environment is put back, so that the next one does not go by it.
    """
    name, settings = ALSO_CALLED.get(name, (name, {}))
    with mock.patch.dict(os.environ, {**settings, **os.environ}):
        BENCHMARKS[name]()


if __name__ == "__main__":
    wanted = sys.argv[1:] or list(BENCHMARKS)
    known = {**BENCHMARKS, **ALSO_CALLED}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are: {', '.join(known)}")
    for name in wanted:
        run(name)
