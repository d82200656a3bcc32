"""TLS in front of a server that was built without it, and the certificates for it."""

from __future__ import annotations

import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SSL_REQUEST = (8).to_bytes(4) + (80877103).to_bytes(4)


def certificate(folder: Path, name: str) -> Path:
    """A certificate that is its own root, for this host; its key is beside it."""
    made = folder / f"{name}.crt"
    key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        str(made.with_suffix(".key")),
    ]
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-out", str(made)]
    subprocess.run(["openssl", "req", "-x509", *key, *subject], check=True, capture_output=True)
    return made


@contextmanager
def tls_in_front(port: int, certificate: Path) -> Iterator[int]:
    """A port that speaks PostgreSQL's TLS with its clients, and passes what they say to the server on *port*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=_serve, args=(client, context, port), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        # On Linux, closing alone does not wake a thread that accepts.
        listening.shutdown(socket.SHUT_RDWR)


def _serve(client: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with client, suppress(OSError):
        if client.recv(8, socket.MSG_WAITALL) != _SSL_REQUEST:
            return
        client.sendall(b"S")
        with (
            context.wrap_socket(client, server_side=True) as secure,
            socket.create_connection(("127.0.0.1", port)) as server,
        ):
            _pass_on(secure, server)


def _pass_on(secure: ssl.SSLSocket, server: socket.socket) -> None:
    while True:
        ready = [secure] if secure.pending() else select.select([secure, server], [], [])[0]
        for source, target in ((secure, server), (server, secure)):
            if source in ready:
                said = source.recv(65536)
                if not said:
                    return
                target.sendall(said)
