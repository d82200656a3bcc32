"""Where a catalog is: a URL that was understood, and that is shown without its secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from strandline.errors import CatalogError

KINDS = "sqlite:///path/to/file and postgresql+psycopg://user@host/database"
SECRET_OPTIONS = ("password", "sslpassword")


@dataclass(frozen=True)
class Address:
    """The place of a catalog."""

    url: URL

    @property
    def is_sqlite(self) -> bool:
        """Whether the catalog is a SQLite file; otherwise it is in PostgreSQL."""
        return self.url.get_backend_name() == "sqlite"

    def __str__(self) -> str:
        return self.url.set(query={}).render_as_string(hide_password=True)

    def redacted(self, text: str) -> str:
        """*text*, perhaps a driver's message, with every secret of the URL struck out."""
        for secret in self._secrets():
            for spelling in (secret, quote(secret, safe=""), quote_plus(secret)):
                text = text.replace(spelling, "***")
        return text

    def _secrets(self) -> list[str]:
        found = [self.url.password or ""]
        for option in SECRET_OPTIONS:
            value = self.url.query.get(option, "")
            found.extend([value] if isinstance(value, str) else value)
        return [secret for secret in found if secret]


def unavailable(where: str, reason: str) -> CatalogError:
    """``CATALOG_UNAVAILABLE``: the catalog cannot be used at all."""
    return CatalogError(
        "CATALOG_UNAVAILABLE",
        f"the catalog {where} cannot be used: {reason}; a catalog is at {KINDS}; "
        "check the address and that its database can be reached.",
    )


def parse(text: str) -> Address:
    """The address that *text* writes."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text is not repeated: what cannot be parsed cannot be cleared of its password.
        raise unavailable("URL", "it is not a database URL") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        if url.database in (None, "", ":memory:"):
            raise unavailable(str(Address(url)), "a catalog in memory cannot be shared between processes")
        return Address(url)
    if url.drivername != "postgresql+psycopg":
        raise unavailable(str(Address(url)), f"{url.drivername} is not a kind of catalog")
    return Address(url)


def make_folder(address: Address) -> None:
    """Make the folder of a SQLite file."""
    if address.is_sqlite and address.url.database and not address.url.database.startswith("file:"):
        try:
            Path(address.url.database).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unavailable(str(address), f"its folder cannot be made ({error.strerror})") from None
