"""What cannot be said in SQL, as errors that name it."""

from __future__ import annotations

from strandline.errors import SqlError


def refused(what: str, instead: str = "write the view as SQL") -> SqlError:
    """The error for a part of a DataFrame that has no SQL text."""
    return SqlError("DATAFRAME_NOT_SQL", f"{what} cannot be turned into SQL; {instead}.")
