"""The same for agents: a server of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import Field, ValidationError
from typing_extensions import override

from dicgrl.errors import UnknownLabelError, UserError
from dicgrl.serve.answering import answer_told, similar_told
from dicgrl.serve.facts import add_facts, forget_facts, labels_of
from dicgrl.serve.options import ServeOptions
from dicgrl.serve.problems import ProblemError, problem_of
from dicgrl.serve.search import found_entities
from dicgrl.serve.serving import Serving
from dicgrl.serve.snapshots import Snapshot

_HOW = """A knowledge graph and a model of it that keeps learning. `ask` completes a fact: leave out
the head, the relation or the tail. `probability` is how often such answers are right; `known` means
that it is a fact already. Where a label is unknown, `find` gives labels that are spelt like it."""
_Count = Annotated[int, Field(ge=1, le=100, description="How many, at most.")]
_Label = Annotated[str, Field(description="A label or a readable name.")]
_Facts = Annotated[
    list[list[str]],
    Field(min_length=1, max_length=1000, description="By their labels: head, relation, tail."),
]
_Told = dict[str, Any]
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_FORGETS = ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def agent_server(serving: Serving) -> MCPServer:
    """The tools of a run; those that write only where the options allow it.

    Args:
        serving: The run that is served.
    """
    server = _Server("dicgrl", instructions=_HOW, log_level="WARNING")
    told = _Telling(serving)

    @server.tool(annotations=_READS)
    async def ask(
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        node: str | None = None,
        k: _Count = 10,
        new: Annotated[bool, Field(description="Leave out facts that are known.")] = False,
        among: Annotated[
            str | None, Field(description="seen, heads:RELATION or tails:RELATION.")
        ] = None,
        held_out: Annotated[
            bool, Field(description="Say whether answers are facts held out to measure with.")
        ] = False,
    ) -> _Told:
        """Complete a fact: leave out one of head, relation and tail; of a network give the node."""

        def work(snapshot: Snapshot) -> _Told:
            named = {"head": head, "relation": relation, "tail": tail, "node": node}
            question = {name: text for name, text in named.items() if text is not None}
            found = snapshot.asking.predict(k=k, new=new, among=among, **question)
            return {"answers": [answer_told(one, held_out) for one in found]}

        return await told.asked(work)

    @server.tool(annotations=_READS)
    async def explain(head: _Label, relation: _Label, tail: _Label, k: _Count = 5) -> _Told:
        """Why a fact is likely: known facts that support it."""
        return await told.asked(
            lambda snapshot: asdict(
                snapshot.asking.for_links("explain").explain(head, relation, tail, k=k)
            )
        )

    @server.tool(annotations=_READS)
    async def similar(label: _Label, k: _Count = 10) -> _Told:
        """Entities, or nodes, whose vectors point in the same direction."""
        return await told.asked(
            lambda snapshot: {
                "answers": [similar_told(one) for one in snapshot.asking.similar(label, k=k)]
            }
        )

    @server.tool(annotations=_READS)
    async def find(text: str, limit: _Count = 10) -> _Told:
        """Labels and names that begin with a text, or are spelt like it."""
        return await told.asked(
            lambda snapshot: {"entities": found_entities(snapshot, text, limit)}
        )

    if serving.options.token:

        @server.tool("add_facts", annotations=_ADDS)
        async def added(facts: _Facts) -> _Told:
            """Add facts: they can be asked about at once, and are learned soon."""
            return await told.of(lambda: add_facts(serving, labels_of(facts)))

        @server.tool("forget_facts", annotations=_FORGETS)
        async def forgotten(facts: _Facts) -> _Told:
            """Take back facts that are not true, or no longer true."""
            return await told.of(lambda: forget_facts(serving, labels_of(facts)))

    return server


class _Server(MCPServer[Any]):
    """Says what is wrong with arguments as `dicgrl serve` says it of a request."""

    @override
    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise ToolError(_said(problem_of(error.__cause__))) from error.__cause__


def _said(problem: ProblemError) -> str:
    return f"{problem.field}: {problem.detail}" if problem.field else problem.detail


class _Telling:
    """Lets a run be asked, and says what is wrong so that an agent can act on it."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def asked(self, work: Callable[[Snapshot], _Told]) -> _Told:
        return await self.of(
            lambda: self._serving.asked(lambda found: {"version": found.version, **work(found)})
        )

    async def of(self, work: Callable[[], Awaitable[_Told]]) -> _Told:
        try:
            return await work()
        except (ProblemError, UserError, OSError) as error:
            problem = problem_of(error)
            unknown = isinstance(error, UnknownLabelError)
            way_on = "; `find` gives labels that are spelt like it" if unknown else ""
            raise ToolError(_said(problem) + way_on) from None


@contextmanager
def _at_work(folder: Path, options: ServeOptions) -> Iterator[Serving]:
    serving = Serving(folder, options)
    serving.start()
    try:
        yield serving
    finally:
        serving.stop()


def run_agent_server(folder: Path, options: ServeOptions) -> None:
    """Answer an agent on standard input and output, until it goes away.

    Args:
        folder: The run.
        options: How it is served; facts can be written where there is a token.

    Raises:
        DataError: There is no run, or it is damaged.
    """
    with _at_work(folder, options) as serving:
        asyncio.run(agent_server(serving).run_stdio_async())
