"""The guard between parser and environment, in rollouts, searches, agent programs and from the command line."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.explore import stage, test_program
from tests.guard import guards
from tests.guard.guards import NoText, Waits, Watches
from tests.serve.wire import scripted as program_engine

from bough.cli.find import find_run
from bough.config import override
from bough.engine import Engine
from bough.env import Branching, Env, InProcessHost, Split, State, Step
from bough.explore import Chains, FullTree, Program
from bough.guard import Guard
from bough.rollout import DeadlineExceeded, Limits, RolloutRunner
from bough.store import read_metrics
from bough.train import start
from bough.tree import AgentAction, Kind, Message, Outcome, Source, Task, Tree, text_in


def guarded(engine: Engine, guard: Guard | None, env: Env | None = None) -> RolloutRunner:
    runner = stage.runner(engine, None if env is None else InProcessHost(env=env))
    return replace(runner, agent=replace(runner.agent, guard=guard))


def texts(tree: Tree) -> list[str]:
    return [text_in(info) or "" for info in tree.info]


def test_the_environment_never_gets_a_denied_action() -> None:
    words = iter("abaa")
    (tree,) = stage.grow(guarded(stage.scripted(lambda _: next(words)), NoText()), Chains(n=1)).trees
    # The state stays: three letters are still to be written, and the answer is right.
    assert texts(tree) == [".", "a", "a", "b", "denied: no b", "a", "aa", "a", "aaa"]
    assert tree.counts.denied == 1
    assert tree.success[-1] == 1
    denied = texts(tree).index("b")
    assert [info.get("denied") for info in tree.info if "denied" in info] == ["no b"]
    assert (tree.valid[denied], tree.env_reward[denied], tree.state_key[denied + 1]) == (0, 0.0, 0)
    assert tree.source[denied] == Source.SAMPLED


def test_a_guard_reads_the_conversation() -> None:
    seen: list[tuple[AgentAction, tuple[Message, ...]]] = []
    (tree,) = stage.grow(guarded(stage.scripted(lambda _: "a"), Watches(seen=seen)), Chains(n=1)).trees
    assert [action for action, _ in seen] == ["a", "a", "a"]
    shown = [[each.content for each in history] for _, history in seen]
    assert shown == [["go", "."], ["go", ".", "a", "a"], ["go", ".", "a", "a", "a", "aa"]]
    (without,) = stage.grow(guarded(stage.scripted(lambda _: "a"), None), Chains(n=1)).trees
    assert tree.token.tolist() == without.token.tolist()


def test_every_branch_passes_the_guard() -> None:
    words = iter("abbaab" * 20)
    engine = stage.scripted(lambda _: next(words))
    (tree,) = stage.grow(guarded(engine, NoText()), FullTree(width=2, depth=3)).trees
    actions = [text_in(tree.info[node]) for node in range(len(tree.kind)) if tree.kind[node] == Kind.ACTION]
    assert actions.count("b") == tree.counts.denied > 0
    assert all("b" not in (text_in(tree.info[node]) or "") for node in range(len(tree.kind)) if tree.state_key[node])


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """The letters, in a state that a step changes."""

    branching: Branching = Branching.NONE
    instructions: str = "go"

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}-{index}", seed=seed) for index in range(count)]

    def start(self, task: Task) -> State:
        del task
        return State(observation=".", key=".", value=[])

    def step(self, state: State, action: str) -> Step:
        assert isinstance(state.value, list)
        state.value.append(action)
        text = "".join(state.value)
        over = Outcome.TERMINATED if len(text) == 3 else Outcome.OPEN
        return Step(state=replace(state, observation=text, key=text), outcome=over, success=text == "aaa")


@pytest.mark.parametrize("denied", [1, 2])
def test_a_state_that_changes_in_place_is_not_shared_after_a_denial(denied: int) -> None:
    words = iter("b" * denied + "aaaaaa")
    engine = stage.scripted(lambda _: next(words))
    (tree,) = stage.grow(guarded(engine, NoText(), InPlace()), Chains(n=2)).trees
    ends = [text for text in texts(tree) if len(text) == 3 and set(text) <= {"a"}]
    assert ends == ["aaa", "aaa"]
    assert tree.counts.denied == denied


def test_an_agent_program_gets_the_reason_in_place_of_the_action() -> None:
    def grown(guard: Guard | None) -> Tree:
        program = Program(agent=test_program.PLAIN, n=1, retries=0)
        return test_program.grow(program, {"does": "two_turns"}, engine=program_engine("beta"), guard=guard)[0]

    free, held = grown(None), grown(NoText(text="beta"))
    assert (free.counts.denied, held.counts.denied) == (0, 2)
    actions = held.kind == Kind.ACTION
    assert held.valid[actions].tolist() == [0, 0]
    assert [info["denied"] for info in held.info if "denied" in info] == ["no beta"] * 2
    # The program never saw the action, so its second prompt does not continue it.
    assert Kind.EDIT in held.kind
    assert Kind.EDIT not in free.kind
    shown = " ".join(text_in(info) or "" for info, action in zip(held.info, actions, strict=True) if not action)
    assert "no beta" in shown
    assert "beta" not in shown.replace("no beta", "")


def test_a_guard_decides_about_the_text_before_a_stop_string() -> None:
    seen: list[tuple[AgentAction, tuple[Message, ...]]] = []
    program = Program(agent=test_program.PLAIN, n=1, retries=0)
    test_program.grow(program, {"does": "stops"}, engine=program_engine("abcd"), guard=Watches(seen=seen))
    assert [action for action, _ in seen] == ["a"]


def test_a_guard_of_a_program_that_does_not_answer_stops_the_run() -> None:
    program = Program(agent=test_program.PLAIN, n=1, retries=1)
    limits = Limits(env_deadline_s=0.05)
    with pytest.raises(DeadlineExceeded, match=r"waited 0.05 s for guard"):
        test_program.grow(program, {"does": "stops"}, engine=program_engine("abcd"), guard=Waits(), limits=limits)


def test_a_guard_of_a_file_guards_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    changes = [f"guard={guards.__file__}:NoText(text=left)", "steps=1", "batch_tasks=2", "tasks.count=4"]
    changes += ["warmup=Warmup()", "evaluation.tasks.count=2", "explorer.n=4"]
    run = override(find_run("grpo", "frozenlake"), changes)
    directory = start(run, tmp_path / "runs", terminal=False)
    assert any(row.get("train/denied", 0) > 0 for row in read_metrics(directory.metrics))
