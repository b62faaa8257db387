"""A world model is trained on the questions that it is asked, and on the observations that really came."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.explore.stage import STOP, Letters, World, grow, runner, says
from tests.methods.small import small

from bough.batch import pack_demonstrations
from bough.cli.find import find_run
from bough.context import Plain, Window
from bough.engine import Sampling, Scripted
from bough.env import InProcessHost
from bough.explore import Chains
from bough.explore.world_model import ImaginedEpisode, WorldModel
from bough.reward import EnvReward, reward_trees
from bough.rewrite import PredictObservations
from bough.rollout import Deadlines, PolicyFormat, RoleModel
from bough.rollout.model_client import ModelClient
from bough.store import read_metrics
from bough.train import start
from bough.tree import Kind, Rewarded, Source, Task, Tree

FORMAT = PolicyFormat(renderer=Letters(), context=Window(turns=1), parser=Plain())


def played(n: int = 3) -> Rewarded:
    """Words of three letters."""
    place = runner(Scripted(script=says(lambda _: "a")), InProcessHost(env=World()))
    (tree,) = grow(place, Chains(n=n)).trees
    return reward_trees([tree], (EnvReward(),))[0]


def texts(tree: Tree) -> tuple[str, str]:
    """The question, and the answer that is learned."""
    (act,) = np.flatnonzero(tree.kind == Kind.ACTION)
    assert tree.source[act] == Source.TEACHER
    read, learned = (tree.tokens_of(int(node)).tolist() for node in (0, act))
    return "".join(map(chr, read)), "".join(chr(token) for token in learned if token != STOP)


def test_each_observation_is_the_answer_to_the_question_that_the_world_model_asks() -> None:
    made = PredictObservations(per_tree=99)([played()], FORMAT)
    found = dict(texts(each.tree) for each in made)
    engine = Scripted(script=says(lambda _: "x"))
    served, sampling = RoleModel(engine=engine, renderer=Letters()), Sampling(max_tokens=9)
    model = WorldModel(ask=ModelClient(model=lambda _: served, sampling=sampling, deadlines=Deadlines(), seed=0))
    env = World()

    async def ask() -> None:
        real = env.start(Task(id="t"))
        seen = model.state(str(real.observation), ImaginedEpisode(instructions="go"))
        await model.step(seen, "a")

    asyncio.run(ask())
    asked = "".join(map(chr, engine.requests[-1].prompt_tokens))
    assert asked in found
    assert len(found) == len(made)
    assert any("[solved]" in answer or "[over]" in answer for answer in found.values())


def test_the_loss_is_on_the_observations_alone_and_there_are_not_too_many() -> None:
    made = PredictObservations(per_tree=2)([played(), played(1)], FORMAT)
    assert len(made) == 4
    batch = pack_demonstrations([each.tree for each in made])
    learned = sum(len(texts(each.tree)[1]) + 1 for each in made)
    assert int((batch.positive > 0).sum()) == learned
    short = PolicyFormat(renderer=Letters(), context=Window(turns=1), parser=Plain(), max_tokens=10)
    assert PredictObservations()([played()], short) == []


def test_a_run_learns_observations_in_the_real_environment(tmp_path: Path) -> None:
    folder = start(small(find_run("starwm(per_tree=1)", "frozenlake")).replace(steps=1), tmp_path, terminal=False)
    rows = [row for row in read_metrics(folder.metrics) if "train/revisions" in row]
    assert [float(row["train/revisions"]) for row in rows] == [4.0]
    (nll,) = [
        float(value) for row in read_metrics(folder.metrics) for name, value in row.items() if "expert_nll" in name
    ]
    assert nll > 0


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"per_tree: got 0"):
        PredictObservations(per_tree=0)
