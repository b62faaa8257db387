"""Designs of agents: edits, scores, and a benchmark of one's own."""

from dataclasses import dataclass

import pytest

from bough.env import State, Step
from bough.tree import Outcome, Task
from bough.worlds.agent_design import AgentDesign
from bough.worlds.agent_design.env import LIBRARY, Design, design_state, possible_edits

TASK = Task(id="a", data={"benchmark": 3})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """A benchmark that likes the planning by trees, more with a higher setting."""

    def score(self, design: Design, seed: int) -> float:
        del seed
        option, variant, level = dict(design)["planning"]
        return (0.4 if option == "tree" else 0.1) + 0.1 * level - 0.05 * variant


ENV = AgentDesign(benchmark=Trees(), target=0.7)


def do(*edits: str, state: State | None = None) -> Step:
    step = Step(state=state or ENV.start(TASK))
    for edit in edits:
        step = ENV.step(step.state, edit)
    return step


def test_edits_change_one_component_and_pay_the_change_of_the_score() -> None:
    step = do("recombine planning tree")
    assert step.reward == pytest.approx(0.3)
    assert dict(design_state(step.state).design)["planning"] == ("tree", 0, 0)
    assert str(step.state.observation).splitlines()[1::3] == ["planning tree 0", "score 0.40"]
    assert do("mutate planning").reward == pytest.approx(-0.05)
    assert "planning none* 0" in str(do("mutate planning").state.observation)
    assert do("mutate planning", "mutate planning", "mutate planning").state.key == ENV.start(TASK).key
    assert do("refine planning up").reward == pytest.approx(0.1)
    assert do("recombine workflow chain").reward == 0.0


def test_a_good_design_is_success_and_edits_run_out() -> None:
    end = do("recombine planning tree", "refine planning up", "refine planning up", "refine planning up")
    assert (end.outcome, end.success) == (Outcome.TERMINATED, True)
    spent = do(*["mutate tools"] * 6)
    assert (spent.outcome, spent.success) == (Outcome.TRUNCATED, False)
    assert not do("mutate tools", state=spent.state).valid


@pytest.mark.parametrize("edit", ["recombine planning none", "refine planning down", "mutate moon", "improve", ""])
def test_what_is_no_edit_of_the_design_changes_nothing(edit: str) -> None:
    step = do(edit)
    assert not step.valid
    assert (step.reward, step.state.key) == (0.0, ENV.start(TASK).key)
    assert edit not in (ENV.start(TASK).admissible or ())


def test_a_table_has_all_scores_between_0_and_1_and_the_oracle_climbs() -> None:
    env = AgentDesign(target=1.0)
    for task in env.tasks("test", 4, 0):
        state = env.start(task)
        for edit in env.plan(state) or ():
            before = design_state(state).score
            step = env.step(state, edit)
            state = step.state
            assert before < design_state(state).score <= 1
        assert len({*possible_edits(design_state(state).design).values()}) > len(LIBRARY)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"AgentDesign.target: got 2"):
        AgentDesign(target=2.0)
    with pytest.raises(ValueError, match="got the benchmark None"):
        ENV.start(Task(id="b"))


def test_garbage_is_no_success_where_the_first_design_is_good() -> None:
    step = AgentDesign().step(AgentDesign().start(Task(id="t", data={"benchmark": 129})), "garbage")
    assert (step.success, step.valid) == (False, False)
