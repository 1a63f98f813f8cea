"""Routed message passing in blocks of nodes: memory depends on the nodes, not on the edges.

An edge carries the messages of all components of its source and a mask of those that it uses. This
takes more multiplications than the used ones alone, but whole rows are read and written, which is
faster unless n is much smaller than K.

Target nodes are processed block by block. Only the mask of a block's edges is kept, and the
backward pass computes the rest a second time. A network that fits into one block is an ordinary
differentiable computation, and nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dicgrl.models.components import Components
from dicgrl.models.edges import Block


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages that the b nodes of a block receive along their e edges.

    Attributes:
        own: What these nodes themselves send: [b, K, ...] for each table that a layer sends.
        sent: What their neighbours send: [e, K, ...] for each of those tables.
        target: The node that receives each edge, [e].
        chosen: Whether the edge uses each component, [e, K].
        gate: Ones that carry the task's gradient to the attention, [e, K]; None if the task does
            not train it.
        generator: Source of randomness for dropout; None for PyTorch's own.
    """

    own: Sequence[Tensor]
    sent: Sequence[Tensor]
    target: Tensor
    chosen: Tensor
    gate: Tensor | None
    generator: torch.Generator | None

    def sum(self, own: Tensor, messages: Tensor, weight: Tensor) -> Tensor:
        """Add messages [e, K, size], times weights [e, K], to their target nodes, [b, K, size].

        The weights are 0 in components that an edge does not use.
        """
        if self.gate is not None:
            weight = weight * self.gate
        weighted = (messages * weight[..., None]).flatten(1)
        return own.flatten(1).index_add(0, self.target, weighted).view(own.shape)


def edge_logits(block: Block, own: Tensor, other: Tensor) -> Tensor:
    """W2 [u^k; v^k] of a block's edges, [e, K]; their ReLU are the attention logits of equation 4.

    The top n are chosen before the ReLU, which keeps the order but makes many of them equal.

    Args:
        block: The block, of b nodes and e edges.
        own: The terms of its nodes as targets, [b, K].
        other: The terms of the sources of its edges, [e, K].
    """
    return own.index_select(0, block.target) + other


@dataclass(frozen=True, slots=True)
class MessagePass:
    """One pass of messages along routed edges.

    Attributes:
        hear: Turns messages into new components of a block's nodes, [b, K, size].
        components: How edges are routed.
        blocks: All nodes with their incoming edges.
        random: Whether `hear` draws random numbers.
    """

    hear: Callable[[Messages], Tensor]
    components: Components
    blocks: Sequence[Block]
    random: bool

    def __call__(self, own: Tensor, other: Tensor, *sent: Tensor) -> tuple[Tensor, Tensor]:
        """Pass messages.

        Args:
            own: Term of a node in the attention of an edge as its target, [N, K].
            other: Term of a node as the source of an edge, [N, K].
            sent: Tables to send, [N, K, ...] each.

        Returns:
            New components [N, K, size], and the sum over edges of 1 minus the weights of the
            chosen components (L_norm, equation 8).
        """
        if len(self.blocks) > 1:
            new, missing = _Blockwise.apply(self, own, other, *sent)  # type: ignore[no-untyped-call]
            return new, missing
        (block,) = self.blocks
        read = self.read(block, (own, other, *sent))
        return self.compute(block, self.choose(block, read), None, *read)

    def read(self, block: Block, tables: Sequence[Tensor]) -> list[Tensor]:
        """Read what a block needs of its own nodes and of the sources of its edges.

        In order: attention terms of its nodes [b, K] and of its sources [e, K]; the sent tables at
        its nodes; the sent tables at its sources.
        """
        own, other, *sent = tables
        here = slice(block.first, block.stop)
        far = [table.flatten(1).index_select(0, block.source) for table in (other, *sent)]
        far = [rows.view(-1, *table.shape[1:]) for rows, table in zip(far, tables[1:], strict=True)]
        return [own[here], far[0], *(table[here] for table in sent), *far[1:]]

    @torch.no_grad()
    def choose(self, block: Block, read: Sequence[Tensor]) -> Tensor:
        """Mask of the components that a block's edges choose, [e, K]."""
        return self.components.mask(edge_logits(block, *read[:2]))

    def compute(
        self,
        block: Block,
        chosen: Tensor,
        generator: torch.Generator | None,
        own: Tensor,
        other: Tensor,
        *sent: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """A block's new components and its share of L_norm, from what `read` returned."""
        logits = edge_logits(block, own, other).relu()
        log_alpha = logits - logits.logsumexp(1, keepdim=True)
        missing = len(chosen) - (log_alpha.exp() * chosen.to(logits.dtype)).sum()
        gate = None
        if self.components.learned and log_alpha.requires_grad:
            gate = log_alpha - log_alpha.detach() + 1  # alpha / stopgradient(alpha), and its slope
        half = len(sent) // 2
        heard = Messages(sent[:half], sent[half:], block.target, chosen, gate, generator)
        return self.hear(heard), missing


class _Blockwise(torch.autograd.Function):
    """Processes blocks one after the other, and each again in the backward pass.

    Gradients are only added to the rows that a block has read; PyTorch would fill whole tables for
    every block.
    """

    @staticmethod
    def forward(ctx: Any, messages: MessagePass, *tables: Tensor) -> tuple[Tensor, Tensor]:
        # From PyTorch's generator, whose seed decides what is dropped. Drawing on the device waits
        # for it, which prevents recording the step: a record would repeat the same seeds.
        device = tables[0].device
        seed = int(torch.randint(1 << 62, (), device=device)) if messages.random else None
        new, missing, masks = [], [], []
        for number, block in enumerate(messages.blocks):
            read = messages.read(block, tables)
            masks.append(messages.choose(block, read))
            generator = _generator(tables[0].device, seed, number)
            rows, lack = messages.compute(block, masks[-1], generator, *read)
            new.append(rows)
            missing.append(lack)
        ctx.messages, ctx.seed, ctx.masks = messages, seed, masks
        ctx.save_for_backward(*tables)
        return torch.cat(new), torch.stack(missing).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor, missing_slope: Tensor) -> tuple[Tensor | None, ...]:
        messages: MessagePass = ctx.messages
        tables, needed = ctx.saved_tensors, ctx.needs_input_grad[1:]
        totals = [torch.zeros_like(table) for table in tables]
        for number, (block, chosen) in enumerate(zip(messages.blocks, ctx.masks, strict=True)):
            here = slice(block.first, block.stop)
            with torch.enable_grad():
                read = [
                    value.detach().requires_grad_(need)
                    for value, need in zip(
                        messages.read(block, tables), needed + needed[2:], strict=True
                    )
                ]
                generator = _generator(slope.device, ctx.seed, number)
                results = messages.compute(block, chosen, generator, *read)
            own, other, *sent = _slopes(results, read, (slope[here], missing_slope))
            half = len(sent) // 2
            near, far = (own, *sent[:half]), (other, *sent[half:])
            for total, rows in zip((totals[0], *totals[2:]), near, strict=True):
                if rows is not None:
                    total[here] += rows
            for total, rows in zip(totals[1:], far, strict=True):
                if rows is not None:
                    total.flatten(1).index_add_(0, block.source, rows.flatten(1))
        return None, *(total if need else None for total, need in zip(totals, needed, strict=True))


def _slopes(
    results: Sequence[Tensor], leaves: Sequence[Tensor], slopes: Sequence[Tensor]
) -> list[Tensor | None]:
    """Gradients of leaves; None for those that need none or are not used."""
    pairs = [pair for pair in zip(results, slopes, strict=True) if pair[0].requires_grad]
    needed = [leaf for leaf in leaves if leaf.requires_grad]
    outputs, weights = [result for result, _ in pairs], [slope for _, slope in pairs]
    found = iter(torch.autograd.grad(outputs, needed, weights, allow_unused=True))
    return [next(found) if leaf.requires_grad else None for leaf in leaves]


def _generator(device: torch.device, seed: int | None, number: int) -> torch.Generator | None:
    """The generator of a block, which is the same in both passes."""
    return None if seed is None else torch.Generator(device).manual_seed(seed + number)
