"""Passages: what a rationale earns, the texts of a task, and that GRACE's embeddings prefer rationales of the query."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from bough.context import Full, Plain
from bough.engine import Sampling, Scripted
from bough.env import InProcessHost
from bough.hooks import Contrastive
from bough.hooks.contrastive import TaskEmbeddings, recalled
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.learner.embeddings import mean_states
from bough.policy import Tiny
from bough.rollout import Agent, Cursor, Deadlines, Limits, Rollout, RolloutRunner
from bough.tree import Floats, Kind, Outcome, Rewarded, Task
from bough.worlds.search import Passages
from bough.worlds.search.index import terms
from bough.worlds.search.variants.passages import passages

WORLD = passages()
ENV = WORLD.env
assert isinstance(ENV, Passages)


def test_the_reward_is_the_share_of_the_words_of_the_question() -> None:
    data = {
        "query": "Name the mentor of Bak Lum.",
        "passage": "Rul Vam is old. The mentor of Bak Lum is Tov Res. It rains.",
    }
    state = ENV.start(Task(id="p", data=data))
    assert state.observation == data["passage"]
    assert [ENV.step(state, text).reward for text in ("mentor Bak Lum", "mentor Tov Res", "it rains", "")] == (
        pytest.approx([1, 1 / 3, 0, 0])
    )
    long = ENV.step(state, "mentor Bak Lum mentor Bak Lum mentor")
    assert (long.valid, long.success, long.outcome) == (False, False, Outcome.TERMINATED)
    plan = ENV.plan(state)
    assert plan is not None
    assert ENV.step(state, plan[0]).success
    assert not ENV.step(ENV.step(state, plan[0]).state, "again").valid
    with pytest.raises(ValueError, match=r"Passages: task q has no 'query' in its data; need a text"):
        ENV.start(Task(id="q", data={"passage": "text"}))


def test_the_negative_is_another_passage_about_like_words() -> None:
    for task in ENV.tasks("train", 20, 0):
        query, passage, negative = (str(task.data[name]) for name in ("query", "passage", "negative"))
        assert passage != negative
        assert {*terms(query)} & {*terms(negative)}
        assert query not in str(ENV.start(task).observation)


class Two:
    """Two paths of each task: the words of its query, and the passage's first words of another kind."""

    async def __call__(self, rollout: Rollout) -> None:
        root = await rollout.root()
        assert isinstance(root, Cursor)
        task = root.state.value
        assert isinstance(task, Task)
        plan = await rollout.plan(root)
        assert plan
        other = [
            each for each in str(task.data["passage"]).split() if each.strip(".").lower() not in str(plan[0]).lower()
        ]
        for branch, text in enumerate((str(plan[0]), " ".join(other[:3]))):
            await rollout.advance(root, branch=branch, action=text)


def test_rationales_that_name_what_the_query_names_are_paid_more_and_retrieved() -> None:
    """With embeddings of a model with random weights, the reward of `grace` prefers them in three of four tasks."""
    tasks = ENV.tasks("train", 40, 0)
    texts = [str(task.data[name]) for task in tasks for name in ("passage", "query")]
    policy = Tiny(layers=1, width=64, heads=4, vocab_tokens=600, context_tokens=256).build(texts)
    agent = Agent(
        engine=Scripted(script=lambda _: (0,)),
        renderer=policy.renderer,
        context=Full(),
        parser=Plain(),
        sampling=Sampling(max_tokens=24),
    )
    runner = RolloutRunner(
        agent=agent,
        host=InProcessHost(env=ENV),
        instructions=ENV.instructions,
        limits=Limits(turns=1),
        deadlines=Deadlines(),
    )
    trees = asyncio.run(runner.run(Two(), tasks, seed=0)).trees

    def states(read: Sequence[NDArray[np.int32]], first: Sequence[int]) -> Floats:
        return mean_states(policy, read, first, 8192).cpu().numpy()

    access = PolicyAccess(mean_states=states, tokens=lambda text: policy.renderer.write(text)[:-1])
    hook = Contrastive(cluster=0.0).build(HookSetup(policy=access))
    paid = [
        each.channels["contrastive"][each.tree.kind == Kind.ACTION]
        for each in hook.transform([Rewarded(tree=tree, channels={}) for tree in trees], 0)
    ]
    assert np.mean([good > bad for good, bad in paid]) > 0.7
    assert 0 < hook.observe()["contrastive/recall"] <= 1


def test_recall_counts_queries_whose_nearest_path_is_their_own() -> None:
    axes = np.eye(3)
    own = [TaskEmbeddings(query=axes[at], paths=axes[[at, 2]]) for at in range(2)]
    assert recalled(own) == [True, True]
    swapped = [replace(each, paths=axes[[1 - at]]) for at, each in enumerate(own)]
    assert recalled(swapped) == [False, False]
    assert recalled([replace(own[0], paths=axes[:0]), own[1]]) == [True], "a task without paths is none"
