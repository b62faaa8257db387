"""OpenSpiel's games in text: turns, private observations, chance, payoffs, invalid actions, the oracle, scripts."""

import math
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import (
    Branching,
    EnvFault,
    EquilibriumPlay,
    OpenSpiel,
    PerfectPlay,
    RandomAction,
    Script,
    State,
    Step,
    TreeSearchPlay,
)
from bough.env.adapters.openspiel import Position, load_game, solution
from bough.tree import Outcome, Task

GAMES = (
    "tic_tac_toe",
    "connect_four",
    "kuhn_poker",
    "leduc_poker",
    "breakthrough(rows=5,columns=4)",
    "nim",
    "liars_dice",
    "othello",
    "hex(board_size=4)",
    "pig(winscore=15)",
    "phantom_ttt",
    "goofspiel(num_cards=4,imp_info=True)",
    "kuhn_poker(players=3)",
    "tiny_hanabi",
    "backgammon",
    "bargaining",
    "catch",
    "mancala",
)
every = pytest.mark.parametrize("game", GAMES)


def play(env: OpenSpiel, task: Task, seed: int, most: int = 60) -> list[tuple[State, str, Step]]:
    """A game of random moves: each state, the action, and the step."""
    rng, state, steps = random.Random(seed), env.start(task), []
    for _ in range(most):
        assert state.admissible
        action = rng.choice(state.admissible)
        steps.append((state, action, env.step(state, action)))
        if steps[-1][2].outcome is not Outcome.OPEN:
            break
        state = steps[-1][2].state
    return steps


@every
def test_a_game_is_played_to_its_end_and_every_state_can_be_stepped_again(game: str) -> None:
    env = OpenSpiel(game=game)
    assert env.branching is Branching.COPY
    tasks = env.tasks("train", 3, 0)
    assert tasks == env.tasks("train", 3, 0)
    for seed, task in enumerate(tasks):
        steps = play(env, task, seed)
        for state, action, step in steps:
            assert state.seat in env.seats
            copied = pickle.loads(pickle.dumps(state))
            other = random.Random(0).choice(state.admissible or ())
            env.step(state, other)
            assert env.step(copied, action) == step, "a step depends on the state and the action alone"
            assert step.valid
        last = steps[-1][2]
        if last.outcome is not Outcome.OPEN:
            assert {*last.payoffs} == {*last.successes} == {*env.seats}
            if env.texts.is_zero_sum:
                assert math.isclose(sum(last.payoffs.values()), 0.0, abs_tol=1e-9)
            assert last.success == last.successes["player_0"]


@every
def test_an_invalid_action_changes_nothing_or_forfeits(game: str) -> None:
    lenient, strict = OpenSpiel(game=game, forfeit_after=0), OpenSpiel(game=game, forfeit_after=2)
    (task,) = lenient.tasks("test", 1, 0)
    state = lenient.start(task)
    for text in ("", "resign", "\ud800\x00", "x" * 100_000, "0; import os", " ".join(state.admissible or ())):
        if text in (state.admissible or ()):
            continue
        step = lenient.step(state, text)
        assert (step.valid, step.outcome) == (False, Outcome.OPEN)
        assert (step.state.key, step.state.observation, step.state.seat) == (state.key, state.observation, state.seat)
    first = strict.step(strict.start(task), "?")
    second = strict.step(first.state, "?")
    assert (first.outcome, second.outcome, second.valid) == (Outcome.OPEN, Outcome.TERMINATED, False)
    assert second.payoffs[state.seat] == load_game(game).min_utility()
    assert not second.successes[state.seat]
    assert strict.step(second.state, "?").outcome is Outcome.TERMINATED
    assert strict.plan(second.state) is None


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "liars_dice"])
def test_a_seat_observes_its_own_cards_alone(game: str) -> None:
    env = OpenSpiel(game=game)
    task = Task(id="deal", data={"game": game, "moves": [], "chance": [0, 2]})
    other = Task(id="other deal", data={"game": game, "moves": [], "chance": [0, 1]})
    one, two = env.start(task), env.start(other)
    assert (one.observation, one.key) == (two.observation, two.key)
    assert one.admissible
    replies = [env.step(state, one.admissible[0]).state for state in (one, two)]
    assert replies[0].seat == "player_1"
    assert replies[0].observation != replies[1].observation


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), game=st.sampled_from(["leduc_poker", "pig(winscore=15)", "backgammon"]))
def test_chance_is_a_function_of_seed_and_history(seed: int, game: str) -> None:
    env = OpenSpiel(game=game)
    task = Task(id="a", seed=seed, data={"game": game})
    first, again = play(env, task, seed, 20), play(OpenSpiel(game=game), task, seed, 20)
    assert [(state.value, step) for state, _, step in first] == [(state.value, step) for state, _, step in again]


def test_seeds_change_the_cards_and_their_frequencies_are_those_of_the_game() -> None:
    env = OpenSpiel(game="kuhn_poker")
    tasks = env.tasks("train", 600, 0)
    cards = [env.start(task).observation.partition("\n")[0] for task in tasks]
    assert all(abs(cards.count(card) - 200) < 60 for card in ("0", "1", "2"))


def test_keys_are_boards_without_counters() -> None:
    env = OpenSpiel(game="tic_tac_toe", opening=0)
    start = env.start(Task(id="a", data={"game": "tic_tac_toe"}))
    ways = []
    for moves in (("x(0,0)", "o(1,1)", "x(2,2)"), ("x(2,2)", "o(1,1)", "x(0,0)")):
        state = start
        for move in moves:
            state = env.step(state, move).state
        ways.append(state)
    assert ways[0].key == ways[1].key
    assert ways[0].value != ways[1].value
    mancala = OpenSpiel(game="mancala", opening=0)
    assert "Move number" not in mancala.start(Task(id="a", data={"game": "mancala"})).key
    assert OpenSpiel(game="hanabi").start(Task(id="a", data={"game": "hanabi"})).key == ""


def test_splits_have_different_positions() -> None:
    env = OpenSpiel(game="tic_tac_toe", opening=4)
    boards = [{env.start(task).key for task in env.tasks(split, 50, 3)} for split in ("train", "dev", "test")]
    assert [len(each) for each in boards] == [50, 50, 50]
    assert not boards[0] & boards[1] | boards[0] & boards[2] | boards[1] & boards[2]
    with pytest.raises(ValueError, match=r"need a smaller count"):
        env.tasks("test", 200, 0)
    with pytest.raises(ValueError, match=r"OpenSpiel.opening: got 2 for pig, a game with chance; need 0"):
        OpenSpiel(game="pig", opening=2).tasks("train", 1, 0)


def test_wrong_games_and_tasks_are_refused() -> None:
    for game, text in (
        ("tic_tac_to", "did you mean 'tic_tac_toe'"),
        ("tic_tac_toe(sides=3)", "need parameters of tic_tac_toe"),
        ("mfg_garnet", "need players that act in turn"),
        ("stones_and_gems", "need a game with explicit chance"),
        ("crossword", "need parameters of crossword"),
    ):
        with pytest.raises(ValueError, match=text):
            _ = OpenSpiel(game=game).seats
    env = OpenSpiel()
    for data in ({}, {"game": "chess"}, {"game": "tic_tac_toe", "moves": [0, 0]}):
        with pytest.raises(ValueError, match=r"need"):
            env.start(Task(id="a", data=data))
    with pytest.raises(ValueError, match=r"got the outcome 7 of chance"):
        OpenSpiel(game="kuhn_poker").start(Task(id="a", data={"game": "kuhn_poker", "chance": [7]}))
    with pytest.raises(ValueError, match=r"OpenSpiel.*: got -1; need at least 0"):
        OpenSpiel(forfeit_after=-1)
    with pytest.raises(TypeError, match=r"need one of its own"):
        env.step(State(observation="", key="", value=3), "")


def test_case_counts_only_where_moves_differ_in_it() -> None:
    chess = OpenSpiel(game="chess", opening=0)
    state = chess.start(Task(id="a", data={"game": "chess"}))
    assert chess.step(state, " NF3 ").valid
    # A pawn and a bishop can both take on c3.
    both = Position(game="chess", invalid=(0, 0))
    for move in ("e4", "b5", "Bxb5", "a6", "d4", "axb5", "d5", "b4", "a3"):
        taken = chess.step(chess.state_at(both), move)
        assert taken.valid
        assert isinstance(taken.state.value, Position)
        both = taken.state.value
    state = chess.state_at(both)
    assert "bxa3" in (state.admissible or ())
    assert "Bxa3" not in (state.admissible or ())


@pytest.mark.parametrize("game", ["tic_tac_toe", "hex(board_size=3)", "nim(pile_sizes=2;2)"])
def test_perfect_play_never_gets_less_than_the_value_of_the_game(game: str) -> None:
    env, solved = OpenSpiel(game=game, opening=0), solution(game)
    assert solved is not None
    task = Task(id="a", data={"game": game})
    value = solved.value(load_game(game).new_initial_state())
    assert value == {"tic_tac_toe": 0.0, "hex(board_size=3)": 1.0, "nim(pile_sizes=2;2)": -1.0}[game]
    for seat, bound in (("player_0", value), ("player_1", -value)):
        for seed in range(15):
            state, rng = env.start(task), random.Random(seed)
            while True:
                script: Script = PerfectPlay() if state.seat == seat else RandomAction()
                action = script.act(state, rng.randrange(1000))
                assert isinstance(action, str)
                step = env.step(state, action)
                state = step.state
                if step.outcome is not Outcome.OPEN:
                    break
            assert step.payoffs[seat] >= bound
    line = env.plan(env.start(task))
    assert line
    state = env.start(task)
    for move in line:
        step = env.step(state, move)
        state = step.state
    assert step.payoffs["player_0"] == value


def test_the_oracle_searches_where_it_cannot_solve() -> None:
    env = OpenSpiel(game="connect_four", opening=0)
    state = env.start(Task(id="a", data={"game": "connect_four"}))
    for move in ("x3", "o0", "x3", "o0", "x3", "o1"):
        state = env.step(state, move).state
    assert env.plan(state) == ("x3",), "four in a column"
    poker = OpenSpiel(game="kuhn_poker")
    assert poker.plan(poker.start(Task(id="a", data={"game": "kuhn_poker"}))) is None


def test_scripts_refuse_games_that_they_cannot_play() -> None:
    poker = OpenSpiel(game="kuhn_poker")
    state = poker.start(Task(id="a", data={"game": "kuhn_poker", "chance": [0, 1]}))
    for script in (PerfectPlay(), TreeSearchPlay()):
        with pytest.raises(EnvFault, match=r"hidden information"):
            script.act(state, 0)
    breakthrough = OpenSpiel(game="breakthrough", opening=0)
    with pytest.raises(EnvFault, match=r"got breakthrough, without information states"):
        EquilibriumPlay().act(breakthrough.start(Task(id="a", data={"game": "breakthrough"})), 0)
    four = OpenSpiel(game="connect_four", opening=0)
    with pytest.raises(EnvFault, match=r"got connect_four, with more than 100,000 histories"):
        EquilibriumPlay(iterations=1).act(four.start(Task(id="a", data={"game": "connect_four"})), 0)
    with pytest.raises(EnvFault, match=r"got a state of another environment"):
        PerfectPlay().act(State(observation="", key="", value=0), 0)


def test_an_equilibrium_folds_the_jack_and_bluffs_with_it_sometimes() -> None:
    env = OpenSpiel(game="kuhn_poker")
    task = Task(id="a", data={"game": "kuhn_poker", "chance": [0, 2]})
    jack = env.start(task)
    facing = env.step(env.step(jack, "Pass").state, "Bet").state
    script = EquilibriumPlay(iterations=500)
    assert {script.act(facing, seed) for seed in range(50)} == {"Pass"}
    assert [script.act(jack, 3)] * 2 == [script.act(jack, 3) for _ in range(2)]
    king = env.step(env.start(task), "Bet").state
    assert {script.act(king, seed) for seed in range(50)} == {"Bet"}


def test_a_spaced_board_has_the_same_moves_and_keys() -> None:
    plain, spaced = (OpenSpiel(spaced=each, show_moves=False) for each in (False, True))
    (task,) = plain.tasks("train", 1, 0)
    one, two = plain.start(task), spaced.start(task)
    assert isinstance(one.observation, str)
    assert two.observation == "\n".join(" ".join(row) for row in one.observation.splitlines())
    assert (one.key, one.admissible) == (two.key, two.admissible)
