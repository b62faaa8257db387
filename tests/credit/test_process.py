"""Labels and values of steps by what is found below them: the authors' numbers, and what their code does not do."""

import numpy as np
import pytest
from hypothesis import given
from tests.credit.grown import TOY, branching, flat, named
from tests.trees import random_tree, rewarded, seeds

from bough.credit import Filtered, Process, RestMcts, UsefulTurns
from bough.needs import value_head
from bough.tree import Ternary, path_view


class TestRestMcts:
    def test_worked_example(self) -> None:
        view = path_view([branching(TOY)])
        value, before = RestMcts().of_turns(view)
        assert value == pytest.approx([0.5, 1.0, 0.5, 0.25, 0, 0, 0, 0], abs=2e-5)
        assert before == pytest.approx([0, 0.5, 0, 0.5, 0, 0, 0, 0], abs=2e-5)
        assert named(RestMcts()([branching(TOY)])[0])["a2"] == pytest.approx(-0.25)

    def test_the_goal_is_the_worth_of_the_place(self) -> None:
        (credited,) = RestMcts(head="value")([branching(TOY)])
        tree, goal = credited.tree, credited.value_targets["value"]
        first = {
            str(tree.info[n]["text"]): float(goal[tree.span[n]]) for n in range(tree.nodes) if "text" in tree.info[n]
        }
        assert first == pytest.approx({"a": 0, "a1": 0.5, "a2": 0.5, "b": 0, "b1": 0, "b2": 0})
        assert np.isnan(goal[tree.span[1] + 1]), "only where the turn begins"
        assert RestMcts(head="value").needs == {value_head("value")}

    def test_values_rise_in_even_steps_along_the_shortest_way(self) -> None:
        value, _ = RestMcts().of_turns(path_view([branching({"a": {"b": {"c": {"d": 1}}}})]))
        assert value == pytest.approx([0.25, 0.5, 0.75, 1.0])

    def test_a_task_without_a_correct_end_teaches_no_value(self) -> None:
        unsolved = branching({"a": {"a1": 0.0, "a2": 0.0}, "b": 0.0})
        for target in ("state", "action"):
            rule = RestMcts(head="value", target=target)  # type: ignore[arg-type]
            for each in (rule, Filtered(value_targets=rule), UsefulTurns(credit=Filtered(value_targets=rule))):
                solved, missed = each([branching(TOY, task="solved"), unsolved])
                assert np.isnan(missed.value_targets["value"]).all()
                assert np.isfinite(solved.value_targets["value"]).any()
        assert not RestMcts()([unsolved])[0].path_advantage.any()

    @given(seeds())
    def test_values_are_in_the_unit_interval_and_1_where_it_succeeds(self, rng: np.random.Generator) -> None:
        view = path_view([rewarded(random_tree(rng, unusual=0.0)) for _ in range(2)])
        value, _ = RestMcts().of_turns(view)
        assert ((value >= 0) & (value <= 1)).all()
        ends = view.last & np.asarray([self._won(view, path) for path in view.path.tolist()], dtype=np.bool_)
        assert value[ends] == pytest.approx(1.0)

    def _won(self, view: object, path: int) -> bool:
        leaf, tree = int(view.leaf[path]), int(view.tree[path])  # type: ignore[attr-defined]
        return view.rewarded[tree].tree.success[leaf - int(view.offset[tree])] == Ternary.YES


class TestProcess:
    def test_worked_example(self) -> None:
        tree = branching(TOY)
        hard = {"a": 1, "a1": 1, "a2": 0, "b": 0, "b1": 0, "b2": 0}
        assert named(Process(label="hard")([tree])[0]) == hard
        assert named(Process()([tree])[0]) == {**hard, "a": 0.5}

    def test_the_prompt_has_a_label_too(self) -> None:
        for label, root in (("hard", 1.0), ("soft", 0.25)):
            (credited,) = Process(label=label, head="value")([branching(TOY)])  # type: ignore[arg-type]
            assert credited.value_targets["value"][credited.tree.span[1]] == pytest.approx(root)

    def test_falls_are_measured_from_what_was_found_and_rises_are_not_paid(self) -> None:
        # Labels 1, .5, .5, 1: released code takes the second fall from 0, and pays .5 and more for the rise.
        shape = {"a": {"b": {"c": 1}, "d": {"e": {"f": 0}}}}
        soft = named(Process()([branching(shape)])[0])
        assert soft == {"a": 0.5, "b": 1, "c": 1, "d": 0, "e": 0, "f": 0}
        fallen = named(Process(drop=1.0)([branching(shape)])[0])
        assert fallen == {"a": 0.5, "b": 1, "c": 1, "d": -0.5, "e": 0, "f": 0}

    def test_tp_llama_prefers_what_is_on_a_good_path_to_failed_siblings(self) -> None:
        """a1 and a are on the path; b failed, and so did a2."""
        (credited,) = Process(label="hard")([branching({"a": {"a1": 1, "a2": 0}, "b": 0})])
        assert named(credited) == {"a": 1, "a1": 1, "a2": 0, "b": 0}

    def test_bad_settings(self) -> None:
        with pytest.raises(ValueError, match=r"Process\.drop: got -1.0"):
            Process(drop=-1.0)


def test_no_success_means_no_values() -> None:
    tree = branching({"a": {"a1": 0}, "b": 0})
    for rule in (Process(), Process(label="hard"), RestMcts()):
        assert flat(rule([tree])[0]) == [0.0, 0.0, 0.0]
