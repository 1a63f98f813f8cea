"""Connections with bounds: on how many there are, and on the time and the bytes of a request.

Whoever opens connections and asks nothing, sends half a request, a head without an end, or does not
read what was asked for, would otherwise hold files and memory of the server as long as he likes.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dicgrl.serve.options import ServeOptions
from dicgrl.serve.problems import MEDIA_TYPE, ProblemError

_MOST_HEAD = 1 << 16  # bytes of a request before its body
_WRAPPING = 8  # bytes sent for each byte of a body, where it comes in the smallest pieces


def bounded(options: ServeOptions) -> type[HttpToolsProtocol]:
    """The protocol of connections that keep to the limits of a server."""

    class Limited(Bounded):
        limits = options

    return Limited


class Bounded(HttpToolsProtocol):
    """A connection; uvicorn makes one for each that is accepted.

    Attributes:
        limits: What is allowed.
    """

    limits = ServeOptions()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._arriving: asyncio.TimerHandle | None = None  # until a request has to be there
        self._leaving: asyncio.TimerHandle | None = None  # until some of an answer has to be read
        self._in_head = True
        self._bytes = 0  # of the head, or of the body, that is arriving
        self._unread = 0  # bytes of an answer

    def connection_made(self, transport: Any) -> None:
        """Somebody is there."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.most_connections:
            self._refuse(503, "too many connections at the moment")
        else:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody has gone."""
        for timer in (self._arriving, self._leaving):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something of a request has come."""
        self._bytes += len(data)
        super().data_received(data)
        if self._in_head and self._bytes > _MOST_HEAD:
            self._refuse(431, f"the head of a request may have {_MOST_HEAD:,} bytes")
        elif self._bytes > _MOST_HEAD + _WRAPPING * self.limits.most_bytes:
            self._refuse(413, f"a body may have {self.limits.most_bytes:,} bytes")
        elif self._bytes and self._arriving is None:
            self._expect()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        if self._arriving is None:
            self._expect()

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        super().on_headers_complete()  # which may refuse its address
        self._in_head, self._bytes = False, 0

    def on_message_complete(self) -> None:
        """All of a request is there."""
        self._in_head, self._bytes = True, 0
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request."""
        self._refuse(400, msg)

    def pause_writing(self) -> None:
        """An answer is too long to be sent at once."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def _expect(self) -> None:
        self._arriving = self.loop.call_later(self.limits.seconds, self._late)

    def _late(self) -> None:
        """A request has not come in time."""
        self._arriving = None
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self._expect()  # one before it is being answered
        elif self._in_head and not self._bytes:
            self.transport.close()  # nothing was asked
        else:
            told = f"the request did not arrive within {self.limits.seconds:g} seconds"
            self._refuse(408, told)

    def _watch(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._leaving = self.loop.call_later(self.limits.seconds, self._unheard)

    def _unheard(self) -> None:
        """Nothing of an answer was read for a while, or not all of it."""
        if self.transport.get_write_buffer_size() >= self._unread:
            self.transport.abort()
        else:
            self._watch()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer once, unless that was done already, and end the connection."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if self._in_head:  # of a request behind that of the cycle, whose answer is not cut in two
            may_answer = cycle is None or cycle.response_complete
        else:  # without a cycle it has become something else than HTTP
            may_answer = cycle is not None and not cycle.response_started
        if may_answer:
            self.transport.write(_answer(ProblemError(status, detail)))
        self.transport.close()


def _answer(problem: ProblemError) -> bytes:
    body = problem.body()
    head = (
        f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
        f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
