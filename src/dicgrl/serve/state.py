"""The addresses that say how the server and the run are."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from dicgrl.jobs.versions import difference
from dicgrl.serve.document import gives
from dicgrl.serve.metrics import MEDIA_TYPE
from dicgrl.serve.questions import as_json, naming
from dicgrl.serve.serving import Serving

_KEPT = 16  # differences between versions, which do not change
_VERSION = {"version": 1, "kind": "learn", "time": "2026-01-01T00:00:00+00:00", "tags": []}


def state(serving: Serving) -> APIRouter:
    """The addresses that say how the server and the run are.

    Args:
        serving: The run that is served.
    """
    router = APIRouter(tags=["state"])

    @lru_cache(_KEPT)
    def compared(before: int | str, after: int | str, stamp: int) -> dict[str, Any]:
        del stamp  # of the newest version: by another a tag may be of another, too
        return difference(serving.folder.path, before, after)

    @router.get("/health", openapi_extra={"responses": gives({"status": "ok", "version": 5})})
    async def health() -> Response:
        """Whether the server is alive."""
        return as_json({"status": "ok", "version": serving.snapshots.version})

    @router.get("/ready", openapi_extra={"responses": gives({"ready": True, "version": 5})})
    async def ready() -> Response:
        """Whether it answers from the newest version, and learns what waits; 503 if it does not."""
        told = {
            "version": serving.snapshots.version,
            "fresh": not serving.keeper.failed,
            "learns": not serving.teacher.failed,
            "pending": len(serving.snapshots.current.pending),
        }
        fine = bool(told["fresh"] and told["learns"])
        response = as_json({"ready": fine, **told})
        response.status_code = 200 if fine else 503
        return response

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """What Prometheus reads."""
        return Response(serving.metrics.text(_gauges(serving)), media_type=MEDIA_TYPE)

    @router.get("/versions", openapi_extra={"responses": gives({"versions": [_VERSION]})})
    async def versions(limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> Response:
        """The versions of the run, the newest last."""
        found = await serving.done(serving.folder.log)
        return as_json({"versions": found[-limit:], "count": len(found)})

    @router.get("/diff", openapi_extra={"responses": gives({"from": 1, "to": 2, "facts": {}})})
    async def diff(
        before: Annotated[str, Query(alias="from", max_length=100, description="Or a tag.")],
        to: Annotated[str, Query(max_length=100, examples=["2"])],
    ) -> Response:
        """What changed between two versions: facts, labels, and which vectors moved how far."""

        def work() -> dict[str, Any]:
            with naming("from, to"):
                return compared(before, to, serving.snapshots.current.learner.moment)

        return as_json(await serving.done(work))

    return router


def _gauges(serving: Serving) -> dict[str, tuple[str, float]]:
    snapshot, teacher = serving.snapshots.current, serving.teacher
    counts = {
        f"dicgrl_{kind}": (f"How many {kind} there are.", float(len(labels)))
        for kind, labels in snapshot.trainer.graph.vocabularies().items()
    }
    return counts | {
        "dicgrl_version": ("The version that answers come from.", snapshot.version),
        "dicgrl_pending_facts": ("Facts that wait to be learned.", len(snapshot.pending)),
        "dicgrl_fresh": ("1 where the run could be read last time.", not serving.keeper.failed),
        "dicgrl_learns": ("1 where facts could be learned last time.", not teacher.failed),
        "dicgrl_learned_total": ("Versions committed by this server.", teacher.learned),
        "dicgrl_refused_total": ("Facts that could not be learned.", teacher.refused),
    }
