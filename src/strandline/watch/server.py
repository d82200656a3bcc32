"""A small HTTP server in a thread of its own: /metrics for Prometheus, /healthz for whoever restarts the process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from strandline.errors import ProjectError
from strandline.watch.health import Health

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


@contextmanager
def serving(host: str, port: int, registry: CollectorRegistry, health: Health) -> Iterator[int]:
    """Within, the server answers; the port it has, which with 0 is any that is free."""
    server_class = _SixServer if ":" in host else _Server
    try:
        server = make_server(host, port, _application(registry, health), server_class, _Quiet)
    except OSError as error:
        raise ProjectError(
            "METRICS_PORT",
            f"metrics cannot be served at {host}:{port}: {error.strerror}; name another port with --metrics-port.",
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="strandline-metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _application(registry: CollectorRegistry, health: Health) -> WSGIApplication:
    metrics: Callable[..., Any] = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            found: Iterable[bytes] = metrics(environ, start)
            return found
        problem = health.problem()
        status, text = ("200 OK", "ok") if problem is None else ("503 Service Unavailable", problem)
        if path != "/healthz":
            status, text = "404 Not Found", "there are /metrics and /healthz"
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{text}\n".encode()]

    return answer


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _SixServer(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write no line for each request."""
