"""The addresses that say how the server and the run are."""

from __future__ import annotations

from fastapi import APIRouter, Response

from dicgrl.serve.questions import as_json
from dicgrl.serve.serving import Serving


def state(serving: Serving) -> APIRouter:
    """The addresses that say how the server and the run are.

    Args:
        serving: The run that is served.
    """
    router = APIRouter(tags=["state"])

    @router.get("/health")
    async def health() -> Response:
        """Whether the server is alive."""
        return as_json({"status": "ok", "version": serving.snapshots.version})

    return router
