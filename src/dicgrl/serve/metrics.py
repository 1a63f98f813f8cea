"""What Prometheus reads: how many requests, how long they took, how fresh the answers are."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """How often values up to each bound were seen.

    Example:
        >>> seen = Histogram((1, 2))
        >>> seen.add(1.5)
        >>> print(*seen.lines("size"), sep=chr(10))
        size_bucket{le="1"} 0
        size_bucket{le="2"} 1
        size_bucket{le="+Inf"} 1
        size_sum 1.5
        size_count 1
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """A value was seen."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """The same as Prometheus reads it."""
        total = 0
        comma = labels and f"{labels},"
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{comma}le="{bound}"}} {total}'
        closed = labels and f"{{{labels}}}"
        yield f"{name}_sum{closed} {self._sum:.9g}"
        yield f"{name}_count{closed} {total}"


class Metrics:
    """Counts what happens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, Histogram] = {}
        self._batches = Histogram(_SIZES)

    def request(self, path: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
        with self._lock:
            self._requests[path, method, status] += 1
            if path not in self._seconds:
                self._seconds[path] = Histogram(_BOUNDS)
            self._seconds[path].add(seconds)

    def batch(self, questions: int) -> None:
        """So many questions were answered together."""
        with self._lock:
            self._batches.add(questions)

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All of it for Prometheus.

        Args:
            gauges: Further values by name, each with what it is.
        """
        with self._lock:
            lines = ["# HELP dicgrl_requests_total Requests answered.",
                     "# TYPE dicgrl_requests_total counter"]  # fmt: skip
            for (path, method, status), count in sorted(self._requests.items()):
                labels = f'path="{path}",method="{method}",status="{status}"'
                lines.append(f"dicgrl_requests_total{{{labels}}} {count}")
            lines += ["# HELP dicgrl_request_seconds Time to an answer.",
                      "# TYPE dicgrl_request_seconds histogram"]  # fmt: skip
            for path, seen in sorted(self._seconds.items()):
                lines += seen.lines("dicgrl_request_seconds", f'path="{path}"')
            lines += ["# HELP dicgrl_batch_questions Questions answered together.",
                      "# TYPE dicgrl_batch_questions histogram"]  # fmt: skip
            lines += self._batches.lines("dicgrl_batch_questions")
        for name, (what, value) in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {what}", f"# TYPE {name} {kind}", f"{name} {value:.9g}"]
        return "\n".join(lines) + "\n"


class Counted:
    """Lets an application's requests be counted.

    Args:
        app: The application.
        metrics: Counts them.
        paths: The addresses that have a name; all others are one.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: frozenset[str]) -> None:
        self._app, self._metrics, self._paths = app, metrics, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.request(path, method, status, time.perf_counter() - begun)


_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}
