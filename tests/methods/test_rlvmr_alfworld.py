"""RLVMR on a household: of two failures, the turn that corrects itself gains, and a repeated look loses."""

from tests.reward.test_meta_reasoning import plan, played

from bough.cli.find import find_run
from bough.context import TaggedThinking
from bough.reward import reward_trees
from bough.tree import Kind


def test_thoughts_move_the_advantage_where_outcomes_are_equal() -> None:
    run = find_run("rlvmr", "alfworld")
    assert isinstance(run.world.parser, TaggedThinking)
    first, second = plan()[:2]
    corrects = played(("explore", first), ("monitor", "fly home"), ("reflection", second), ("explore", second))
    repeats = played(("explore", first), ("monitor", "fly home"), ("reflection", "fly home"), ("explore", first))
    credited = run.method.credit(reward_trees([corrects, repeats], run.world.rewards))
    turns = [each.advantage[each.tree.span[:-1][each.tree.kind == Kind.ACTION]] for each in credited]
    assert turns[0][2] > turns[1][2], "the reflection that corrects"
    assert turns[0][2] > turns[0][1]
    plain = find_run("grpo", "alfworld")
    (without, _) = plain.method.credit(reward_trees([corrects, repeats], plain.world.rewards))
    acts = without.tree.span[:-1][without.tree.kind == Kind.ACTION]
    assert len(set(without.advantage[acts].tolist())) == 1
