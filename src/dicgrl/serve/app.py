"""The application: the addresses of a run, and the page at /."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from dicgrl.serve.options import ServeOptions
from dicgrl.serve.problems import add_problems
from dicgrl.serve.questions import questions
from dicgrl.serve.serving import Serving
from dicgrl.serve.state import state
from dicgrl.serve.views import views

PAGE = Path(__file__).with_name("page")
ROUTERS = (state, questions, views)
"""What makes the addresses: each is given the run that is served."""


def create_app(folder: Path, options: ServeOptions | None = None) -> FastAPI:
    """The application of a run, which is read at once.

    Args:
        folder: The run.
        options: How it is served.

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
    app = FastAPI(title="dicgrl", docs_url=None, redoc_url=None, lifespan=alive)
    app.state.serving = serving
    add_problems(app)
    for make in ROUTERS:
        app.include_router(make(serving))
    app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    return app
