"""Partial histories as tasks: which are kept, how they are drawn, and that they are remembered."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from tests.explore.stage import World, runner, scripted
from tests.rollout.test_starts import grown
from tests.trees import chains, rewarded

from bough.env import InProcessHost
from bough.explore import Chains
from bough.hooks import ExIt
from bough.hooks.exit import ExItState
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.reward import Success
from bough.tree import Rewarded, Task, counted
from trees import as_replayed

LENGTH = 4


async def nobody(_: Task) -> tuple[str, ...]:
    raise AssertionError("no teacher is asked")


def begin(kept: ExItState, tasks: list[Task], seed: int) -> list[Task]:
    return asyncio.run(kept.rewrite(tasks, nobody, seed))


def fresh(**settings: float) -> ExItState:
    return ExIt(**settings).build(HookSetup(vocab_tokens=10))  # type: ignore[arg-type]


def played(*tasks: Task, letters: str = "aaaab", n: int = 8) -> list[Rewarded]:
    """A group of chains for each task; one succeeds that writes `a` four times."""
    place = runner(scripted(lambda chance: chance.choice(letters)), InProcessHost(env=World(length=LENGTH)))
    trees = grown(place, Chains(n=n), *tasks).trees
    return [Rewarded(tree=tree, channels=Success()([tree])[0]) for tree in trees]


def variance(group: Rewarded) -> float:
    return float(group.returns().var())


def test_sums_in_another_order_are_equal_returns() -> None:
    one = fresh()
    history = Task(id="t").after(["a"])
    for returns, kept in (([0.1 + 0.2, 0.3], 0), ([0.1, 0.3], 1)):
        one.transform([rewarded(replace(chains(returns), task=history))], seed=0)
        assert len(one.data.kept) == kept


def test_a_group_that_differs_leaves_a_history_with_its_variance() -> None:
    one, (group,) = fresh(), played(Task(id="t"))
    assert one.transform([group], 0) == [group]
    ((name, (task, priority)),) = one.data.kept.items()
    assert priority == variance(group) > 0
    assert name == task.id != "t"
    assert 1 <= len(task.start) < LENGTH
    acts = {
        "".join(str(i["text"]) for i, c in zip(group.tree.info, group.tree.cut_off, strict=True) if c >= 0)[
            at : at + LENGTH
        ]
        for at in range(0, 32, 4)
    }
    assert any(text.startswith("".join(task.start)) for text in acts)


def test_a_group_that_ties_leaves_none() -> None:
    for letters in ("a", "b"):
        one = fresh()
        one.transform(played(Task(id="t"), letters=letters), 0)
        assert not one.data.kept
    one = fresh()
    one.transform([as_replayed(each) for each in played(Task(id="t"))], 0)
    one.transform(played(Task(id="t"), n=1), 0)
    assert not one.data.kept, "nor does one of an earlier step, nor a path alone"


def test_every_turn_but_the_last_is_a_place_to_cut() -> None:
    lengths: Counter[int] = Counter()
    (group,) = played(Task(id="t"))
    for seed in range(300):
        one = fresh()
        one.transform([group], seed)
        (task, _) = next(iter(one.data.kept.values()))
        lengths[len(task.start)] += 1
    assert set(lengths) == {1, 2, 3}
    assert min(lengths.values()) > 70


def test_a_history_that_was_played_is_valued_anew() -> None:
    one, task = fresh(), Task(id="t").after(["a", "a"])
    one.data.kept[task.id] = (task, 0.1)
    (group,) = played(task, letters="aab")
    one.transform([group], 0)
    assert one.data.kept[task.id] == (task, variance(group))
    (other,) = (found for name, (found, _) in one.data.kept.items() if name != task.id)
    assert other.start[:2] == ("a", "a")
    assert len(other.start) == 3, "and cut further on"
    one.transform(played(task, letters="a"), 0)
    assert task.id not in one.data.kept, "it is solved"


def test_the_lowest_go_first() -> None:
    one = fresh(keep=2)
    for number, priority in enumerate([0.2, 0.1, 0.25]):
        task = Task(id="t").after([str(number)])
        one.data.kept[task.id] = (task, priority)
    one.transform([], 0)
    assert [task.start for task, _ in one.data.kept.values()] == [("0",), ("2",)]


def test_tasks_are_replaced_by_chance_and_priority() -> None:
    one, tasks = fresh(chance=0.5), [Task(id=str(number)) for number in range(4)]
    assert begin(one, tasks, 0) == tasks, "there is nothing else yet"
    names = {}
    for number, priority in enumerate([0.25, 0.05]):
        task = Task(id="t").after([str(number)])
        one.data.kept[task.id] = (task, priority)
        names[task.id] = priority
    first: Counter[str] = Counter()
    replaced = 0
    for seed in range(1000):
        begun = begin(one, tasks, seed)
        assert begun == begin(one, tasks, seed)
        assert len({task.id for task in begun}) == 4, "none twice"
        old = [task.id for task, drawn in zip(begun, tasks, strict=True) if task != drawn]
        replaced += len(old)
        first.update(old[:1])
    # Of 4 tasks 2 are wanted on average, and 2 is the most: 4/16 of the time 1, 11/16 of the time 2.
    assert replaced / 1000 == pytest.approx(4 / 16 + 2 * 11 / 16, abs=0.08)
    share = [first[name] / sum(first.values()) for name in names]
    assert share == pytest.approx([5 / 6, 1 / 6], abs=0.05)
    assert begin(fresh(chance=0.0), tasks, 0) == tasks


def test_it_remembers_bit_for_bit() -> None:
    one, again = fresh(), fresh()
    for number in range(5):
        one.transform(played(Task(id=str(number), data={"rows": [number]})), number)
    restore(again.data, save(one.data))
    assert again.data.kept == one.data.kept
    assert list(again.data.kept) == list(one.data.kept)
    assert len(one.data.kept) > 2
    empty = fresh()
    restore(empty.data, save(fresh().data))
    assert empty.data.kept == {}


def test_metrics() -> None:
    one = fresh(chance=1.0)
    task = Task(id="t").after(["a", "b", "c"])
    one.data.kept[task.id] = (task, 0.1)
    begin(one, [Task(id="x"), Task(id="y")], 0)
    one.transform([], 0)
    assert one.observe() == {"exit/used": 1.0, "exit/kept": 1.0, "exit/turns": 3.0}
    assert one.observe()["exit/used"] == 0.0


def test_histories_count_in_the_step_of_their_batch() -> None:
    """With staleness the tasks of a step are drawn before the step before it ends."""
    one, plain = fresh(chance=1.0), [Task(id="x"), Task(id="y")]
    begin(one, plain, 0)
    for number in range(2):
        task = Task(id="t").after([str(number)])
        one.data.kept[task.id] = (task, 0.1)
    used = list[float]()
    for step in range(3):
        begin(one, plain, step + 1)
        one.transform([], 0)
        used.append(one.observe()["exit/used"])
    assert used == [0.0, 2.0, 2.0], "the first batch was drawn without histories"


def test_trees_without_texts_are_no_trouble() -> None:
    one = fresh()
    one.transform([rewarded(chains([1.0, 0.0]))], 0)
    assert not one.data.kept
    assert len(counted(chains([1.0, 0.0]))) == 2


@pytest.mark.parametrize("fields", [{"keep": 0}, {"chance": -0.1}, {"chance": 1.1}])
def test_ranges(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"ExIt\..*: got"):
        ExIt(**fields)  # type: ignore[arg-type]
