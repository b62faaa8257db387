import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.env.play import flood, follow

from bough.env import State
from bough.env.grid import ACTIONS
from bough.tree import Outcome, Task
from bough.worlds.sokoban import Sokoban
from bough.worlds.sokoban.env import solve

ROOM = ("######", "#P_X_#", "#_#O_#", "#__X_#", "#__O_#", "######")


def room(*rows: str) -> Task:
    return Task(id="room", data={"rows": list(rows)})


def after(env: Sokoban, state: State, *actions: str) -> State:
    for action in actions:
        state = env.step(state, action).state
    return state


def cells(state: State) -> tuple[str, ...]:
    return tuple(line.replace(" ", "") for line in state.observation.split("\n"))


def test_pushes_walls_and_targets_by_hand() -> None:
    env = Sokoban(box_reward=0.5)
    state = env.start(room("#######", "#PXO__#", "#######"))
    assert state.observation == "# # # # # # #\n# P X O _ _ #\n# # # # # # #"
    won = env.step(state, "right")
    assert cells(won.state)[1] == "#_P*__#"
    assert (won.reward, won.outcome, won.success, won.valid) == (1.5, Outcome.TERMINATED, True, True)
    assert env.step(won.state, "left").state == won.state

    state = env.start(room("#######", "#PXOXO#", "#######"))
    on = env.step(state, "right")
    assert (on.reward, on.outcome, cells(on.state)[1]) == (0.5, Outcome.OPEN, "#_P*XO#")
    blocked = env.step(on.state, "right")
    assert (blocked.valid, blocked.reward, blocked.state.key) == (True, 0.0, on.state.key), "two boxes cannot be pushed"
    wall = env.step(on.state, "up")
    assert (wall.valid, wall.state.key) == (True, on.state.key)
    unknown = env.step(on.state, "pull")
    assert (unknown.valid, unknown.state.key) == (False, on.state.key)


def test_a_box_pushed_off_its_target_takes_its_reward_back_and_the_player_stands_on_it() -> None:
    env = Sokoban(box_reward=0.5)
    state = env.start(room("########", "#P*_OX_#", "########"))
    off = env.step(state, "right")
    assert (off.reward, cells(off.state)[1]) == (-0.5, "#_SXOX_#")
    left = env.step(off.state, "left")
    assert cells(left.state)[1] == "#POXOX_#"


def test_max_steps_truncate() -> None:
    env = Sokoban(max_steps=2)
    first = env.step(env.start(room(*ROOM)), "down")
    assert first.outcome == Outcome.OPEN
    assert env.step(first.state, "nonsense").outcome == Outcome.TRUNCATED
    start = env.start(room("######", "#PX_O#", "######"))
    assert env.plan(start) == ("right", "right")
    assert Sokoban(max_steps=1).plan(start) is None, "two moves are too many for the one step that is left"


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([(5, 1), (5, 2)]))
def test_the_plan_is_as_short_as_any_and_there_is_one_when_any_is(seed: int, shape: tuple[int, int]) -> None:
    size, boxes = shape
    env = Sokoban(size=size, boxes=boxes, max_steps=1000)
    (task,) = env.tasks("train", 1, seed)
    state = env.start(task)
    plan = env.plan(state)
    assert plan is not None
    assert cells(after(env, state, *plan)).count("X") == 0
    assert env.step(after(env, state, *plan[:-1]), plan[-1]).success
    # Also from wherever a walk leads, dead ends included.
    wandered = after(env, state, *(ACTIONS[(seed >> n) % 4] for n in range(0, 24, 2)))
    for here in (state, wandered):
        found = env.plan(here)
        solved = "X" not in here.observation
        assert (None if found is None else len(found)) == (0 if solved else flood(env, here, 1000))


def test_dead_ends_have_no_plan() -> None:
    env = Sokoban()
    assert env.plan(env.start(room("#####", "#X_P#", "#__O#", "#####"))) is None
    # Alone each box could still move, together they cannot.
    assert solve(("######", "#_XX_#", "#_OOP#", "######")) is None
    late = Sokoban(max_steps=3)
    assert late.plan(after(late, late.start(room("#######", "#PX_O_#", "#######")), "hop")) == ("right", "right")
    assert late.plan(after(late, late.start(room("#######", "#PX_O_#", "#######")), "hop", "hop")) is None


def test_instances_can_be_solved_in_the_steps_there_are() -> None:
    env = Sokoban(size=6, boxes=2, walls=0.2, min_moves=6, max_steps=14)
    for task in env.tasks("dev", 15, 5):
        plan = env.plan(env.start(task))
        assert plan is not None
        assert 6 <= len(plan) <= 14
        assert follow(env, env.start(task)).success


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["####", "#PX#", "####"], "1 boxes, 0 targets"),
        (["#####", "#_XO#", "#####"], "0 players"),
        (["#####", "#PXO_", "#####"], "# all around"),
        (["#####", "#PXo#", "#####"], "letters"),
        (["####", "#P_#", "####"], "0 boxes"),
    ],
)
def test_bad_rooms_are_named(rows: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sokoban().start(room(*rows))


@pytest.mark.parametrize("fields", [{"size": 3}, {"boxes": 0}, {"boxes": 8}, {"walls": 1.0}, {"min_moves": 31}])
def test_bad_fields_are_named(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"Sokoban.*: got .*; need"):
        Sokoban(**fields)  # type: ignore[arg-type]


def test_the_border_need_not_be_read() -> None:
    whole, inside = Sokoban(size=5), Sokoban(size=5, show_border=False)
    (task,) = whole.tasks("train", 1, 0)
    state, bare = whole.start(task), inside.start(task)
    rows = [line.split() for line in state.observation.splitlines()]
    assert [line.split() for line in bare.observation.splitlines()] == [row[1:-1] for row in rows[1:-1]]
    assert (bare.key, bare.value) == (state.key, state.value)
    (move, *_) = inside.plan(bare) or ()
    after = inside.step(bare, move)
    assert after.state.key == whole.step(state, move).state.key
    assert "#" not in after.state.observation or "#" in "".join(row[1:-1] for row in after.state.value.rows[1:-1])  # type: ignore[attr-defined]
