"""Hindsight: a path that missed its goal, with the goal that it reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.piece import AtLeast, piece
from bough.tree import (
    UNRESTRICTED,
    Ints,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Ternary,
    Tree,
    counted,
    keep_paths,
    step_info_in,
)


@piece
class Hindsight:
    """Hindsight experience replay (arXiv 1707.01495): paths to another goal, relabelled with that goal.

    It works in environments whose goal stands in the first prompt alone, and whose last `Step.info` has

        "goal"       the goal of the task
        "hindsight"  {"goal": the goal that this path has reached, "reward": the reward of its last action for it}

    A path without success gets the first prompt of an earlier path with the reached goal, one of the newest `keep` at
    random, and is a success with that reward. It is added to the batch as a path of another task, whose id has the
    goal, so it is in no statistic of its own task. Its actions count as forced: they are in no loss of the policy, but
    train an off-policy critic such as `UtteranceCritic` that stands after this hook. A path whose reached goal has had
    no prompt yet is not relabelled.

        wanted oslo, reached rome  ->  wanted oslo, failed; and: wanted rome, reached rome, reward 1

    Metric: `hindsight/relabelled`, paths of this step.

    Attributes:
        keep: Most prompts stored for each goal, at least 1.
        channel: The reward channel of the environment.
    """

    keep: Annotated[int, AtLeast(1)] = 8
    channel: str = "env"

    def build(self, setup: HookSetup) -> "HindsightState":
        """Return a state without prompts."""
        return HindsightState(self, setup)


@dataclass(slots=True, kw_only=True)
class HindsightData:
    """The state of the hook.

    Attributes:
        prompts: The prompts of each goal, oldest first.
    """

    prompts: dict[str, list[Ints]] = field(default_factory=dict[str, list[Ints]])


class HindsightState(BatchHook[Hindsight]):
    """The prompts of each goal, oldest first."""

    def __init__(self, settings: Hindsight, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: HindsightData = HindsightData()
        self._relabelled = 0

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Store the prompts of the batch, then add the relabelled paths."""
        generator = np.random.default_rng(seed)
        for each in rewarded:
            self._store(each.tree)
        made = [found for each in rewarded if not each.tree.replayed for found in self._relabel(each, generator)]
        self._relabelled += len(made)
        return [*rewarded, *made]

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        count, self._relabelled = self._relabelled, 0
        return {"hindsight/relabelled": float(count)}

    def _store(self, tree: Tree) -> None:
        """Store the prompt of a tree, once for each text."""
        goal = next(
            (found for leaf in counted(tree).tolist() if (found := step_info_in(tree.info[int(leaf)]).get("goal"))),
            None,
        )
        if not isinstance(goal, str):
            return
        known = self.data.prompts.setdefault(goal, [])
        prompt = tree.tokens_of(0).astype(np.int32)
        if not any(np.array_equal(prompt, each) for each in known):
            known.append(prompt)
            del known[: -self.settings.keep]

    def _relabel(self, rewarded: Rewarded, generator: np.random.Generator) -> list[Rewarded]:
        """The relabelled paths of a tree."""
        made: list[Rewarded] = []
        for leaf in counted(rewarded.tree).tolist():
            found = step_info_in(rewarded.tree.info[int(leaf)]).get("hindsight")
            if rewarded.tree.success[leaf] == Ternary.YES or not isinstance(found, dict):
                continue
            reached = cast("Mapping[str, Any]", found)
            goal = str(reached.get("goal"))
            if prompts := self.data.prompts.get(goal):
                prompt = prompts[int(generator.integers(len(prompts)))]
                path = keep_paths(rewarded, np.asarray([leaf]))
                made.append(self._with_goal(path, goal, prompt, float(reached["reward"])))
        return made

    def _with_goal(self, path: Rewarded, goal: str, prompt: Ints, reward: float) -> Rewarded:
        """A tree of one path with another prompt, as a forced success."""
        tree = path.tree
        acts = np.flatnonzero(tree.kind == Kind.ACTION)
        lengths = np.diff(tree.span)
        old, lengths[0] = int(lengths[0]), len(prompt)
        unknown = np.full(int(lengths.sum()), np.nan, dtype=np.float32)
        source, version, success = tree.source.copy(), tree.policy_version.copy(), tree.success.copy()
        source[acts], version[acts], success[tree.outcome != Outcome.OPEN] = Source.FORCED, -1, Ternary.YES
        paid = tree.env_reward.copy()
        channels = {name: each.copy() for name, each in path.channels.items()}
        paid[acts[-1]] = reward
        if self.settings.channel in channels:
            channels[self.settings.channel][acts[-1]] = reward
        relabelled = replace(
            tree,
            task=replace(tree.task, id=f"{tree.task.id} for {goal}"),
            span=np.concatenate([[0], np.cumsum(lengths)]).astype(tree.span.dtype),
            token=np.concatenate([prompt, tree.token[old:]]).astype(tree.token.dtype),
            logprob=unknown,
            entropy=unknown,
            allowed=np.full(len(unknown), UNRESTRICTED, dtype=tree.allowed.dtype),
            source=source,
            policy_version=version,
            success=success,
            env_reward=paid,
        )
        return Rewarded(tree=relabelled, channels=channels)
