"""A judge that imitates its own verifications: the answers that it learns, its checkpoints, and who asks it."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from tests.appraise.test_appraisers import appraised, asker, says
from tests.appraise.test_verification import chain
from tests.methods.small import small
from tests.small import world

from bough.appraise import Verifications
from bough.config import ConfigError
from bough.context import conversation
from bough.engine.gated import GatedEngine
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.hooks.hook_state import restore, save
from bough.learner.trained_copy import TrainedCopy
from bough.methods.spark import spark
from bough.methods.step_orlm import step_orlm
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.roles import FrozenCheckpoint, JudgeWeights, StartingWeights, TrainedJudge
from bough.roles.judge import TrainedJudgeState
from bough.rollout import Deadlines, RoleModel
from bough.store import Checkpoints, read_metrics
from bough.train import Run, start
from bough.train.runtime import Runtime
from bough.tree import Rewarded, Ternary, Tree, read_json_column

ASKS = Verifications(role="judge", prompt="{steps}?", system="")
RIGHT, WRONG = "[1, 1] yes", "[0, 1] no"


def verified(tmp_path: Path, *answers: str, success: Ternary = Ternary.YES) -> Rewarded:
    """A path of two steps with these verifications."""
    left = iter(answers)
    tree = chain("a", "b")
    ends = tree.success.copy()
    ends[-1] = success
    (tree,) = appraised(
        [replace(tree, success=ends)], asker(lambda _: says(next(left)), tmp_path)[0], replace(ASKS, n=len(answers))
    )
    return Rewarded(tree=tree, channels={})


def begun(policy: Policy, agreement: Literal["success", "majority"] = "success") -> TrainedJudgeState:
    """The hook of a policy."""

    def copy(learning_rate: float, clip_norm: float) -> TrainedCopy:
        return TrainedCopy(policy, learning_rate=learning_rate, clip_norm=clip_norm, temperature=1.0, micro_tokens=4096)

    def talk(system: str, question: str, answer: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        both = policy.renderer.render(conversation(system, (), question)), policy.renderer.write(answer)
        return both if sum(map(len, both)) <= policy.context_tokens else None

    settings = TrainedJudge(verifications=ASKS, agreement=agreement, learning_rate=1e-2)
    return settings.build(HookSetup(policy=PolicyAccess(copy=copy, conversation=talk)))


def tiny(context_tokens: int = 256) -> Policy:
    return Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=context_tokens).build(["a text"])


def logprob(state: TrainedJudgeState, tree: Tree, answer: str) -> float:
    """The log-probability of an answer about the path of a tree."""
    asked = state._tree(ASKS.question(tree, tree.nodes - 1, (1, 3)).prompt, answer)  # pyright: ignore[reportPrivateUsage]
    assert asked is not None
    return float(np.nansum(state.data.model().logprobs([asked])[0]))


def test_the_judge_imitates_the_verification_that_agrees_with_the_solver(tmp_path: Path) -> None:
    """The agreeing answer becomes likely, the other less likely than before; the policy does not change."""
    policy = tiny()
    weights = policy.state()
    before, state, found = begun(policy), begun(policy), verified(tmp_path, RIGHT, WRONG)
    before.transform([], 0)
    for _ in range(30):
        state.transform([found], 0)
    assert state.observe()["judge/answers"] == 60
    assert logprob(state, found.tree, RIGHT) > np.log(0.5) > logprob(before, found.tree, RIGHT)
    gain = logprob(state, found.tree, RIGHT) - logprob(before, found.tree, RIGHT)
    assert logprob(state, found.tree, WRONG) - logprob(before, found.tree, WRONG) < gain / 2
    assert logprob(state, found.tree, WRONG) < np.log(0.01)
    assert state.data.updates == 30
    assert all(torch.equal(value, weights[name]) for name, value in policy.state().items())


def test_a_failed_path_teaches_the_other_answer(tmp_path: Path) -> None:
    state, found = begun(tiny()), verified(tmp_path, RIGHT, WRONG, success=Ternary.NO)
    for _ in range(30):
        state.transform([found], 0)
    assert logprob(state, found.tree, WRONG) > np.log(0.5)
    assert logprob(state, found.tree, RIGHT) < np.log(0.01)


def test_the_state_is_restored_bit_for_bit(tmp_path: Path) -> None:
    policy, found = tiny(), verified(tmp_path, RIGHT, WRONG)
    state, again = begun(policy), begun(policy)
    assert state.data.model.part is None
    state.transform([found], 0)
    restore(again.data, save(state.data))
    for _ in range(2):
        one, two = save(state.data), save(again.data)
        assert one.keys() == two.keys()
        assert all(np.array_equal(one[name], two[name]) for name in one)
        assert state.data.updates == again.data.updates
        for each in (state, again):
            each.transform([found], 0)


@pytest.mark.parametrize(
    ("answers", "chosen"),
    [
        (("[1, 1] yes", "[1, 0] yes", "[1, 1] no"), 1),
        (("[1, 1] yes", "so: [1, 1] yes", "hm"), 2),
        (("[1, 0] yes", "[0, 1] yes", "[1, 1] no"), 0),
        (("hm", "[1] yes"), 0),
    ],
)
def test_the_majority_chooses_answers_that_agree_in_all_verdicts(
    answers: tuple[str, ...], chosen: int, tmp_path: Path
) -> None:
    state = begun(tiny(), "majority")
    state.transform([verified(tmp_path, *answers, success=Ternary.NO)], 0)
    assert state.observe()["judge/chosen"] == chosen
    assert state.data.updates == bool(chosen)


def test_answers_beyond_the_context_are_left_out(tmp_path: Path) -> None:
    state = begun(tiny(context_tokens=8))
    state.transform([verified(tmp_path, RIGHT)], 0)
    assert state.observe() == {"judge/answers": 1, "judge/chosen": 0}


def short(run: Run) -> Run:
    """A small run whose judge writes a few tokens, and whose every path has four steps."""
    made = small(run)
    return made.replace(hooks=tuple(replace(each, learning_rate=1e-2) for each in made.method.hooks))  # type: ignore[call-arg]


def saved(directory: Path, group: str) -> dict[str, torch.Tensor]:
    checkpoint = Checkpoints(directory=directory).latest().checkpoint
    assert checkpoint is not None
    return checkpoint.tensors(group)


def test_a_judge_evolves_with_the_policy_and_a_later_run_asks_it_frozen(tmp_path: Path) -> None:
    run = short(step_orlm(world()))
    directory = start(run, tmp_path, terminal=False)
    rows = [row for row in read_metrics(directory.metrics) if "judge/chosen" in row]
    assert max(float(row["judge/chosen"]) for row in rows) > 0
    judge = saved(directory.checkpoints, "adviser_0_TrainedJudge")
    policy = saved(directory.checkpoints, "policy")
    assert any(not torch.equal(judge[f"model/weights/{name}"], value) for name, value in policy.items())

    runtime = Runtime(run, directory.policy, Deadlines())
    engine = runtime.models["judge"].engine
    assert isinstance(engine, GatedEngine)
    prompt, answer = (5, 6, 7), (8, 9, 10)
    own = asyncio.run(engine.score(prompt, answer))
    (hook,) = runtime.main.hooks.memories.values()
    hook.load_state(judge)
    before = runtime.policy.state()
    asyncio.run(runtime.begin_step(1))
    assert all(torch.equal(value, before[name]) for name, value in runtime.policy.state().items())
    evolved = asyncio.run(engine.score(prompt, answer))
    assert evolved != own
    assert engine.policy_version == read_json_column(judge["fields"].numpy())["updates"] > 0

    asked = RoleModel(engine=engine, renderer=runtime.policy.renderer)
    frozen = FrozenCheckpoint(run=str(directory.path), judge=True).open_model(None, asked)
    assert asyncio.run(frozen.engine.score(prompt, answer)) == evolved
    plain = FrozenCheckpoint(run=str(directory.path)).open_model(None, asked)
    assert asyncio.run(plain.engine.score(prompt, answer)) != evolved
    assert plain.name != frozen.name


def test_spark_trains_a_judge_alone(tmp_path: Path) -> None:
    run = short(spark(world(), judge="judge", n=3, trains_judge=True).replace(models={"judge": StartingWeights()}))
    directory = start(run, tmp_path, terminal=False)
    rows = [row for row in read_metrics(directory.metrics) if "judge/chosen" in row]
    assert max(float(row["judge/chosen"]) for row in rows) > 0
    assert not any("loss/total" in row for row in rows)
    policy, judge = (saved(directory.checkpoints, each) for each in ("policy", "adviser_0_TrainedJudge"))
    assert any(not torch.equal(judge[f"model/weights/{name}"], value) for name, value in policy.items())


def test_settings(tmp_path: Path) -> None:
    assert step_orlm(world(), evolves=False).models == {"judge": StartingWeights()}
    assert not step_orlm(world(), evolves=False).method.hooks
    assert not step_orlm(world(), judge="policy").models
    with pytest.raises(ConfigError, match="got 0 hooks TrainedJudge; need one"):
        start(step_orlm(world(), evolves=False).replace(models={"judge": JudgeWeights()}), tmp_path, terminal=False)
    with pytest.raises(ValueError, match=r"TrainedJudge.updates: got 0; need at least 1"):
        TrainedJudge(updates=0)
    with pytest.raises(ValueError, match="learning_rate: got 0"):
        TrainedJudge(learning_rate=0)
    with pytest.raises(ValueError, match="agreement: got 'all'; need 'success' or 'majority'"):
        TrainedJudge(agreement="all")  # type: ignore[arg-type]
