"""Advantages from the outcome of a path, and from rewards of turns with the same kind of thought."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.channel_view import channel_view
from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.needs import Need, annotation, channel
from bough.piece import Above, Between, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, annotations, path_view, spread_turns


@piece
class Rlvmr:
    """RLVMR (arXiv 2507.22844): outcomes of a task, and rewards of turns with one tag; needs a channel and a tag.

    With R the path's return without the channel `step`, r that channel's reward of the turn, and z the difference to
    the group's mean over its standard deviation (ddof 1):

        A = blend * z(R; task) + (1 - blend) * z(r; task, tag)

    Two paths: planning 1, explore 1, reflection 0 with R = 10, and planning 0, explore 1 with R = 0:

        Rlvmr()                     0.707   0.354   0.354  -0.707  -0.354
        Rlvmr(as_released=True)     4.5     4.0     4.0    -6.5    -6.0

    The mean of R is over paths, that of r over turns. A turn alone in its tag, or without a tag, gets 0 from the second
    part. A penalty for the format belongs into a channel of its own, and so into R: among turns without a tag it would
    be the same for all.

    The released code adds the two parts with weight 1, and subtracts means without a division. Its mean of R is over
    turns, so long paths weigh more: 6 in place of 5 above. The only turn of a tag keeps its reward, and turns without a
    tag are a group.

    Attributes:
        step: The channel of the rewards of thoughts.
        mark: The parser's annotation with the kind of thought.
        blend: Weight of the outcome, in [0, 1]; alpha of the paper.
        std: The standard deviation to divide by: of the group, or none.
        epsilon: Added to the standard deviation, > 0.
        as_released: The released code's form, without `blend` and `std`.
    """

    compares: ClassVar[Literal["nothing"]] = "nothing"

    step: str = "meta_reasoning"
    mark: str = "thought"
    blend: Annotated[float, Between(0, 1)] = 0.5
    std: Literal["group", "none"] = "group"
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    @property
    def needs(self) -> frozenset[Need]:
        """The channel and the annotation."""
        return frozenset({channel(self.step), annotation(self.mark)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a tree lacks the channel `step`.
        """
        view = path_view(rewarded)
        thoughts = channel_view(rewarded, self.step, setting="Rlvmr.step", remedy="MetaReasoning()")
        outcome = view.returns - thoughts.returns
        tag = _tags(view, self.mark)
        # A turn without a tag is its own group.
        alone = np.where(tag == 0, np.arange(len(tag)) + 1, 0)
        if self.as_released:
            alone = np.zeros_like(tag)
        same = group_by(view.task[view.path], tag, alone)
        return spread_turns(view, self._advantage(view, outcome, thoughts.reward, same))

    def _advantage(self, view: PathView, outcome: Floats, reward: Floats, same: Ints) -> Floats:
        """[S] float64: the advantage of each turn, by the outcome of each path [P] and the turn's reward [S]."""
        if self.as_released:
            task = view.task[view.path]
            by_path = normalize(outcome[view.path], task, std="none", singleton="raw")
            return by_path + normalize(reward, same, std="none", singleton="raw")
        by_path = normalize(outcome, view.task, std=self.std, epsilon=self.epsilon)[view.path]
        by_tag = normalize(reward, same, std=self.std, epsilon=self.epsilon)
        return self.blend * by_path + (1.0 - self.blend) * by_tag


def _tags(view: PathView, mark: str) -> Ints:
    """[S] int64: the number of each turn's tag, from 1 in the order of names; 0 without one."""
    found, which = annotations(view, mark)
    named = [each if isinstance(each, str) else "" for each in found]
    numbers = {name: number for number, name in enumerate(sorted({"", *named}))}
    return np.asarray([numbers[name] for name in named], dtype=np.int64)[which]
