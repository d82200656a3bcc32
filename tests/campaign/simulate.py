"""Random cases through every maintenance algorithm: the promised level, every time; what fails is shrunk.

``python -m tests.campaign.simulate [CASES] [SEED]``
"""

from __future__ import annotations

import sys
import time
from random import Random

from strandline.integrate.algorithms import create
from tests.integrate.shrinking import shrunk
from tests.integrate.simulation import PROMISING, assert_as_promised, case_for, options_for, simulated


def smallest(name: str, seed: int) -> str:
    """The failure of *seed* made small."""
    random = Random(seed)
    case = case_for(name, random)
    options = options_for(case, random)
    promised = create(name, case.view, options=options).promises
    assert promised is not None
    found = shrunk(name, case, options, promised)
    return "it fails in this order of events only" if found is None else str(found)


def main(cases: int, seed: int) -> int:
    failed = []
    for name in PROMISING:
        began = time.monotonic()
        for number in range(seed, seed + cases):
            try:
                assert_as_promised(name, Random(number), forgetful=number % 10 == 0)
            except AssertionError as error:
                failed.append(name)
                print(f"{name}: seed {number} fails: {error}\n{smallest(name, number)}", flush=True)
                break
        else:
            print(f"{name:<21} {cases} cases {time.monotonic() - began:6.0f} s: as promised, every time", flush=True)
    for name in ("basic", "eca-key-as-printed"):
        caught = sum(not simulated(name, Random(number))[1].reaches("STRONG") for number in range(seed, seed + cases))
        print(f"{name:<21} {cases} cases: {caught} are not strongly consistent", flush=True)
        if not caught:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, int(sys.argv[2]) if len(sys.argv) > 2 else 1))
