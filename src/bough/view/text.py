"""A group as text, for a terminal."""

from collections.abc import Iterator

from bough.view.branch import Branch, Turn, branches, text_of
from bough.view.choose import Group, returns, successes
from bough.view.numbers import short, signed
from bough.visible import visible

ACTION_LETTERS = 48


def show_tree(group: Group) -> str:
    """The trees of one task as text: the prompt, then each branch, one line a turn with advantage and reward.

    Turns of a search have their visits, the value of the state after them, and the rating of the action.

    frozenlake-7: 2 paths, 1 solved, mean return 0.5
    | You are at S. Reach G.
    ├─ right                +0.50
    │  down                 +0.50  reward 1
    │  = solved, return 1
    └─ up                    0.00
       = ran out of budget, return 0
    """
    values, solved = returns(group), successes(group)
    task = group[0].tree.task.id if group else "no task"
    mean = f", mean return {short(sum(values) / len(values))}" if values else ""
    lines = [f"{task}: {len(values)} paths, {sum(solved)} solved{mean}"]
    prompts = dict.fromkeys(text_of(credited, 0) for credited in group)
    lines += [f"| {line}" for prompt in prompts for line in prompt.splitlines()]
    lines += _forest([branch for credited in group for branch in branches(credited)])
    return visible("\n".join(lines))


def _forest(grown: list[Branch]) -> Iterator[str]:
    for at, branch in enumerate(grown):
        last = at == len(grown) - 1
        inner = [*map(_turn, branch.turns), *_forest(list(branch.branches))]
        if branch.end:
            inner.append(f"= {branch.end.outcome}, return {short(branch.end.value)}")
        yield ("└─ " if last else "├─ ") + inner[0]
        yield from (("   " if last else "│  ") + line for line in inner[1:])


def _turn(turn: Turn) -> str:
    action = "..." if turn.action is None else turn.label
    clipped = action if len(action) <= ACTION_LETTERS else f"{action[: ACTION_LETTERS - 3]}..."
    searched = turn.visits > 0 or turn.value is not None or turn.rating is not None
    found = [f"{clipped:20}"]
    found += [f"{signed(turn.advantage):>5}"] if turn.advantage or not searched else []
    found += [f"visits {turn.visits}"] if turn.visits else []
    found += [
        f"{name} {short(each)}" for name, each in (("value", turn.value), ("rating", turn.rating)) if each is not None
    ]
    found += [f"reward {short(sum(turn.rewards.values()))}"] if turn.rewards else []
    return "  ".join([*found, *([] if turn.valid else ["invalid"])])
