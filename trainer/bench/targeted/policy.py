"""A small causal transformer that reads trunks, grows them token by token, and reads branches.

Letters of shapes: B rows, L tokens that are read, S tokens in memory, H heads, C channels of a
head, D width, V vocabulary.
"""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.bench.targeted.world import PAD, VOCABULARY
from trainer.settings import Settings


class PolicyConfig(Settings):
    """The size of the policy."""

    num_layers: int = 2
    num_heads: int = 4
    width: int = 96
    hidden: int = 192


class Memory(Protocol):
    """What tokens see besides themselves."""

    def before(self, ids_BL: Tensor) -> Tensor:
        """Take in the next tokens, and return for each of them the token before it."""

    def positions(self, length: int) -> Tensor:
        """Return the positions, [L] or [B, L], of the next tokens."""

    def mask(self, length: int) -> Tensor | None:
        """Return which tokens of all, the next ones last, each of these sees; None if all."""

    def recall(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Take in the keys and values of the next tokens, and return those of all."""


class Policy(nn.Module):
    """A transformer with rotary positions, whose head is its embedding.

    A token is embedded together with the one before it, so that one layer is enough to copy what
    follows a token elsewhere: the skill is there within a hundred steps.
    """

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(VOCABULARY, config.width)
        nn.init.normal_(self.embedding.weight, std=config.width**-0.5)
        self.embedding_before = nn.Embedding(VOCABULARY, config.width)
        nn.init.normal_(self.embedding_before.weight, std=config.width**-0.5)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.num_layers)])
        self.norm = nn.RMSNorm(config.width)

    def forward(self, ids_BL: Tensor, *, memory: Memory) -> Tensor:
        """Return the last hidden states [B, L, D]; the memory takes the tokens in."""
        length = ids_BL.shape[1]
        positions = memory.positions(length)
        rotation = _rotation(positions, self.config.width // self.config.num_heads)
        mask = memory.mask(length)
        hidden_BLD = self.embedding(ids_BL) + self.embedding_before(memory.before(ids_BL))
        for number, layer in enumerate(self.layers):
            hidden_BLD = layer(hidden_BLD, number, rotation, memory, mask)
        normed_BLD: Tensor = self.norm(hidden_BLD)
        return normed_BLD

    def logprobs(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities [..., V] of the next token."""
        return functional.linear(hidden, self.embedding.weight).log_softmax(-1)


class Layer(nn.Module):
    """Attention, then a gated feed-forward network."""

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.attention_norm = nn.RMSNorm(config.width)
        self.attention_in = nn.Linear(config.width, 3 * config.width, bias=False)
        self.attention_out = nn.Linear(config.width, config.width, bias=False)
        self.feed_norm = nn.RMSNorm(config.width)
        self.feed_in = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.feed_out = nn.Linear(config.hidden, config.width, bias=False)

    def forward(
        self,
        hidden_BLD: Tensor,
        number: int,
        rotation: tuple[Tensor, Tensor],
        memory: Memory,
        mask: Tensor | None,
    ) -> Tensor:
        """Return the hidden states after this layer, which is the `number`-th."""
        heads = self.attention_in(self.attention_norm(hidden_BLD))
        heads = heads.unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        turned = _rotate(heads[:2], rotation)
        keys, values = memory.recall(number, turned[1], heads[2])
        seen_BHLC = functional.scaled_dot_product_attention(turned[0], keys, values, attn_mask=mask)
        hidden_BLD = hidden_BLD + self.attention_out(seen_BHLC.transpose(1, 2).flatten(2))
        gate, up = self.feed_in(self.feed_norm(hidden_BLD)).chunk(2, dim=-1)
        fed_BLD: Tensor = hidden_BLD + self.feed_out(functional.silu(gate) * up)
        return fed_BLD


def _rotation(positions: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines, [1, L, C / 4] or [B, 1, L, C / 4].

    Half of the channels are not turned: what is listed is found however far back it stands.
    """
    rates = 1000.0 ** (-torch.arange(0, channels // 2, 2) / (channels // 2))
    # The axis of heads stands between those of rows and of tokens.
    angles = (positions[..., None] * rates).unsqueeze(-3)
    return angles.cos(), angles.sin()


def _rotate(heads: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = rotation
    left, right, unturned = heads.split(
        [cos.shape[-1], cos.shape[-1], heads.shape[-1] // 2], dim=-1
    )
    return torch.cat([left * cos - right * sin, left * sin + right * cos, unturned], dim=-1)


class Trunk:
    """The memory of rows that are read at once, from their first token."""

    def __init__(self) -> None:
        self.layers: list[tuple[Tensor, Tensor]] = []
        self.ids_BT = torch.empty(0, 0)

    def before(self, ids_BL: Tensor) -> Tensor:
        """Keep the tokens; before the first comes nothing."""
        self.ids_BT = ids_BL
        return _after(torch.full((len(ids_BL), 1), PAD), ids_BL)

    def positions(self, length: int) -> Tensor:
        """Count from 0."""
        return torch.arange(length)

    def mask(self, length: int) -> Tensor:
        """Let each token see those before it."""
        return torch.ones(length, length, dtype=torch.bool).tril()

    def recall(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keep what was read, for branches."""
        assert layer == len(self.layers), "a trunk is read once"
        self.layers.append((keys, values))
        return keys, values


class Branch:
    """The memory of rows that leave rows of a trunk somewhere, each its own."""

    def __init__(self, trunk: Trunk, *, rows_B: Tensor, starts_B: Tensor) -> None:
        self.trunk = trunk
        # Row of the trunk, and how many of its tokens come before the branch.
        self.rows_B = rows_B
        self.starts_B = starts_B

    def before(self, ids_BL: Tensor) -> Tensor:
        """Find before the first the token at which the trunk was left."""
        return _after(self.trunk.ids_BT[self.rows_B, self.starts_B - 1][:, None], ids_BL)

    def positions(self, length: int) -> Tensor:
        """Go on where the trunk was left."""
        return self.starts_B[:, None] + torch.arange(length)

    def mask(self, length: int) -> Tensor:
        """Let each token see the trunk up to where it was left, then the branch before it."""
        trunk_T = torch.arange(self.trunk.layers[0][0].shape[2])
        sees_trunk_B1LT = (trunk_T < self.starts_B[:, None])[:, None, None].expand(
            -1, 1, length, -1
        )
        sees_itself_LL = torch.ones(length, length, dtype=torch.bool).tril()
        sees_itself_B1LL = sees_itself_LL.expand(len(self.rows_B), 1, -1, -1)
        return torch.cat([sees_trunk_B1LT, sees_itself_B1LL], dim=-1)

    def recall(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put the row of the trunk in front."""
        old_keys, old_values = self.trunk.layers[layer]
        return (
            torch.cat([old_keys[self.rows_B], keys], dim=2),
            torch.cat([old_values[self.rows_B], values], dim=2),
        )


class Growing:
    """The memory of rows that grow token by token; room for all of them is made at once."""

    def __init__(self, config: PolicyConfig, *, num_rows: int, room: int) -> None:
        shape = num_rows, config.num_heads, room, config.width // config.num_heads
        self.layers = [(torch.empty(shape), torch.empty(shape)) for _ in range(config.num_layers)]
        self.length = 0
        self.last_B1 = torch.full((num_rows, 1), PAD)

    def before(self, ids_BL: Tensor) -> Tensor:
        """Remember the last token for the next time."""
        before_BL = _after(self.last_B1, ids_BL)
        self.last_B1 = ids_BL[:, -1:]
        return before_BL

    def positions(self, length: int) -> Tensor:
        """Go on where the rows end."""
        return torch.arange(self.length, self.length + length)

    def mask(self, length: int) -> Tensor | None:
        """Let each token see those before it."""
        if length == 1:
            return None
        return torch.ones(length, self.length + length, dtype=torch.bool).tril(self.length)

    def recall(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append what is read."""
        start, end = self.length, self.length + keys.shape[2]
        old_keys, old_values = self.layers[layer]
        old_keys[:, :, start:end], old_values[:, :, start:end] = keys, values
        if layer == len(self.layers) - 1:
            self.length = end
        return old_keys[:, :, :end], old_values[:, :, :end]

    def keep(self, rows: Tensor) -> None:
        """Go on with some of the rows."""
        self.layers = [(keys[rows], values[rows]) for keys, values in self.layers]
        self.last_B1 = self.last_B1[rows]


def _after(first_B1: Tensor, ids_BL: Tensor) -> Tensor:
    """Return the tokens moved on by one, with another first one."""
    return torch.cat([first_B1, ids_BL[:, :-1]], dim=1)
