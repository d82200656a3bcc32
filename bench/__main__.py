"""Benchmarks: ``python -m bench [NAME ...]``. Each prints a table and writes JSON below ``bench/results``.

Everything that is compared runs side by side in one process; nothing here asserts a time.
"""

from __future__ import annotations

import sys

from bench import capture, choice, copy, differential, integrate, noop, refresh, vdag, whips

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
}

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    for name in wanted:
        BENCHMARKS[name]()
