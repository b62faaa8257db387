"""Conversational tree search: edges, questions to the user, costs, and hindsight."""

import pytest
from tests.env.play import follow

from bough.env import State, Step
from bough.tree import Outcome
from bough.worlds.dialogue_graph import DialogueGraph
from bough.worlds.dialogue_graph.env import PHRASES, dialogue_state

ENV = DialogueGraph(branching_factor=2, depth=2)
NODES = ENV.nodes
LEAVES = [node for node in NODES.values() if node.words]


def do(state: State, *moves: str) -> Step:
    step = Step(state=state)
    for move in moves:
        step = ENV.step(step.state, move)
    return step


def begin(goal: int = 0) -> State:
    (task,) = [each for each in ENV.tasks("train", 30, 0) if each.data["goal"] == LEAVES[goal].name][:1]
    return ENV.start(task)


def test_moves_are_edges_and_the_answer_is_a_node() -> None:
    state = begin(0)
    first, second = NODES["start"].children
    assert state.admissible == (first, second, "ask", "answer")
    end = do(state, first, LEAVES[0].name, "answer")
    assert (end.outcome, end.success, end.reward) == (Outcome.TERMINATED, True, 1 - 1 / 8)
    assert do(state, first).reward == -1 / 8
    wrong = do(state, second, NODES[second].children[0], "answer")
    assert (wrong.success, wrong.reward) == (False, -1 / 8)
    assert not do(state, LEAVES[0].name).valid, "two edges away"
    assert do(state, LEAVES[0].name).reward == -1 / 8


def test_the_user_names_the_edge_toward_its_goal_and_that_costs_twice_as_much() -> None:
    state = begin(3)
    step = do(state, "ask")
    assert dialogue_state(step.state).at == NODES["start"].children[1]
    assert str(step.state.observation).startswith(f"user: {NODES['start'].children[1]}\n")
    assert step.reward == -2 / 8
    assert do(state, "ask", "ask", "answer").success


def test_the_end_has_the_goal_that_was_reached_if_the_replies_fit_it() -> None:
    state, (first, second) = begin(0), NODES["start"].children
    missed = do(state, second, NODES[second].children[1], "answer")
    assert missed.info == {"goal": LEAVES[0].name, "hindsight": {"goal": LEAVES[3].name, "reward": 1 - 1 / 8}}
    sister = NODES[first].children[1]
    assert do(state, "ask", sister, "answer").info["hindsight"] == {"goal": sister, "reward": 1 - 1 / 8}
    away = do(state, first, "ask", "answer")
    assert away.success
    child = NODES[second].children[0]
    assert "hindsight" not in do(state, second, "ask", child, "answer").info, "for that goal the user would name it"
    assert "hindsight" not in do(state, "answer").info, "the start is no goal"
    assert "hindsight" not in do(state, *["hop"] * 6).info


def test_every_question_names_its_goal_and_the_oracle_finds_it() -> None:
    env = DialogueGraph()
    ids: list[set[str]] = []
    for split in ("train", "dev", "test"):
        tasks = env.tasks(split, 10, 0)  # type: ignore[arg-type]
        ids.append({task.id for task in tasks})
        for task in tasks:
            words = env.nodes[str(task.data["goal"])].words
            assert any(phrase.format(word) == task.data["question"] for phrase in PHRASES for word in words)
            end = follow(env, env.start(task))
            assert end.success
            assert env.plan(end.state) is None
    assert not ids[0] & ids[1] | ids[0] & ids[2] | ids[1] & ids[2]


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"DialogueGraph.depth: got 9"):
        DialogueGraph(depth=9)
    (task,) = DialogueGraph(graph=1).tasks("train", 1, 0)
    with pytest.raises(ValueError, match="need a node of the graph"):
        ENV.start(task)


def test_garbage_is_not_valid_on_the_last_turn_either() -> None:
    env = DialogueGraph(max_turns=1)
    (task,) = env.tasks("train", 1, 0)
    step = env.step(env.start(task), "garbage")
    assert (step.outcome, step.valid) == (Outcome.TRUNCATED, False)
