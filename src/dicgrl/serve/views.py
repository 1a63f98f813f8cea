"""What the page asks for besides the API: everything below /api/."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Response

from dicgrl.serve.looking import Look, points_of
from dicgrl.serve.mapping import Mapper
from dicgrl.serve.past import history, maps_of, nights_of
from dicgrl.serve.problems import ProblemError
from dicgrl.serve.questions import as_json
from dicgrl.serve.search import found_entities
from dicgrl.serve.snapshots import Snapshot
from dicgrl.store.maps import read_map

if TYPE_CHECKING:
    from dicgrl.serve.serving import Serving

_LANDMARKS = 60
_LABELS = 100
_MOST_VERSIONS = 2**31
_NUMBERS = r"^[0-9]{1,9}(,[0-9]{1,9})*$"


def views(serving: Serving) -> APIRouter:
    """The addresses of the page's own.

    Args:
        serving: The run that is served.
    """
    mapper = Mapper(serving.folder.path, serving.options.plugins)

    @asynccontextmanager
    async def alive(_: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            mapper.stop()

    router = APIRouter(prefix="/api", include_in_schema=False, lifespan=alive)

    async def looked(work: Callable[[Look], Any]) -> Response:
        """What a function finds in the graph as it is now, and the version that it is."""

        def answer(snapshot: Snapshot) -> dict[str, Any]:
            return {"version": snapshot.version, **work(look_of(snapshot))}

        return as_json(await serving.asked(answer))

    async def stored(work: Callable[[], Any]) -> Any:
        """What a function finds in the store, without those who ask having to wait."""
        return await asyncio.wait_for(asyncio.to_thread(work), serving.options.seconds)

    @router.get("/pulse")
    async def pulse() -> Response:
        snapshot = serving.snapshots.current
        return as_json({"version": snapshot.version, "pending": len(snapshot.pending)})

    @router.get("/run")
    async def run() -> Response:
        config = await stored(serving.folder.config)
        told = {name: config.get(name) for name in ("dataset", "model", "strategy", "recipe")}
        told |= {"writable": bool(serving.options.token)}
        return await looked(lambda look: told | look.overview())

    @router.get("/search")
    async def search(q: str = Query(max_length=500), k: int = Query(8, ge=1, le=50)) -> Response:
        def found(snapshot: Snapshot) -> dict[str, Any]:
            labels = [each["label"] for each in found_entities(snapshot, q, k)] if q.strip() else []
            return {"version": snapshot.version, "found": look_of(snapshot).listed(labels)}

        return as_json(await serving.asked(found))

    @router.get("/entity")
    async def entity(label: str = Query(max_length=10_000)) -> Response:
        return await looked(lambda look: look.about(label))

    @router.get("/labels")
    async def labels(
        ids: str = Query(max_length=2000, pattern=r"^[0-9]{1,9}(,[0-9]{1,9})*$"),
    ) -> Any:
        numbers = [int(text) for text in ids.split(",")][:_LABELS]

        def named(look: Look) -> dict[str, Any]:
            most = len(look.labels)
            return {"found": [look.entity(i) for i in numbers if i < most]}

        return await looked(named)

    @router.get("/maps")
    async def maps() -> Response:
        version, points = await serving.asked(lambda s: (s.version, _colours(look_of(s))))
        found = await stored(partial(maps_of, serving.folder, version))
        state = "ready" if found["current"] else mapper.make(version)
        return as_json({"version": version, "state": state, **found, **points})

    @router.get("/map/{version}")
    async def one_map(version: int = Path(ge=1, le=_MOST_VERSIONS)) -> Response:
        found = await stored(partial(read_map, serving.folder, version))
        if found is None:
            raise ProblemError(404, f"there is no map of version {version}", "version")
        return _bytes(found.points.astype("<f4").tobytes())

    @router.get("/points")
    async def points() -> Response:
        return _bytes(await serving.asked(lambda snapshot: points_of(look_of(snapshot))))

    @router.get("/history")
    async def past() -> Response:
        metric = await serving.asked(lambda snapshot: snapshot.learner.trainer.metric)
        return as_json({"metric": metric, **await stored(partial(history, serving.folder))})

    @router.get("/nights")
    async def nights() -> Response:
        return as_json({"nights": await stored(partial(nights_of, serving.folder))})

    return router


def look_of(snapshot: Snapshot) -> Look:
    """What the page shows of a snapshot, made once for it."""
    if "look" not in snapshot.kept:
        snapshot.kept["look"] = Look(snapshot.learner, snapshot.asking)
    found: Look = snapshot.kept["look"]
    return found


def _colours(look: Look) -> dict[str, Any]:
    """What the map says in words: kinds with how many they are, and places that people know."""
    often = np.bincount(look.kinds.of[look.there], minlength=len(look.kinds.names))
    kinds = [
        {"name": name, "count": int(n)} for name, n in zip(look.kinds.names, often, strict=True)
    ]
    return {"kinds": kinds, "landmarks": look.landmarks(_LANDMARKS), "what": look.what}


def _bytes(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")
