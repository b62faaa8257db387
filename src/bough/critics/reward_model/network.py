"""The network of a reward model: a causal transformer with a scalar head."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from bough.critics.reward_model.settings import RewardModel
from bough.critics.small_transformer import small_transformer
from bough.policy.checkpoint import load_trunk, quiet
from bough.policy.folder import FINAL, check_complete
from bough.policy.locate import locate
from bough.policy.seeding import seeded
from bough.tree import Floats, Ints

MICRO_TOKENS = 16384
"""Most tokens of a forward pass without gradients, padding included."""
HEAD = "head.safetensors"
"""The file of the head's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """n texts as the rows of a forward pass; a text that begins another one has no row of its own.

    Attributes:
        texts: The texts of the rows.
        row: [n] int64, the row of each text.
        end: [n] int64, the index of its last token in the row.
    """

    texts: tuple[Ints, ...]
    row: Ints
    end: Ints


class RewardNetwork(nn.Module):
    """A causal transformer and a linear head; the score of a text is the head's value at its last token.

    Attributes:
        context_tokens: Most tokens of a text; longer texts keep their last tokens.
        vocab_tokens: Tokens are below this.
    """

    def __init__(self, trunk: nn.Module, context_tokens: int) -> None:
        super().__init__()
        config: Any = trunk.config
        self.trunk: Any = trunk
        self.head = nn.Linear(config.hidden_size, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.context_tokens = context_tokens
        self.vocab_tokens = int(config.vocab_size)
        # Evaluation mode turns dropout off; gradients still flow.
        self.eval()

    def forward(self, texts: Sequence[Ints]) -> Float[Tensor, " n"]:
        """The scores of n texts, each of at least one token; texts that share a beginning share a row where they can.

        Raises:
            ValueError: when a text has a token outside the vocabulary.
        """
        rows = rows_of([text[-self.context_tokens :] for text in texts])
        return self._hidden(rows)[:, 0]

    @torch.no_grad()
    def scores(self, texts: Sequence[Ints]) -> Floats:
        """[n] float64: the scores of n texts, in forward passes of bounded size."""
        rows = rows_of([text[-self.context_tokens :] for text in texts])
        found = np.zeros(len(texts), dtype=np.float64)
        order = sorted(range(len(rows.texts)), key=lambda row: len(rows.texts[row]))
        begin = 0
        while begin < len(order):
            end = begin + 1
            while end < len(order) and (end + 1 - begin) * len(rows.texts[order[end]]) <= MICRO_TOKENS:
                end += 1
            place = {row: at for at, row in enumerate(order[begin:end])}
            members = np.flatnonzero(np.isin(rows.row, order[begin:end]))
            some = Rows(
                texts=tuple(rows.texts[row] for row in order[begin:end]),
                row=np.asarray([place[row] for row in rows.row[members].tolist()], dtype=np.int64),
                end=rows.end[members],
            )
            found[members] = self._hidden(some)[:, 0].double().cpu().numpy()
            begin = end
        return found

    def save(self, folder: Path) -> None:
        """Write config and weights as safetensors."""
        from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]

        with quiet():
            self.trunk.save_pretrained(folder)
        save_file({name: weight.detach().cpu() for name, weight in self.head.state_dict().items()}, folder / HEAD)

    def _hidden(self, rows: Rows) -> Float[Tensor, "n 1"]:
        device = self.head.weight.device
        lengths = np.asarray([len(text) for text in rows.texts])
        filled = np.zeros((len(lengths), int(lengths.max())), dtype=np.int64)
        filled[np.arange(filled.shape[1]) < lengths[:, None]] = np.concatenate(rows.texts)
        if int(filled.max()) >= self.vocab_tokens:
            raise ValueError(
                f"reward model: got token {int(filled.max())} and a vocabulary of {self.vocab_tokens}; need the "
                "tokenizer of the policy on whose trees it was trained"
            )
        # The model is causal, so padding after a text does not change its states.
        hidden: Tensor = self.trunk(input_ids=torch.as_tensor(filled, device=device)).last_hidden_state
        at = hidden[torch.as_tensor(rows.row, device=device), torch.as_tensor(rows.end, device=device)]
        return self.head(at.to(self.head.weight.dtype))


def rows_of(texts: Sequence[Ints]) -> Rows:
    """The rows of texts: in lexicographic order a text that begins another one begins its successor, too."""
    keys = [np.asarray(text, dtype=">i4").tobytes() for text in texts]
    order = sorted(range(len(texts)), key=keys.__getitem__)
    row = np.zeros(len(texts), dtype=np.int64)
    kept: list[Ints] = []
    after: bytes | None = None
    for index in reversed(order):
        if after is None or not after.startswith(keys[index]):
            kept.append(texts[index])
        row[index] = len(kept) - 1
        after = keys[index]
    return Rows(texts=tuple(kept), row=row, end=np.asarray([len(text) - 1 for text in texts], dtype=np.int64))


def new_network(settings: RewardModel, *, vocab_tokens: int, device: str) -> RewardNetwork:
    """An untrained network, whose scores are all 0.

    Raises:
        OSError: when the folder of `settings.path` is missing or incomplete.
        ValueError: when the model there has a smaller vocabulary.
    """
    with seeded(settings.seed):
        trunk = _small(settings, vocab_tokens) if settings.path is None else _copy(settings.path)
        network = RewardNetwork(trunk, settings.context_tokens)
    if network.vocab_tokens < vocab_tokens:
        raise ValueError(
            f"RewardModel.path: got {settings.path!r} with {network.vocab_tokens} tokens for {vocab_tokens} of the "
            "policy; need a model with the policy's tokenizer"
        )
    return network.to(device)


def load_network(folder: Path, settings: RewardModel, device: str) -> RewardNetwork:
    """The network in a folder that `RewardNetwork.save` wrote."""
    from safetensors.torch import load_file  # pyright: ignore[reportUnknownVariableType]

    network = RewardNetwork(load_trunk(folder), settings.context_tokens)
    network.head.load_state_dict(load_file(folder / HEAD))
    return network.to(device).requires_grad_(False)


def _small(settings: RewardModel, vocab_tokens: int) -> nn.Module:
    return small_transformer(
        layers=settings.layers,
        width=settings.width,
        heads=settings.heads,
        vocab_tokens=vocab_tokens,
        context_tokens=settings.context_tokens,
    )


def _copy(path: str) -> nn.Module:
    folder = locate(path)
    folder = folder / FINAL if (folder / FINAL).is_dir() else folder
    check_complete(folder, path)
    return load_trunk(folder)
