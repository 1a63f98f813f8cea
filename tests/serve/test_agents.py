"""The tools of an agent: a real process, asked as an agent asks it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dicgrl.store.run_folder import RunFolder

pytest.importorskip("mcp")


FIELDS = ["label", "name", "score", "probability", "known"]


async def called(run: Path, options: list[str], *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The names of the tools, then what each call gave: its content, or the text of an error."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    words = ["-m", "dicgrl", "mcp", str(run), "--device", "cpu", *options]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    with open(os.devnull, "w") as quiet:
        async with (
            stdio_client(server, errlog=quiet) as (reader, writer),
            ClientSession(reader, writer) as session,
        ):
            await session.initialize()
            found: list[Any] = [{tool.name for tool in (await session.list_tools()).tools}]
            for name, given in calls:
                answer = await session.call_tool(name, given)
                text = answer.content[0].text  # type: ignore[union-attr]
                found.append(text if answer.is_error else answer.structured_content)
            return found


def test_an_agent_asks_and_tells(run: Path) -> None:
    fact = ["neu", "plus 1", "e3"]
    tools, best, unknown, alike, why, spelt, added, known, gone = asyncio.run(
        called(
            run,
            ["--learn-facts", "1000000", "--learn-seconds", "100000"],
            ("ask", {"head": "e0", "relation": "plus 1", "k": 2}),
            ("ask", {"head": "nobody", "relation": "plus 1"}),
            ("similar", {"label": "e0", "k": 3}),
            ("explain", {"head": "e0", "relation": "plus 1", "tail": "e1"}),
            ("find", {"text": "e1", "limit": 2}),
            ("add_facts", {"facts": [fact]}),
            ("ask", {"head": "neu", "relation": "plus 1", "k": 50}),
            ("forget_facts", {"facts": [fact]}),
        )
    )
    assert tools == {"ask", "explain", "similar", "find", "add_facts", "forget_facts"}
    assert len(best["answers"]) == 2 and best["version"] == 3
    assert "unknown entity 'nobody'; `find`" in unknown and str(run) not in unknown
    assert [list(one) for one in best["answers"]] == [FIELDS] * 2  # as of POST /predict
    assert [list(one) for one in alike["answers"]] == [FIELDS[:3]] * 3  # as of POST /similar
    assert why["triple"] == ["e0", "plus 1", "e1"]
    assert spelt["entities"][0]["label"] == "e1"
    assert added["queued"] == 1
    assert "e3" in [one["label"] for one in known["answers"] if one["known"]]
    assert gone["waiting"] == 1
    assert not RunFolder(run).pending().settled()[0]


def test_an_agent_is_told_which_tools_write(run: Path) -> None:
    from mcp import Client

    from dicgrl.serve.agents import agent_server
    from dicgrl.serve.options import ServeOptions
    from dicgrl.serve.serving import Serving

    async def tools() -> dict[str, Any]:
        async with Client(agent_server(Serving(run, ServeOptions(token="x")))) as client:
            return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    hints = asyncio.run(tools())
    writing = {name for name, hint in hints.items() if not hint.read_only_hint}
    assert writing == {"add_facts", "forget_facts"}
    assert {name for name in writing if hints[name].destructive_hint} == {"forget_facts"}


def test_an_agent_that_may_only_read(run: Path) -> None:
    (tools,) = asyncio.run(called(run, ["--read-only"]))
    assert tools == {"ask", "explain", "similar", "find"}


def test_arguments_that_do_not_fit_are_said_in_a_line(run: Path) -> None:
    _, none, many, odd, missing, facts, held_out = asyncio.run(
        called(
            run,
            [],
            ("ask", {"head": "e0", "relation": "plus 1", "k": 0}),
            ("similar", {"label": "e0", "k": "many"}),
            ("ask", {"head": ["e0"], "relation": "plus 1"}),
            ("explain", {"head": "e0", "relation": "plus 1"}),
            ("find", {"text": "e", "limit": 101}),
            ("ask", {"head": "e0", "relation": "plus 1", "k": 1, "held_out": True}),
        )
    )
    assert none == "k: Input should be greater than or equal to 1, not '0'"
    assert many.startswith("k: Input should be a valid integer") and many.endswith(", not 'many'")
    assert odd == "head: Input should be a valid string"
    assert missing == "tail: Field required"
    assert facts == "limit: Input should be less than or equal to 100, not '101'"
    assert [list(one) for one in held_out["answers"]] == [[*FIELDS, "held_out"]]
