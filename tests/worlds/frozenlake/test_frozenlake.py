import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.env.play import flood, follow

from bough.env import State
from bough.env.grid import ACTIONS, MOVES
from bough.tree import Outcome, Task
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.frozenlake.env import chances

LAKE = FrozenLake()


def lake(*rows: str, seed: int = 0) -> Task:
    return Task(id="lake", seed=seed, data={"rows": list(rows)})


def test_a_walk_by_hand() -> None:
    state = LAKE.start(lake("SFH", "FHF", "FFG"))
    assert state.observation == "P _ O\n_ O _\n_ _ G"
    assert state.admissible == ("left", "down", "right", "up")
    down = LAKE.step(state, "down")
    assert down.state.observation == "_ _ O\nP O _\n_ _ G"
    assert (down.reward, down.outcome, down.valid, down.success) == (0.0, Outcome.OPEN, True, False)
    hole = LAKE.step(down.state, " Right\n")
    assert hole.state.observation == "_ _ O\n_ X _\n_ _ G"
    assert (hole.reward, hole.outcome, hole.success) == (0.0, Outcome.TERMINATED, False)
    state = down.state
    for move in ("down", "right"):
        state = LAKE.step(state, move).state
    goal = LAKE.step(state, "right")
    assert goal.state.observation == "_ _ O\n_ O _\n_ _ *"
    assert (goal.reward, goal.outcome, goal.success) == (1.0, Outcome.TERMINATED, True)


def test_the_edge_and_unknown_text_change_nothing_but_take_a_step() -> None:
    env = FrozenLake(max_steps=3)
    first = env.start(lake("SF", "FG"))
    edge = env.step(first, "up")
    assert edge.valid
    assert edge.state.key == first.key, "no step counter in the key"
    unknown = env.step(edge.state, "fly")
    assert not unknown.valid
    assert unknown.state.key == first.key
    assert unknown.outcome == Outcome.OPEN
    late = env.step(unknown.state, "left")
    assert late.outcome == Outcome.TRUNCATED
    assert env.plan(unknown.state) is None, "two moves are too many for the one step that is left"
    assert env.plan(edge.state) == ("down", "right")


def test_reaching_the_goal_with_the_last_step_is_success() -> None:
    env = FrozenLake(max_steps=2)
    step = env.step(env.step(env.start(lake("SF", "FG")), "down").state, "right")
    assert (step.outcome, step.success, step.reward) == (Outcome.TERMINATED, True, 1.0)
    again = env.step(step.state, "left")
    assert (again.outcome, again.valid, again.reward, again.state) == (Outcome.TERMINATED, False, 0.0, step.state)
    assert env.plan(step.state) == ()


@settings(max_examples=60)
@given(st.text("FH", min_size=7, max_size=7), st.permutations(range(9)))
def test_the_plan_is_as_short_as_any_and_there_is_one_when_any_is(rest: str, order: list[int]) -> None:
    letters = list(rest + "SG")
    text = "".join(letters[i] for i in order)
    env = FrozenLake(size=3, max_steps=6)
    state = env.start(lake(text[:3], text[3:6], text[6:]))
    plan = env.plan(state)
    assert (None if plan is None else len(plan)) == flood(env, state, 6)
    if plan is not None:
        for action in plan[:-1]:
            state = env.step(state, action).state
        assert env.step(state, plan[-1]).success


def test_two_steps_on_slippery_ice_in_closed_form() -> None:
    slip = 0.25
    tables = chances(("SF", "HG"), slip, 2)
    assert tables[1][0, 1].action == "down"
    assert tables[1][0, 1].success == pytest.approx(1 - slip)
    assert tables[1][0, 0].success == 0.0
    # Right slips into the hole half of the time; up only slips to the right, too seldom to pay.
    assert tables[2][0, 0].action == "right"
    assert tables[2][0, 0].success == pytest.approx((1 - slip) ** 2)


def test_sideways_ice_is_a_gambler() -> None:
    # Every move up or down goes left or right by a coin; from the k-th of n cells the goal comes first in k of n cases.
    tables = chances(("HSFFG",), 1.0, 400)
    for k in (1, 2, 3):
        assert tables[400][0, k].success == pytest.approx(k / 4, abs=1e-9)


@settings(max_examples=25)
@given(
    st.text("FH", min_size=2, max_size=2),
    st.permutations(range(4)),
    st.sampled_from([0.1, 1 / 3, 0.5, 2 / 3]),
    st.integers(1, 4),
)
def test_value_iteration_agrees_with_trying_every_policy(rest: str, order: list[int], slip: float, steps: int) -> None:
    text = "".join((rest + "SG")[i] for i in order)
    rows = (text[:2], text[2:])
    table = chances(rows, slip, steps)[steps]
    for cell, chance in table.items():
        assert chance.success == pytest.approx(best_chance(rows, slip, cell, steps))


def best_chance(rows: tuple[str, ...], slip: float, cell: tuple[int, int], steps: int) -> float:
    """By recursion over all that can happen, written apart from the library's tables."""
    letter = rows[cell[0]][cell[1]]
    if letter in "HG" or steps == 0:
        return float(letter == "G")

    def after(move: str) -> float:
        row, column = (a + b for a, b in zip(cell, MOVES[move], strict=True))
        inside = 0 <= row < len(rows) and 0 <= column < len(rows[0])
        return best_chance(rows, slip, (row, column) if inside else cell, steps - 1)

    value = {move: after(move) for move in ACTIONS}
    sides = {"left": ("up", "down"), "right": ("up", "down"), "up": ("left", "right"), "down": ("left", "right")}
    return max((1 - slip) * value[move] + slip / 2 * sum(value[side] for side in sides[move]) for move in ACTIONS)


def test_without_slips_value_iteration_walks_the_shortest_way() -> None:
    for task in LAKE.tasks("dev", 20, 0):
        rows = tuple(task.data["rows"])  # type: ignore[arg-type]
        plan = LAKE.plan(LAKE.start(task))
        assert plan is not None
        (start,) = ((r, c) for r, row in enumerate(rows) for c, letter in enumerate(row) if letter == "S")
        chance = chances(rows, 0.0, 20)[20][start]
        assert (chance.success, chance.steps) == (1.0, len(plan))


def test_slips_come_as_often_as_they_should_and_only_from_seed_and_actions() -> None:
    env = FrozenLake(slip=0.4)
    went = [env.step(env.start(lake("FFF", "FSF", "FFG", seed=seed)), "left").state for seed in range(1000)]
    ends = [state.observation for state in went]
    assert ends.count("_ _ _\nP _ _\n_ _ G") / 1000 == pytest.approx(0.6, abs=0.05)
    assert ends.count("P _ _\n_ _ _\n_ _ G") == 0, "one cell, not two"
    assert ends.count("_ P _\n_ _ _\n_ _ G") / 1000 == pytest.approx(0.2, abs=0.04)
    assert ends.count("_ _ _\n_ _ _\n_ P G") / 1000 == pytest.approx(0.2, abs=0.04)
    assert ends == [
        env.step(env.start(lake("FFF", "FSF", "FFG", seed=seed)), "left").state.observation for seed in range(1000)
    ]
    # The second move from the same state draws anew: not all that slipped once slip again.
    second = [env.step(state, "left").state.observation == state.observation for state in went]
    assert 0 < sum(second) < 1000


def test_the_slippery_oracle_reaches_the_goal_as_often_as_it_says() -> None:
    env = FrozenLake(size=4, slip=0.3, max_steps=10)
    won, said = 0, 0.0
    for task in env.tasks("train", 100, 0):
        rows = tuple(task.data["rows"])  # type: ignore[arg-type]
        (start,) = ((r, c) for r, row in enumerate(rows) for c, letter in enumerate(row) if letter == "S")
        said += chances(rows, 0.3, 10)[10][start].success
        won += attempt(env, env.start(task))
    assert won / 100 == pytest.approx(said / 100, abs=0.1)


def attempt(env: FrozenLake, state: State) -> bool:
    while way := env.plan(state):
        step = env.step(state, way[0])
        if step.outcome != Outcome.OPEN:
            return step.success
        state = step.state
    return False


def test_instances_need_the_moves_asked_for() -> None:
    env = FrozenLake(min_moves=5, max_steps=7)
    lengths = {len(env.plan(env.start(task)) or ()) for task in env.tasks("train", 60, 3)}
    assert lengths == {5, 6, 7}
    assert all(follow(env, env.start(task)).success for task in env.tasks("train", 20, 3))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, r"data\['rows'\] = None; need a list of equally long strings of the letters 'SFHG'"),
        ({"rows": "SFFG"}, "need a list"),
        ({"rows": ["SF", "F"]}, "equally long"),
        ({"rows": []}, "need a list"),
        ({"rows": ["SX", "FG"]}, "letters 'SFHG'"),
        ({"rows": [1, 2]}, "strings"),
        ({"rows": ["SS", "FG"]}, "2 starts S and 1 goals G; need one of each"),
        ({"rows": ["SF", "FF"]}, "1 starts S and 0 goals G"),
    ],
)
def test_bad_data_is_named(data: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LAKE.start(Task(id="broken", data=data))


@pytest.mark.parametrize(
    "fields", [{"size": 1}, {"frozen": 0.0}, {"frozen": 1.5}, {"slip": -0.1}, {"max_steps": 0}, {"min_moves": 21}]
)
def test_bad_fields_are_named(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"FrozenLake\.\w+: got .*; need"):
        FrozenLake(**fields)  # type: ignore[arg-type]


def test_a_state_of_another_environment_is_refused() -> None:
    with pytest.raises(TypeError, match="value of type int"):
        LAKE.step(State(observation="", key="", value=3), "left")
