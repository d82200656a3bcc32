"""The same source for Spark, which reads it through JDBC.

PostgreSQL's JDBC driver looks up no service files and no libpq environment, so a connection of ours is opened and
asked what it found. Paths of certificates are passed on: they must exist where Spark's executors run.

The driver sets TimeZone (to that of its JVM), DateStyle and client_encoding itself when it connects, and the server
lets these win over the start-up ``options`` [seen with 42.7.7]. So the session is set by statements, which Spark sends
on each connection before it reads.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, urlencode

from strandline.errors import SourceError
from strandline.sources.postgres.address import DEFAULT_PORT, Address
from strandline.sources.postgres.connect import APPLICATION, connect, set_session

DRIVER = "org.postgresql.Driver"

_NAMES = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslnegotiation": "sslNegotiation",
    "channel_binding": "channelBinding",
    "gssencmode": "gssEncMode",
    "krbsrvname": "kerberosServerName",
    "connect_timeout": "connectTimeout",
    "options": "options",
}
"""libpq's parameters, as the driver calls them; what is not here has no counterpart there."""

_SERVER_TYPES = {
    "any": "any",
    "read-write": "primary",
    "primary": "primary",
    "read-only": "secondary",
    "standby": "secondary",
    "prefer-standby": "preferSecondary",
}


def jdbc_options(address: Address) -> dict[str, str]:
    """The options of Spark's ``jdbc`` format that reach *address*; they hold the password, apart from the URL.

    A caller's own ``sessionInitStatement`` goes after this one, joined by a semicolon.
    """
    with connect(address) as connection:
        info = connection.info
        found = info.get_parameters()
        secrets = {"password": info.password, "sslpassword": found.get("sslpassword", "")}
        user, database, live = info.user, info.dbname, (info.host, str(info.port))
    parameters = {
        "ApplicationName": found.get("application_name", APPLICATION),
        "tcpKeepAlive": "true",
        **{_NAMES[name]: value for name, value in found.items() if name in _NAMES},
        **_which_host(found),
        **_tls_files(found),
    }
    return {
        "url": f"jdbc:postgresql://{_hosts(address, found, live)}/{quote(database, safe='')}?{_query(parameters)}",
        "driver": DRIVER,
        "user": user,
        **{name: secret for name, secret in secrets.items() if secret},
        "sessionInitStatement": set_session(),
    }


def _hosts(address: Address, found: dict[str, str], live: tuple[str, str]) -> str:
    """All hosts, for the driver to choose from as libpq did; the connection itself knows only the one it has."""
    given = address.parameters()
    hosts = (given.get("host") or os.environ.get("PGHOST", "") or found.get("host", "")).split(",")
    ports = (given.get("port") or os.environ.get("PGPORT", "") or found.get("port", "") or DEFAULT_PORT).split(",")
    if len(hosts) == 1:
        hosts, ports = [live[0]], [live[1]]
    elif len(ports) == 1:
        ports = ports * len(hosts)
    for host in hosts:
        if host.startswith(("/", "@")):
            raise SourceError(
                "SOURCE_NEEDS_TCP",
                f"PostgreSQL at {address} is reached through a unix socket; Spark reads it through JDBC, which needs "
                "TCP; name a host that the server listens on, localhost for example.",
            )
    return ",".join(
        f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)
    )


def _which_host(found: dict[str, str]) -> dict[str, str]:
    wanted = _SERVER_TYPES.get(found.get("target_session_attrs", "any"), "any")
    balance = {"loadBalanceHosts": "true"} if found.get("load_balance_hosts") == "random" else {}
    return {**balance, **({"targetServerType": wanted} if wanted != "any" else {})}


def _tls_files(found: dict[str, str]) -> dict[str, str]:
    """Where the driver wants something else than libpq."""
    changed = {}
    if found.get("sslrootcert") == "system":
        changed = {"sslrootcert": "", "sslfactory": "org.postgresql.ssl.DefaultJavaSSLFactory"}
    elif "sslrootcert" in found and found.get("sslmode") == "require":
        # With a root certificate at hand libpq verifies it although it need not; the driver does as it is told.
        changed = {"sslmode": "verify-ca"}
    if "sslkey" in found and not found["sslkey"].endswith((".pk8", ".p12", ".der")):
        changed["sslkey"] = str(_pk8(Path(found["sslkey"])))
    return changed


def _pk8(key: Path) -> Path:
    """The key file for Java beside the one for libpq: the driver does not read PEM."""
    wanted = key.with_suffix(".pk8")
    if not wanted.exists():
        raise SourceError(
            "SOURCE_KEY_FORMAT",
            f"the key {key} is not in a form that Java reads, and there is no {wanted.name} beside it; make it with "
            f"openssl pkcs8 -topk8 -inform PEM -outform DER -nocrypt -in {key} -out {wanted}.",
        )
    return wanted


def _query(parameters: dict[str, str]) -> str:
    return urlencode({name: value for name, value in parameters.items() if value}, quote_via=quote)
