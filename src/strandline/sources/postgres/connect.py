"""A connection to a PostgreSQL source, with the same session wherever and by whomever it is opened."""

from __future__ import annotations

import os

import psycopg
from psycopg.conninfo import make_conninfo

from strandline.sources.postgres.address import Address
from strandline.sources.postgres.faults import explained, refusal

APPLICATION = "strandline"
CONNECT_SECONDS = "10"

SESSION = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "1",
    "bytea_output": "hex",
}
"""How values are written as text; a role, a database or a server may have it otherwise."""

UNLESS_GIVEN = {
    "fallback_application_name": APPLICATION,
    # A server that is gone without a word is noticed in about a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Connection parameters that an address may set otherwise."""


def connect(address: Address, *, autocommit: bool = True, **parameters: str) -> psycopg.Connection:
    """Connect once; *parameters* of libpq (``replication="database"``) go before those of the address."""
    unless_given = {**UNLESS_GIVEN, "connect_timeout": os.environ.get("PGCONNECT_TIMEOUT", CONNECT_SECONDS)}
    given = {**unless_given, **address.parameters(), **parameters, "client_encoding": "UTF8"}
    try:
        connection = psycopg.connect(make_conninfo(**given), autocommit=True)
    except psycopg.Error as error:
        raise refusal(error, address) from None
    try:
        with explained(address):
            connection.execute(set_session().encode())
            connection.autocommit = autocommit
    except BaseException:
        connection.close()
        raise
    return connection


def set_session() -> str:
    """The statements that make a session write values as ours do.

    They are sent as statements, not as start-up ``options``: poolers do not pass those on.
    """
    return "; ".join(f"SET {name} = '{value}'" for name, value in SESSION.items())
