"""Where a PostgreSQL source is: a connection string as libpq reads it, written down or kept in the environment.

What libpq knows beyond the string applies as everywhere else: service files, ``PGHOST`` and its like, password files,
certificates, several hosts with ``target_session_attrs``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict

from strandline.errors import SourceError

FORMS = "host=db.example.com dbname=shop user=app, or postgresql://app@db.example.com:5432/shop"
SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DEFAULT_PORT = "5432"


@dataclass(frozen=True)
class Address:
    """A connection string, or the name of the environment variable that holds it. It keeps no secret itself."""

    dsn: str | None = None
    dsn_env: str | None = None

    def __post_init__(self) -> None:
        # What was written is not repeated in any of these: it may be, or hold, a password.
        if (self.dsn is None) == (self.dsn_env is None):
            raise _wrong("a PostgreSQL source has either a dsn or a dsn_env", "give one of them")
        if self.dsn_env is not None and not NAME.fullmatch(self.dsn_env):
            raise _wrong(
                "dsn_env is the name of an environment variable, not the connection string itself",
                "write for example dsn_env: SHOP_DSN",
            )
        if self.dsn is not None and any(_parsed(self.dsn, "dsn").get(name) for name in SECRETS):
            raise SourceError(
                "SOURCE_PASSWORD_IN_DSN",
                "the dsn holds a password, which would be kept in files and shown; a password belongs in the "
                "environment (dsn_env names a variable with the whole connection string) or in libpq's password file; "
                "take it out of the dsn and use one of these.",
            )

    def parameters(self) -> dict[str, str]:
        """What the connection string says, secrets included."""
        if self.dsn is not None:
            return _parsed(self.dsn, "dsn")
        assert self.dsn_env is not None
        text = os.environ.get(self.dsn_env, "").strip()
        if not text:
            raise SourceError(
                "SOURCE_DSN_UNSET",
                f"the environment variable {self.dsn_env}, named by dsn_env, is not set; it holds the connection "
                f"string, {FORMS}; export {self.dsn_env} before this command.",
            )
        return _parsed(text, f"the environment variable {self.dsn_env}")

    def __str__(self) -> str:
        """The place, without secrets: ``app@db.example.com:5432/shop``."""
        try:
            given = self.parameters()
        except SourceError:
            return f"${self.dsn_env}"
        if "service" in given and "host" not in given:
            return f"service {given['service']}"
        user = given.get("user") or os.environ.get("PGUSER", "")
        hosts = given.get("host") or given.get("hostaddr") or os.environ.get("PGHOST", "") or "localhost"
        ports = (given.get("port") or os.environ.get("PGPORT", "") or DEFAULT_PORT).split(",")
        each = hosts.split(",")
        ports = ports if len(ports) == len(each) else ports[:1] * len(each)
        place = ",".join(f"{host}:{port}" for host, port in zip(each, ports, strict=True))
        database = given.get("dbname") or os.environ.get("PGDATABASE", "") or user
        return (f"{user}@" if user else "") + place + (f"/{database}" if database else "")

    def redacted(self, text: str) -> str:
        """*text*, perhaps a driver's message, with every secret that we know of struck out."""
        try:
            given = self.parameters()
        except SourceError:
            given = {}
        # A password that is also the user's name is no longer one, and striking it out would hide the name.
        shown = {value for name, value in given.items() if name not in SECRETS}
        secrets = {given.get(name, "") for name in SECRETS} | {os.environ.get("PGPASSWORD", "")}
        for secret in secrets - shown - {""}:
            text = text.replace(secret, "***")
        return text


def _parsed(text: str, where: str) -> dict[str, str]:
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(text).items()}
    except (psycopg.Error, UnicodeError):
        raise _wrong(f"{where} is not a connection string", f"write {FORMS}") from None
    # An @ or / of a password that was not encoded ends up in what looks like a host, a port or a database.
    is_url = text.lstrip().startswith(("postgresql://", "postgres://"))
    if is_url and "@" in found.get("host", "") + found.get("dbname", ""):
        raise _wrong(
            f"{where} has a second @", "in a URL, write @ as %40 and / as %2F within user, password and database"
        )
    if any(port and not port.isdigit() for port in found.get("port", "").split(",")):
        raise _wrong(f"{where} has a port that is not a number", f"write {FORMS} (in a URL, / in a password is %2F)")
    return found


def _wrong(what: str, todo: str) -> SourceError:
    return SourceError("SOURCE_ADDRESS", f"{what}; {todo}.")
