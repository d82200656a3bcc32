"""What goes wrong between us and PostgreSQL, told as errors of ours: which of them pass, and which need someone.

A server says what went wrong by its SQLSTATE. Of a connection that was never made libpq gives the text alone, in the
server's language; where that is not English, only what the client says is understood, and the server's own words
are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from strandline.errors import SourceError
from strandline.sources.postgres.address import Address

TRANSIENT = frozenset({"SOURCE_UNREACHABLE", "SOURCE_LOST", "SOURCE_BUSY"})
"""Codes of faults that may be gone a little later."""

_CODES = {
    "28000": "SOURCE_LOGIN",
    "28P01": "SOURCE_LOGIN",
    "3D000": "SOURCE_DATABASE",
    "57P04": "SOURCE_DATABASE",  # dropped while we were connected
    "42501": "SOURCE_PRIVILEGE",
    "25006": "SOURCE_READ_ONLY",
    "57014": "SOURCE_CANCELLED",
    "25P04": "SOURCE_CANCELLED",  # transaction_timeout
    "25P03": "SOURCE_LOST",  # idle in a transaction for too long
    "57P01": "SOURCE_LOST",  # shutting down, or ended by an administrator
    "57P02": "SOURCE_LOST",  # another process of the server crashed
    "57P03": "SOURCE_LOST",  # starting up
    "57P05": "SOURCE_LOST",  # idle for too long
    "53300": "SOURCE_BUSY",  # too many connections
    "55006": "SOURCE_BUSY",  # a slot that another session reads
    "55P03": "SOURCE_BUSY",  # a lock that another session holds
    "40001": "SOURCE_BUSY",  # serialization
    "40P01": "SOURCE_BUSY",  # deadlock
}
_CLASSES = {"08": "SOURCE_LOST"}

# Looked for in this order in the text of a failed connection.
_TEXTS = (
    ("SOURCE_LOST", "database system is (starting up|shutting down|in recovery|not( yet)? accepting)"),
    ("SOURCE_BUSY", "too many clients|connection slots are reserved|too many connections for"),
    ("SOURCE_LOGIN", "authentication failed|no password supplied|pg_hba.conf|not permitted to log in"),
    ("SOURCE_LOGIN", 'role ".*" does not exist|authentication method requirement|channel binding'),
    ("SOURCE_PRIVILEGE", "permission denied"),
    ("SOURCE_DATABASE", 'database ".*" (does not exist|is not currently accepting)'),
    ("SOURCE_ADDRESS", "service file|definition of service|invalid .*value|invalid port|could not match|unrecognized"),
    # A connection that breaks while TLS is being set up is no fault of the certificates.
    ("SOURCE_UNREACHABLE", "SSL SYSCALL|unexpected eof|closed the connection|closed unexpectedly"),
    ("SOURCE_TLS", "certificate|private key|SSL"),
)

_ADVICE = {
    "SOURCE_UNREACHABLE": "check host and port, that the server runs, and that it can be reached from here.",
    "SOURCE_LOGIN": "check user and password (dsn_env, a password file or PGPASSWORD), and the server's pg_hba.conf.",
    "SOURCE_TLS": "check sslmode, sslrootcert, sslcert and sslkey of the connection string.",
    "SOURCE_DATABASE": "check dbname in the connection string.",
    "SOURCE_PRIVILEGE": "ask an administrator to grant it; strandline source check prints the statements.",
    "SOURCE_READ_ONLY": "name the primary, or all hosts with target_session_attrs=read-write.",
    "SOURCE_CANCELLED": "look at statement_timeout and transaction_timeout of the user and the database.",
    "SOURCE_LOST": "try again once the server is up.",
    "SOURCE_BUSY": "try again later; if it stays so, look in pg_stat_activity for who is in the way.",
    "SOURCE_ADDRESS": "correct the connection string.",
    "SOURCE_REFUSED": "look at the connection string and the server's log.",
    "SOURCE_FAILED": "look at the server's log.",
}

_HAPPENED = {
    "SOURCE_UNREACHABLE": "cannot be reached",
    "SOURCE_LOGIN": "did not let us in",
    "SOURCE_TLS": "cannot be reached over TLS as asked",
    "SOURCE_DATABASE": "has no such database",
    "SOURCE_PRIVILEGE": "does not permit it",
    "SOURCE_READ_ONLY": "can only be read, as a standby is",
    "SOURCE_CANCELLED": "cancelled what we asked",
    "SOURCE_LOST": "broke off, or is not up",
    "SOURCE_BUSY": "is busy",
    "SOURCE_ADDRESS": "cannot be reached as written",
    "SOURCE_REFUSED": "refused the connection",
    "SOURCE_FAILED": "failed",
}

_NO_CONNECTION = re.compile(r"connection failed|connection is bad|connection timeout|failed to resolve|could not match")
_FROM_SERVER = re.compile(r"failed: \S+:  ")
# What libpq and psycopg wrap around the cause.
_WRAPPING = re.compile(
    r"connection (failed|is bad): |connection to server .*? failed: |FATAL:  |Is the server running .*?\?"
)
_SEVERAL = "All failures were:"


@contextmanager
def explained(address: Address) -> Iterator[None]:
    """Tell the database's errors as ours. What a server has no part in, a mistake of the caller, passes as it is."""
    try:
        yield
    except psycopg.Error as error:
        code = _code(error)
        if code is None:
            raise
        # The chain is cut: the driver's error holds the connection string.
        raise _fault(code, error, address) from None


def refusal(error: psycopg.Error, address: Address) -> SourceError:
    """Why a connection was not made."""
    code = _code(error) or "SOURCE_ADDRESS"
    if code == "SOURCE_REFUSED" and _rejects(address):
        code = "SOURCE_LOST"
    return _fault(code, error, address)


def is_transient(error: BaseException) -> bool:
    """Whether *error*, ours or the driver's, may be gone a little later."""
    code = error.code if isinstance(error, SourceError) else _code(error) if isinstance(error, psycopg.Error) else None
    return code in TRANSIENT


def _code(error: psycopg.Error) -> str | None:
    if error.sqlstate:
        return _CODES.get(error.sqlstate) or _CLASSES.get(error.sqlstate[:2], "SOURCE_FAILED")
    if not isinstance(error, psycopg.OperationalError):
        return None
    return _code_of_text(str(error)) if _NO_CONNECTION.match(str(error)) else "SOURCE_LOST"


def _code_of_text(text: str) -> str:
    """Why a connection was not made; what is not understood is the server's if the server said it."""
    cause = _WRAPPING.sub("", text)
    for code, pattern in _TEXTS:
        if re.search(pattern, cause):
            return code
    return "SOURCE_REFUSED" if _FROM_SERVER.search(text) else "SOURCE_UNREACHABLE"


def _rejects(address: Address) -> bool:
    """Whether the server turns everyone away for now; libpq knows without understanding the words."""
    answer = pq.PGconn.ping(make_conninfo(**address.parameters()).encode())
    return answer == pq.Ping.REJECT


def _fault(code: str, error: psycopg.Error, address: Address) -> SourceError:
    return SourceError(
        code,
        f"PostgreSQL at {address} {_HAPPENED[code]}: {address.redacted(_said(error))}; {_ADVICE[code]}",
    )


def _said(error: psycopg.Error) -> str:
    """The gist of what was said: by the server, if it was the server, else by the driver."""
    if error.diag.message_primary:
        return " ".join(part.rstrip(".") for part in (error.diag.message_primary, error.diag.message_detail) if part)
    text = str(error)
    if _SEVERAL in text:
        text = text[text.index(_SEVERAL) + len(_SEVERAL) :]
    lines = [" ".join(line.split()).removeprefix("- ").rstrip(".") for line in _WRAPPING.sub("", text).splitlines()]
    return ", ".join(dict.fromkeys(line for line in lines if line)) or "nothing more is known"
