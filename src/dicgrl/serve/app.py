"""The application: the addresses of a run, and the page at /."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dicgrl.serve.document import complete_document
from dicgrl.serve.facts import facts
from dicgrl.serve.metrics import Counted
from dicgrl.serve.options import ServeOptions
from dicgrl.serve.problems import ProblemError, add_problems
from dicgrl.serve.questions import Shortcut, questions
from dicgrl.serve.serving import Serving
from dicgrl.serve.state import state
from dicgrl.serve.views import views

PAGE = Path(__file__).with_name("page")
ROUTERS = (state, questions, facts, views)
"""What makes the addresses: each is given the run that is served."""
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # else a browser mixes the page's files of two releases
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
}


def create_app(
    folder: Path, options: ServeOptions | None = None, hosts: Sequence[str] = ()
) -> FastAPI:
    """The application of a run, which is read at once.

    Args:
        folder: The run.
        options: How it is served.
        hosts: Names under which it may be called; any for none. A page of somebody else's, which
            lets a name of its own lead here, is refused by them.

    Raises:
        DataError: There is no run, or it is damaged.
    """
    serving = Serving(folder, options)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        serving.start()
        try:
            yield
        finally:
            serving.stop()

    # Its own pages of documentation would load scripts from other hosts.
    app = FastAPI(
        title="dicgrl",
        description="A graph embedding that stays fresh: questions and new facts.",
        version=str(serving.snapshots.version),
        docs_url=None,
        redoc_url=None,
        lifespan=alive,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.serving = serving
    add_problems(app)
    for make in ROUTERS:
        app.include_router(make(serving))
    paths = frozenset(app.openapi()["paths"])
    complete_document(app)
    app.mount("/", _Page(directory=PAGE, html=True), name="page")
    app.add_middleware(Shortcut, serving=serving)
    app.add_middleware(Guarded, hosts=frozenset(hosts))
    app.add_middleware(Counted, metrics=serving.metrics, paths=paths)
    return app


class _Page(StaticFiles):
    """The page's files; whatever is asked of what is none of them is not found."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code == 405 and not self._is_file(path):
                raise HTTPException(404) from None
            raise

    def _is_file(self, path: str) -> bool:
        try:
            return self.lookup_path(path)[1] is not None
        except (OSError, ValueError):  # no name that a file can have
            return False


class Guarded:
    """Refuses calls by other names than allowed, and adds headers that keep browsers careful.

    What can be read can also be asked for without its content (HEAD), as is done to watch servers.

    Args:
        app: The application.
        hosts: The names; any for none.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if self._hosts and _host_of(scope) not in self._hosts:
            refusal = ProblemError(
                421, "the server does not answer under this host name; --allow-host adds one"
            )
            await refusal.response()(scope, receive, sending)
            return
        if scope["method"] == "HEAD":  # the protocol leaves out the content
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, sending)


def _host_of(scope: Scope) -> str:
    """The name by which a request calls the server, without the port."""
    for name, value in scope["headers"]:
        if name == b"host":
            host: str = value.decode("latin-1").lower()
            return host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return ""
