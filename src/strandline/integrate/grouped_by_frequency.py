"""Groups of about equal summed update frequency (Wang et al., section 4.4): complete in order of arrival.

F_Part puts the most-updated sources into the smallest groups, where an update has least to visit. It can be worse than
the equal partition, so the better of the two is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from strandline.integrate.grouped import Grouped, GroupedState
from strandline.integrate.partition import by_frequency
from strandline.integrate.view import View


class GroupedByFrequency(Grouped):
    """At most *count* groups, cut by *frequencies*, the update rates of the sources."""

    name: ClassVar[str] = "grouped-by-frequency"

    def __init__(
        self, view: View, state: GroupedState | None = None, *, frequencies: Mapping[str, float], count: int
    ) -> None:
        super().__init__(view, state, sources=by_frequency(view, frequencies, count))
