"""The maintenance algorithms by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline.errors import IntegrateError
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.basic import Basic
from strandline.integrate.c_strobe import CStrobe
from strandline.integrate.eca import Eca
from strandline.integrate.eca_key import EcaKey, EcaKeyAsPrinted
from strandline.integrate.eca_local import EcaLocal
from strandline.integrate.grouped import Grouped
from strandline.integrate.grouped_by_frequency import GroupedByFrequency
from strandline.integrate.keyed_groups import KeyedGroups
from strandline.integrate.lca import Lca
from strandline.integrate.parallel_groups import ParallelGroups
from strandline.integrate.partition import Partition, busy, equal_partition
from strandline.integrate.rv import Rv
from strandline.integrate.sc import Sc
from strandline.integrate.strobe import Strobe
from strandline.integrate.sweep import Sweep
from strandline.integrate.view import View


@dataclass(frozen=True)
class Options:
    """What some algorithms can be told: rv recomputes *every* so many updates; groups have *group_size* sources.

    *frequencies* are update rates by source; *groups*, if given, are the groups themselves. With *split*, ECA evaluates
    terms without a relation at the warehouse.
    """

    every: int = 1
    split: bool = True
    group_size: int = 2
    frequencies: Mapping[str, float] = field(default_factory=dict)
    groups: Partition = ()

    def equal_groups(self, view: View) -> Partition:
        """The groups that were given, or groups of neighbours."""
        return self.groups or equal_partition(view.sources, self.group_size)

    def busy_groups(self, view: View) -> tuple[int, ...]:
        """Those of the equal groups that are updated most."""
        return busy(self.equal_groups(view), self.rates(view))

    def rates(self, view: View) -> Mapping[str, float]:
        """The update rate of every source; 1 where none is told."""
        return {source: self.frequencies.get(source, 1.0) for source in view.sources}


Maker = Callable[[View, Any, Options], Algorithm[Any]]

ALGORITHMS: dict[str, Maker] = {
    "basic": lambda view, state, options: Basic(view, state),
    "rv": lambda view, state, options: Rv(view, state, every=options.every),
    "sc": lambda view, state, options: Sc(view, state),
    "eca": lambda view, state, options: Eca(view, state, split=options.split),
    "eca-key": lambda view, state, options: EcaKey(view, state),
    "eca-key-as-printed": lambda view, state, options: EcaKeyAsPrinted(view, state),
    "eca-local": lambda view, state, options: EcaLocal(view, state),
    "lca": lambda view, state, options: Lca(view, state),
    "strobe": lambda view, state, options: Strobe(view, state),
    "c-strobe": lambda view, state, options: CStrobe(view, state),
    "sweep": lambda view, state, options: Sweep(view, state),
    "grouped": lambda view, state, options: Grouped(view, state, sources=options.equal_groups(view)),
    "grouped-by-frequency": lambda view, state, options: (
        Grouped(view, state, sources=options.groups)
        if options.groups
        else GroupedByFrequency(
            view, state, frequencies=options.rates(view), count=math.ceil(len(view.sources) / options.group_size)
        )
    ),
    "parallel-groups": lambda view, state, options: ParallelGroups(view, state, sources=options.equal_groups(view)),
    "keyed-groups": lambda view, state, options: KeyedGroups(
        view, state, sources=options.equal_groups(view), special=options.busy_groups(view)
    ),
}


ON_REAL_SOURCES = (
    "eca",
    "eca-key",
    "lca",
    "strobe",
    "c-strobe",
    "sweep",
    "grouped",
    "grouped-by-frequency",
    "parallel-groups",
    "keyed-groups",
)
"""Those that keep a promise over sources that can be asked: what the property ``strandline.algorithm`` may name."""


def create(name: str, view: View, *, state: object = None, options: Options | None = None) -> Algorithm[Any]:
    """The algorithm of that name for *view*, going on from *state* if there is one."""
    if name not in ALGORITHMS:
        raise IntegrateError(
            "UNKNOWN_ALGORITHM", f"there is no algorithm {name!r}; there are {', '.join(ALGORITHMS)}; name one of them."
        )
    return ALGORITHMS[name](view, state, options or Options())
