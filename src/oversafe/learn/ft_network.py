"""The network of the FT-Transformer: columns become tokens, a transformer mixes them, the last layer reads one of them.

All layers are such that Opacus has the gradients of single rows for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class NetworkShape:
    """How large a network is.

    Parameters
    ----------
    n_numbers : int
        Columns of numbers, which come first.
    n_tokens : int
        Rows of the table of tokens: those of categories, of numbers, of what is missing, and the one that is read.
    n_outputs : int
        Scores per record.
    dimension, depth, heads : int
        Of the transformer.
    dropout : float
        Share of activations that are left out in training.
    """

    n_numbers: int
    n_tokens: int
    n_outputs: int
    dimension: int
    depth: int
    heads: int
    dropout: float


def build_network(shape: NetworkShape) -> torch.nn.Module:
    """Return a network with fresh weights, from torch's random state."""
    return _layers()["network"](shape)


@lru_cache(maxsize=1)
def _layers() -> dict[str, Any]:
    # Classes of torch, made when they are first needed, so that importing this module does not import torch.
    import torch
    from opacus.grad_sample import register_grad_sampler
    from torch import nn
    from torch.nn import functional

    class Scale(nn.Module):
        """A vector for each number, times the number."""

        def __init__(self, n_numbers: int, dimension: int):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(n_numbers, dimension).uniform_(-1, 1) / dimension**0.5)

        def forward(self, numbers: torch.Tensor) -> torch.Tensor:
            return numbers[:, :, None] * self.weight

    @register_grad_sampler(Scale)
    def scale_gradients(layer: Any, activations: Any, backprops: torch.Tensor) -> dict[Any, torch.Tensor]:
        return {layer.weight: activations[0][:, :, None] * backprops}

    class Attention(nn.Module):
        def __init__(self, shape: NetworkShape):
            super().__init__()
            self.heads = shape.heads
            self.project = nn.Linear(shape.dimension, 3 * shape.dimension, bias=False)
            self.out = nn.Linear(shape.dimension, shape.dimension)
            # On what attention returns: on its weights it would take a third of the whole time.
            self.dropout = nn.Dropout(shape.dropout)

        def forward(self, tokens: torch.Tensor, read: int) -> torch.Tensor:
            n, t, d = tokens.shape
            q, k, v = (
                self.project(tokens).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            )
            mixed = functional.scaled_dot_product_attention(q[:, :, :read], k, v)
            return self.dropout(self.out(mixed.transpose(1, 2).reshape(n, read, d)))

    class FeedForward(nn.Module):
        def __init__(self, shape: NetworkShape):
            super().__init__()
            hidden = 2 * shape.dimension
            self.widen = nn.Linear(shape.dimension, 2 * hidden)
            self.out = nn.Linear(hidden, shape.dimension)
            self.dropout = nn.Dropout(shape.dropout)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            value, gate = self.widen(tokens).chunk(2, dim=-1)
            return self.out(self.dropout(value * functional.gelu(gate)))

    class Block(nn.Module):
        def __init__(self, shape: NetworkShape):
            super().__init__()
            self.first, self.second = nn.LayerNorm(shape.dimension), nn.LayerNorm(shape.dimension)
            self.attention, self.feed = Attention(shape), FeedForward(shape)

        def forward(self, tokens: torch.Tensor, read: int) -> torch.Tensor:
            tokens = tokens[:, :read] + self.attention(self.first(tokens), read)
            return tokens + self.feed(self.second(tokens))

    class Network(nn.Module):
        """Scores of records from their numbers and the places of their tokens, the one to be read first."""

        def __init__(self, shape: NetworkShape):
            super().__init__()
            d = shape.dimension
            self.tokens = nn.Embedding(shape.n_tokens, d)
            nn.init.uniform_(self.tokens.weight, -(d**-0.5), d**-0.5)
            self.scale = Scale(shape.n_numbers, d) if shape.n_numbers else None
            self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.depth))
            self.norm = nn.LayerNorm(d)
            self.head = nn.Linear(d, shape.n_outputs)

        def forward(self, numbers: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
            tokens = self.tokens(places)
            if self.scale is not None:
                rest = tokens.shape[1] - 1 - numbers.shape[1]
                tokens = tokens + functional.pad(self.scale(numbers), (0, 0, 1, rest))
            for number, block in enumerate(self.blocks, 1):
                # Of the last block only the first token is read.
                tokens = block(tokens, 1 if number == len(self.blocks) else tokens.shape[1])
            return self.head(functional.relu(self.norm(tokens[:, 0])))

    return {"network": Network}
