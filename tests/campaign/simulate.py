"""Random cases through every maintenance algorithm: the promised level, every time; what fails is shrunk.

``python -m tests.campaign.simulate [CASES] [SEED]``
"""

from __future__ import annotations

import sys
import time
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integrate.simulation import PROMISING, assert_as_promised, simulated


def shrunk(name: str) -> None:
    """Look for a failure of *name* once more, in a way that ends with the smallest one."""

    # Hypothesis draws what the generator asks of its random numbers.
    @settings(max_examples=5000, deadline=None, database=None)
    @given(st.randoms(use_true_random=False))
    def as_promised(random: Random) -> None:
        assert_as_promised(name, random)

    as_promised()


def main(cases: int, seed: int) -> int:
    failed = []
    for name in PROMISING:
        began = time.monotonic()
        for number in range(seed, seed + cases):
            try:
                assert_as_promised(name, Random(number), forgetful=number % 10 == 0)
            except AssertionError as error:
                failed.append(name)
                print(f"{name}: seed {number} fails: {error}", flush=True)
                break
        else:
            print(f"{name:<21} {cases} cases {time.monotonic() - began:6.0f} s: as promised, every time", flush=True)
    for name in ("basic", "eca-key-as-printed"):
        caught = sum(not simulated(name, Random(number))[1].reaches("STRONG") for number in range(seed, seed + cases))
        print(f"{name:<21} {cases} cases: {caught} are not strongly consistent", flush=True)
        if not caught:
            failed.append(name)
    for name in failed:
        if name in PROMISING:
            shrunk(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, int(sys.argv[2]) if len(sys.argv) > 2 else 1))
