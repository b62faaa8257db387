"""A batch with each token once: texts that begin alike share what they share, laid out depth first.

The whole of who sees whom is one number a token, `end`: a token at q sees the one at k when k <= q < end[k].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from bough.batch.stretch import Stretch, stretch
from bough.batch.trie import trie
from bough.tree import Ints

ENOUGH_TOKENS = 1536
"""Of a stretch on a CPU: more at a time leave its cache and take memory, and save little."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forest:
    """U tokens, each once for all the texts that have read the same until then.

    The texts `7 8 1 2 9`, `7 8 1 2 9 4` and `7 8 6`:

        tokens    7 8 6 1 2 9 4
        position  0 1 2 2 3 4 5
        end       7 7 3 7 7 7 7

    Attributes:
        tokens: [U] int64, vocabulary ids, depth first.
        position: [U] int64, how many tokens precede each in its text.
        end: [U] int64, where the tokens end that follow it in some text; its own place plus one, when there are none.
        at: [M] int64, where the tokens stand after which something is predicted.
        path_tokens: How many tokens the texts have that were planted.
        path_pairs: How many pairs of a token and one that it sees they have.
        effort: How many times the work, and the memory, a token takes after which something is predicted.
    """

    tokens: Int[Tensor, " U"]
    position: Int[Tensor, " U"]
    end: Ints
    at: Ints
    path_tokens: int
    path_pairs: int
    effort: float = 1.0

    def __len__(self) -> int:
        return len(self.end)

    @property
    def pairs(self) -> int:
        """How many pairs there are of a token and one that it sees."""
        return int(self.position.sum()) + len(self)

    def stretches(self, max_tokens: int, readers: int = 1) -> list[Stretch]:
        """The forest cut into stretches of at most `max_tokens` tokens, between trees where that is possible.

        Nor do they take more `effort` than so many tokens of the longest text. On a CPU a stretch takes no further tree
        once it has `ENOUGH_TOKENS`: longer ones are hardly faster, or slower. Where several `readers` share them, there
        is one for each at least, if there are so many trees. Cuts are made from the end, so that the first is the one
        that is short: what the last sees from before it is read twice.

        Raises:
            ValueError: when `max_tokens` is below 1.
        """
        if max_tokens < 1:
            raise ValueError(f"Forest.stretches: got max_tokens={max_tokens}; need at least 1")
        depth = self.position.cpu().numpy()
        enough = ENOUGH_TOKENS if self.tokens.device.type == "cpu" else max_tokens
        if readers > 1:
            # A little less than would be even: a tree that is a few tokens short must not draw in the next.
            enough = max(1, min(enough, 7 * len(self) // (8 * readers)))
        roots = np.flatnonzero(depth == 0)
        since = self._since(depth, max_tokens)
        cuts = [len(self)]
        while cuts[-1] > 0:
            last = cuts[-1]
            first = int(since[last])
            before, after = np.searchsorted(roots, [max(last - enough, first) + 1, first]).tolist()
            # From the first tree that makes it long enough on, or from all that fit.
            root = max(before - 1, after)
            fits = root < len(roots) and roots[root] < last
            cuts.append(int(roots[root]) if fits else _cut(depth, first, (last - first) // 4))
        return [stretch(self.end, depth, first, last) for first, last in pairwise(cuts[::-1])]

    def _since(self, depth: Ints, max_tokens: int) -> Ints:
        """[U + 1], from which token on a stretch may reach that ends before each."""
        place = np.arange(len(self) + 1)
        since = np.maximum(place - max_tokens, 0)
        if self.effort == 1 or not len(self):
            return since
        effort = np.ones(len(self))
        effort[self.at] = self.effort
        deepest = int(depth.argmax())
        longest = effort[: deepest + 1][self.end[: deepest + 1] > deepest]
        before = np.append(0.0, effort.cumsum())
        # A text that just fits must not be cut for a sum's rounding.
        most = (1 + 1e-9) * max_tokens * float(longest.mean())
        return np.minimum(np.maximum(since, np.searchsorted(before, before - most)), np.maximum(place - 1, 0))

    def chapters(self, max_tokens: int, readers: int = 1) -> list[list[Stretch]]:
        """The stretches, put together where one sees tokens of another: only within a tree, and in no other chapter."""
        found: list[list[Stretch]] = []
        for each in self.stretches(max_tokens, readers):
            if not len(each.past):
                found.append([])
            found[-1].append(each)
        return found

    def take(self, place: Ints) -> "Forest":
        """The tokens at some places, ascending, and with each all that it sees; nothing is trained."""
        whose = torch.as_tensor(place, device=self.tokens.device)
        return Forest(
            tokens=self.tokens[whose],
            position=self.position[whose],
            end=np.searchsorted(place, self.end[place]),
            at=np.zeros(0, dtype=np.int64),
            path_tokens=len(place),
            path_pairs=int(self.position[whose].sum()) + len(place),
        )

    def origin(self, stretches: Sequence[Stretch]) -> Ints:
        """[L], ascending: which tokens are seen from a later stretch than their own."""
        past = [each.past for each in stretches]
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *past]))


def _cut(depth: Ints, first: int, give: int) -> int:
    """Where to cut within a tree, at `first` or up to `give` tokens later.

    The path to the cut is kept and read again, so it should be short, as where a branch ends.
    """
    begins = first + 1 + np.flatnonzero(np.diff(depth[first : first + give + 1]) <= 0)
    places = np.append(first, begins)
    return int(places[np.argmin(depth[places])])


def plant(texts: Sequence[Ints], text: Ints, after: Ints, *, merge: bool = True, device: str = "cpu") -> Forest:
    """The forest of some texts.

    Texts are merged where their tokens agree from the beginning, wherever they are from: what a model makes of a token
    depends on the tokens before it alone. What is predicted is not merged: there may be several tokens after one place.

    Args:
        texts: Each of at least one token.
        text: [M], in which of them something is predicted.
        after: [M], after how many tokens of that text, at least 1.
        merge: False to leave every text by itself, for models that cannot read a forest.
        device: Where the model is.
    """
    found = trie(texts, merge=merge)
    length = np.asarray([len(each) for each in texts], dtype=np.int64)
    start = np.cumsum(length) - length
    tokens, position = np.empty_like(found.end), np.empty_like(found.end)
    tokens[found.place] = np.concatenate([found.end[:0], *texts])
    position[found.place] = np.arange(len(found.place)) - np.repeat(start, length)
    return Forest(
        tokens=torch.as_tensor(tokens, device=device),
        position=torch.as_tensor(position, device=device),
        end=found.end,
        at=found.place[start[text] + after - 1],
        path_tokens=len(found.place),
        path_pairs=int((length * (length + 1) // 2).sum()),
    )
