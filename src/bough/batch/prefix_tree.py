"""Texts packed into prefix trees: each token once, laid out depth first.

One number a token defines the attention mask, `end`: a query at q sees the key at k when k <= q < end[k].
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from bough.batch.chunk import Chunk, make_chunk
from bough.batch.trie import trie
from bough.tree import Ints

ENOUGH_TOKENS = 1536
"""A chunk on a CPU takes no further tree from this size on: more tokens leave its cache and save little."""
NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedPrefixTree:
    """U tokens of some texts; a token that follows the same prefix in several texts is stored once.

    The texts `7 8 1 2 9`, `7 8 1 2 9 4` and `7 8 6`:

        tokens    7 8 6 1 2 9 4
        position  0 1 2 2 3 4 5
        end       7 7 3 7 7 7 7

    Attributes:
        tokens: [U] int64, vocabulary ids, depth first.
        position: [U] int64, the number of tokens before each in its text.
        end: [U] int64, the index after the last descendant of each token; its own index plus one for a leaf.
        at: [M] int64, the tokens after which a token is predicted.
        prediction: [M] int64, the index of each prediction among all that were packed together.
        path_tokens: The number of tokens of all texts.
        path_pairs: The number of their pairs of a query and a key that it sees.
        effort: Work and memory of a token in `at`, as a multiple of another token's.
        by_path: Whether every text stands apart, and no chunk begins within one: for a model's own forward pass, in
            which the texts of a chunk are padded to the longest.
    """

    tokens: Int[Tensor, " U"]
    position: Int[Tensor, " U"]
    end: Ints
    at: Ints
    prediction: Ints
    path_tokens: int
    path_pairs: int
    effort: float = 1.0
    by_path: bool = False

    @staticmethod
    def pack(
        texts: Sequence[Ints], text: Ints, after: Ints, *, merge: bool = True, device: str = "cpu"
    ) -> "PackedPrefixTree":
        """Pack texts into prefix trees.

        Texts are merged where their tokens agree from the beginning: a token's hidden state depends on the tokens
        before it alone. Predictions are not merged: several tokens may be predicted after one token.

        Args:
            texts: Each of at least one token.
            text: [M], the text of each prediction.
            after: [M], after how many tokens of that text, at least 1.
            merge: False to keep every text apart, for models that cannot be run on a packed tree.
            device: Of the model.
        """
        found = trie(texts, merge=merge)
        length = np.asarray([len(each) for each in texts], dtype=np.int64)
        start = np.cumsum(length) - length
        tokens, position = np.empty_like(found.end), np.empty_like(found.end)
        tokens[found.place] = np.concatenate([found.end[:0], *texts])
        position[found.place] = np.arange(len(found.place)) - np.repeat(start, length)
        return PackedPrefixTree(
            tokens=torch.as_tensor(tokens, device=device),
            position=torch.as_tensor(position, device=device),
            end=found.end,
            at=found.place[start[text] + after - 1],
            prediction=np.arange(len(after)),
            path_tokens=len(found.place),
            path_pairs=int((length * (length + 1) // 2).sum()),
        )

    def __len__(self) -> int:
        return len(self.end)

    @property
    def pairs(self) -> int:
        """The number of pairs of a query and a key that it sees."""
        return int(self.position.sum()) + len(self)

    def chunks(self, max_tokens: int) -> list[Chunk]:
        """Cut the packed tree into chunks of at most `max_tokens` tokens, between trees where that is possible.

        A chunk takes no more `effort` than `max_tokens` tokens of the longest text. On a CPU it takes no further tree
        once it has `ENOUGH_TOKENS`. Cuts are made from the end, so that the first chunk is the short one: prefixes are
        computed twice.

        Raises:
            ValueError: when `max_tokens` is below 1.
        """
        if max_tokens < 1:
            raise ValueError(f"PackedPrefixTree.chunks: got max_tokens={max_tokens}; need at least 1")
        depth = self.position.cpu().numpy()
        if self.by_path:
            cuts = _whole_texts(depth, max_tokens)
            return [make_chunk(self.end, depth, first, last) for first, last in pairwise(cuts)]
        enough = ENOUGH_TOKENS if self.tokens.device.type == "cpu" else max_tokens
        roots = np.flatnonzero(depth == 0)
        since = self._since(depth, max_tokens)
        cuts = [len(self)]
        while cuts[-1] > 0:
            last = cuts[-1]
            first = int(since[last])
            before, after = np.searchsorted(roots, [max(last - enough, first) + 1, first]).tolist()
            # The fewest trees that are long enough together, or all that fit.
            root = max(before - 1, after)
            fits = root < len(roots) and roots[root] < last
            cuts.append(int(roots[root]) if fits else _cut(depth, first, (last - first) // 4))
        return [make_chunk(self.end, depth, first, last) for first, last in pairwise(cuts[::-1])]

    def _since(self, depth: Ints, max_tokens: int) -> Ints:
        """[U + 1]: the first token of the longest chunk that ends before each token."""
        place = np.arange(len(self) + 1)
        since = np.maximum(place - max_tokens, 0)
        if self.effort == 1 or not len(self):
            return since
        effort = np.ones(len(self))
        effort[self.at] = self.effort
        deepest = int(depth.argmax())
        longest = effort[: deepest + 1][self.end[: deepest + 1] > deepest]
        before = np.append(0.0, effort.cumsum())
        # A text that just fits must not be cut by a rounding error.
        most = (1 + 1e-9) * max_tokens * float(longest.mean())
        return np.minimum(np.maximum(since, np.searchsorted(before, before - most)), np.maximum(place - 1, 0))

    def chunk_groups(self, max_tokens: int) -> list[list[Chunk]]:
        """The chunks, grouped so that no chunk sees tokens of another group."""
        found: list[list[Chunk]] = []
        for each in self.chunks(max_tokens):
            if not len(each.past):
                found.append([])
            found[-1].append(each)
        return found

    def take(self, place: Ints, predictions: Ints = NONE) -> "PackedPrefixTree":
        """Some tokens, ascending, which must include all that they see, and some predictions after them."""
        whose = torch.as_tensor(place, device=self.tokens.device)
        return PackedPrefixTree(
            tokens=self.tokens[whose],
            position=self.position[whose],
            end=np.searchsorted(place, self.end[place]),
            at=np.searchsorted(place, self.at[predictions]),
            prediction=self.prediction[predictions],
            path_tokens=len(place),
            path_pairs=int(self.position[whose].sum()) + len(place),
            effort=self.effort,
            by_path=self.by_path,
        )

    def separate(self) -> "PackedPrefixTree":
        """The same predictions on texts that stand apart, short texts first: one for each leaf.

        A prediction after a token of several texts is made in the first of them.
        """
        if self.by_path:
            return self
        depth = self.position.cpu().numpy()
        leaves = np.flatnonzero(self.end == np.arange(len(self)) + 1)
        paths = list[Ints]()
        for before, leaf in pairwise([-1, *leaves.tolist()]):
            above: Ints = paths[-1][: depth[before + 1]] if paths else NONE
            paths.append(np.concatenate([above, np.arange(before + 1, leaf + 1)]))
        length = np.asarray([len(each) for each in paths], dtype=np.int64)
        order = np.argsort(length, kind="stable")
        start = np.empty_like(length)
        start[order] = np.cumsum(length[order]) - length[order]
        ordered: list[Ints] = [paths[each] for each in order.tolist()]
        tokens = np.concatenate([NONE, *ordered])
        whose = torch.as_tensor(tokens, device=self.tokens.device)
        return replace(
            self,
            tokens=self.tokens[whose],
            position=self.position[whose],
            end=np.repeat(np.cumsum(length[order]), length[order]),
            at=start[np.searchsorted(leaves, self.at)] + depth[self.at],
            by_path=True,
        )

    def shared_tokens(self, chunks: Sequence[Chunk]) -> Ints:
        """[L], ascending: the tokens that a later chunk than their own sees."""
        past = [each.past for each in chunks]
        return np.unique(np.concatenate([NONE, *past]))


def _whole_texts(depth: Ints, max_tokens: int) -> list[int]:
    """The cuts between chunks of whole texts, of at most `max_tokens` tokens with their padding, or of one text."""
    cuts, texts, longest = [0], 0, 0
    for first, last in pairwise([*np.flatnonzero(depth == 0).tolist(), len(depth)]):
        texts, longest = texts + 1, max(longest, last - first)
        if texts > 1 and texts * longest > max_tokens:
            cuts.append(first)
            texts, longest = 1, last - first
    return [*cuts, len(depth)] if len(depth) else [0]


def _cut(depth: Ints, first: int, give: int) -> int:
    """The token at which to cut a tree, at `first` or up to `give` tokens later.

    The path to the cut is stored and computed again, so it should be short, as where a branch ends.
    """
    begins = first + 1 + np.flatnonzero(np.diff(depth[first : first + give + 1]) <= 0)
    places = np.append(first, begins)
    return int(places[np.argmin(depth[places])])
