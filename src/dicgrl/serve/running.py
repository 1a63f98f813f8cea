"""The server's process: an address, signals, a graceful end."""

from __future__ import annotations

import gc
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from dicgrl.errors import FailureError
from dicgrl.serve.app import create_app
from dicgrl.serve.connections import bounded
from dicgrl.serve.options import ServeOptions

_LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")
_PATIENCE = 10  # seconds for requests that have begun, at the end


def run_server(
    folder: Path,
    host: str,
    port: int,
    options: ServeOptions,
    on_ready: Callable[[str], None],
    hosts: Sequence[str] = (),
) -> None:
    """Serve a run until a signal ends it; requests that have begun are answered.

    Args:
        folder: The run.
        host: The address to listen at.
        port: The port; a free one for 0.
        options: How it is served.
        on_ready: Told the address when questions can be asked.
        hosts: Further names under which it may be called; at a local address only those of this
            machine are allowed unless given.

    Raises:
        FailureError: Nobody can listen there.
    """
    listener = _listener(host, port)
    names = [*hosts, host, *_LOCAL] if hosts or host in _LOCAL else []
    app = create_app(folder, options, [name.lower() for name in names])
    gc.collect()
    gc.freeze()  # what is there stays; to look through it again would hold up answers for 0.1 s
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"
    config = uvicorn.Config(
        app,
        http=bounded(options),
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_PATIENCE,
    )
    server = _Server(config, lambda: on_ready(address))
    # uvicorn ends in order and then sends itself the signal once more: to end well is no failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.run([listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # What is accepted inherits it: else an answer waits 40 ms for the last packet's receipt.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        why = error.strerror or error if isinstance(error, OSError) else error
        raise FailureError(f"cannot listen at {host}, port {port}: {why}") from error
    return listener
