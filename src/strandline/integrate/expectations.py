"""What a trace says should happen, against what happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """Something that went otherwise than the trace says."""

    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.what}: the trace says {self.expected}, and it is {self.found}"


def unequal(what: str, said: Sequence[str] | None, found: Sequence[str]) -> Iterator[Difference]:
    """A difference, if something was said and it is not what was found."""
    if said is not None and list(said) != list(found):
        yield Difference(what, " ".join(said) or "nothing", " ".join(found) or "nothing")


def unequal_by_number(
    what: str, said: Mapping[str, str | list[str]] | None, found: Mapping[str, list[str]]
) -> Iterator[Difference]:
    """The differences among texts by the number of an update."""
    if said is None:
        return
    for number in sorted({*said, *found}, key=lambda number: (len(number), number)):
        wanted = said.get(number, [])
        yield from unequal(f"{what}.{number}", [wanted] if isinstance(wanted, str) else wanted, found.get(number, []))
