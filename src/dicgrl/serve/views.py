"""What the page asks for besides the API: everything below /api/."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

if TYPE_CHECKING:
    from dicgrl.serve.serving import Serving


def views(serving: Serving) -> APIRouter:
    """The addresses of the page's own.

    Args:
        serving: The run that is served.
    """
    del serving
    return APIRouter(prefix="/api", include_in_schema=False)
