"""HBPO: the numbers of reward and credit, and groups over budgets."""

from dataclasses import replace

import numpy as np
import pytest
from tests.explore.stage import grow, runner, scripted
from tests.trees import ACTION, EDIT, OBSERVATION, PROMPT, N, build

from bough.cli.find import find_run
from bough.credit import Hbpo
from bough.credit.hbpo import BUDGET
from bough.explore import BudgetedChains, Chains
from bough.reward import BudgetReward
from bough.tree import Outcome, Rewarded, StageError, Tree, counted, path, text_in

DONE = Outcome.TERMINATED
NONE = float("nan")


def told(*paths: tuple[int | None, int, bool], well_formed: bool = True) -> Tree:
    """Paths of one turn: the budget, the tokens, and whether it succeeds."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for budget, tokens, success in paths:
        at = 0
        if budget is not None:
            nodes.append(N(parent=0, kind=EDIT, tokens=(1, 2), info={"text": "?", "budget": budget}))
            at = len(nodes) - 1
        nodes.append(N(parent=at, kind=ACTION, tokens=(5,) * tokens, well_formed=well_formed))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(4,), outcome=DONE, success=success))
    return build(*nodes)


def test_the_worked_example_of_the_reward() -> None:
    reward = BudgetReward()
    tokens, budget = np.asarray([300.0, 512, 1000, 300, 1000, 5000]), np.asarray([512, 512, 512, 2560, NONE, 512])
    assert reward.of_lengths(tokens, budget) == pytest.approx(
        [3.921799, 3.923141, 3.590308, 2.222273, 3.70945, 0], abs=2e-5
    )


def test_the_worked_example_of_the_credit() -> None:
    rewards, budget = np.asarray([3.5, 0.0, 3.0, 2.0]), np.asarray([512.0, 512, 2560, 2560])
    task = np.zeros(4, dtype=np.int64)
    once = [-1.284811, -3.546014, 0.843027, 0.196969]
    assert Hbpo().advantages(rewards, task, budget) == pytest.approx(once, abs=2e-5)
    twice = [-3.457952, -5.719154, 1.120754, 0.474696]
    assert Hbpo(as_released=True).advantages(rewards, task, budget) == pytest.approx(twice, abs=2e-5)
    none = np.full(4, NONE)
    z = [0.88833, -1.372873, 0.565301, -0.080757]
    assert Hbpo().advantages(rewards, task, none) == pytest.approx(z, abs=2e-5)


def test_a_budget_is_compared_with_its_own_paths_of_its_own_task() -> None:
    rewards, task = np.asarray([1.0, 3.0, 2.0, 2.0]), np.asarray([0, 0, 1, 1])
    budget = np.full(4, 512.0)
    bracket = 2.0 - 4 * np.cos(np.pi / 16)
    z = 1 / np.sqrt(2)
    assert Hbpo().advantages(rewards, task, budget) == pytest.approx([-z + bracket, z + bracket, bracket, bracket])
    alone = Hbpo().advantages(rewards[:1], task[:1], budget[:1])
    assert alone == pytest.approx([1.0 - 4 * np.cos(np.pi / 16)]), "and a path alone does not fail"


def test_the_reward_is_paid_to_paths_by_their_tokens_and_their_budgets() -> None:
    reward = BudgetReward(longest_tokens=8)
    tree = told((2, 2, True), (2, 6, True), (6, 6, True), (None, 6, True), (2, 2, False), (2, 9, True))
    (channels,) = reward([tree])
    paid = channels["budget"][tree.kind == ACTION]
    expected = reward.of_lengths(np.asarray([2.0, 6, 6, 6]), np.asarray([2.0, 2, 6, NONE]))
    assert paid == pytest.approx([*expected, 0, 0])
    assert expected[0] > expected[1], "the same success is worth less above the budget"
    assert BUDGET.newest(tree)[counted(tree)] == pytest.approx([2, 2, 6, NONE, 2, 2], nan_ok=True)
    (wrong,) = reward([told((2, 2, False), well_formed=False)])
    assert wrong["budget"].sum() == -1


def test_chains_read_their_budget_before_they_write() -> None:
    explorer = BudgetedChains(budgets=(8, 32), n=6, announce="at most {budget}")
    (tree,) = grow(runner(scripted(lambda rng: rng.choice("ab"))), explorer).trees
    budgets = BUDGET.newest(tree)[counted(tree)]
    assert sorted(budgets.tolist()) == [8, 8, 8, 32, 32, 32]
    for leaf, budget in zip(counted(tree).tolist(), budgets.tolist(), strict=True):
        first = path(tree, leaf)[1]
        assert tree.kind[first] == EDIT
        assert str(text_in(tree.info[int(first)])).endswith(f"at most {budget:.0f}")
        read = "".join(chr(token) for token in tree.tokens_of(int(first)))
        assert "at most" in read
    assert sum(tree.kind == EDIT) == 2, "chains of one budget share its prompt"
    (plain,) = grow(runner(scripted(lambda rng: rng.choice("ab"))), Chains(n=2)).trees
    assert np.isnan(BUDGET.newest(plain)).all()


def test_the_credit_of_a_tree_is_that_of_its_channel() -> None:
    tree = told((512, 3, True), (512, 3, False), (2560, 3, True))
    paid = np.zeros(tree.nodes)
    paid[np.flatnonzero(tree.kind == ACTION)] = [3.5, 0.0, 3.0]
    rewarded = Rewarded(tree=tree, channels={"budget": paid, "env": np.arange(tree.nodes, dtype=np.float64)})
    (credited,) = Hbpo()([rewarded])
    firsts = tree.span[np.flatnonzero(tree.kind == ACTION)]
    expected = Hbpo().advantages(np.asarray([3.5, 0, 3]), np.zeros(3, dtype=np.int64), np.asarray([512.0, 512, 2560]))
    assert (credited.positive + credited.negative)[firsts] == pytest.approx(expected)
    with pytest.raises(StageError, match=r"Hbpo.channel: got 'budget' and the channels \['env'\].*BudgetReward"):
        Hbpo()([replace(rewarded, channels={"env": paid})])


def test_the_method_scales_the_budgets_of_the_paper_to_the_world() -> None:
    run = find_run("hbpo", "frozenlake")
    longest = run.world.limits.turns * run.world.sampling.max_tokens
    explorer, credit = run.method.explorer, run.method.credit
    assert isinstance(explorer, BudgetedChains)
    assert explorer.budgets == tuple(round(share * longest) for share in (0.125, 0.25, 0.5, 0.625))
    assert isinstance(credit, Hbpo)
    assert credit.longest_tokens == longest
    given = find_run("hbpo(budgets=(10, 20), longest_tokens=40, as_released=true)", "frozenlake")
    assert given.method.credit == Hbpo(longest_tokens=40, as_released=True)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"BudgetedChains.budgets: got \(32, 8\); need ascending numbers"):
        BudgetedChains(budgets=(32, 8), n=2)
    with pytest.raises(ValueError, match=r"BudgetedChains.n: got 5; need a multiple of 4"):
        BudgetedChains(n=5)
    with pytest.raises(ValueError, match=r"BudgetedChains.announce: got 'hurry'; need the placeholder \{budget\}"):
        BudgetedChains(announce="hurry")
    with pytest.raises(ValueError, match=r"BudgetReward.longest_tokens: got 0; need at least 1"):
        BudgetReward(longest_tokens=0)
