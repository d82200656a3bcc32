"""The errors a user can meet.

Every message has the form ``[CODE] what happened; what exists; what to do.``
There is one class per family; the code inside the family is stable and may be matched by programs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """Where a definition was written: a file (or ``<sql>``), a line and a column, both from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class StrandlineError(Exception):
    """Base of all errors raised on purpose."""

    def __init__(self, code: str, message: str, *, origin: Origin | None = None, excerpt: str | None = None) -> None:
        self.code = code
        self.message = message
        self.origin = origin
        self.excerpt = excerpt
        super().__init__(self.__str__())

    def __str__(self) -> str:
        where = f"{self.origin}: " if self.origin else ""
        shown = f"\n{self.excerpt}" if self.excerpt else ""
        return f"{where}[{self.code}] {self.message}{shown}"

    def to_dict(self) -> dict[str, object]:
        """The error as the ``--json`` outputs show it."""
        return {
            "code": self.code,
            "message": self.message,
            "file": self.origin.file if self.origin else None,
            "line": self.origin.line if self.origin else None,
            "column": self.origin.column if self.origin else None,
        }


class ProjectError(StrandlineError):
    """The project folder or one of its files is not as it must be."""


class SqlError(StrandlineError):
    """A statement or a view definition cannot be accepted."""


class SourceError(StrandlineError):
    """A source cannot be reached, or does not offer what is asked of it."""


class DifferentialError(StrandlineError):
    """Two snapshots cannot be compared, or not in the way that is asked for."""


class CatalogError(StrandlineError):
    """The control catalog cannot be used, or refuses a change."""


class EngineError(StrandlineError):
    """Spark cannot be started or cannot do what is asked of it."""


class StoreError(StrandlineError):
    """A table of the warehouse is not in the state the catalog says."""


class RefreshError(StrandlineError):
    """A refresh cannot be planned or carried out."""


class IntegrateError(StrandlineError):
    """A view over sources that are not copied cannot be maintained as asked, or a trace of it is wrong."""
