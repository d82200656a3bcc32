"""Servers of the protocol Spark Connect: where they are."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit


def server_of(asked: Any) -> str | None:
    """The host of the server at an address, or behind a session; None if there is none, as it is no one of Connect."""
    if isinstance(asked, str):
        return urlsplit(asked).hostname
    if not type(asked).__module__.startswith("pyspark.sql.connect"):
        return None
    return str(asked.client.host)


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine by its name; a tunnel to another one looks the same."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
