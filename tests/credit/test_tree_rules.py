"""The rules that are for trees: worked examples, and what they have in common."""

import math

import numpy as np
import pytest
from hypothesis import given
from tests.credit.grown import TOY, Shape, branching, flat, named
from tests.credit.seen import paths_of
from tests.trees import ACTION, PROMPT, N, build, chains, random_tree, rewarded, seeds

from bough.credit import Arpo, Credit, Grpo, SegmentPo, TreeGrpo, TreePo, TreePs, TreeRl, TreeRpo, dr_grpo
from bough.credit.segment_po import segments
from bough.tree import Outcome, Rewarded, path_view

EVERY = [Arpo(), SegmentPo(certain=1.0), TreeGrpo(), TreePo(), TreePs(), TreeRl(), TreeRpo()]
FORKED: Shape = {"s": {"tail": 1, "f1": 0, "f2": 0}, "B": 1}
"""TreeRL's example: a chain that was forked in the middle, and another chain."""
FORK: Shape = {"s": {"u": 1, "v": 0}}


class TestTreeGrpo:
    TREES = (branching({"A": {"1": 1, "2": 0, "3": 0}}), branching({"B": {"1": 1, "2": 1, "3": 0}}))
    ONE = branching({"A": {"1": 1, "2": 0, "3": 0}, "B": {"1": 1, "2": 1, "3": 0}})

    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            ("sum", [2.0676, -1.4902, -1.4902, 1.4902, 1.4902, -2.0676]),
            ("series", [1.1547, -0.5773, -0.5773, 0.5773, 0.5773, -1.1547]),
            ("tree", [1.1547, -0.5773, -0.5773, 0.5773, 0.5773, -1.1547]),
        ],
    )
    def test_worked_example(self, mode: str, expected: list[float]) -> None:
        rule = TreeGrpo(mode=mode)  # type: ignore[arg-type]
        # The card's numbers have four digits.
        assert [a for c in rule(self.TREES) for a in paths_of(c)] == pytest.approx(expected, abs=7e-5)
        assert paths_of(rule([self.ONE])[0]) == pytest.approx(expected, abs=7e-5)

    def test_more_digits(self) -> None:
        third, half = math.sqrt(4 / 3), math.sqrt(5 / 6)
        expected = [half + third, -half - third / 2, -half - third / 2]
        assert paths_of(TreeGrpo()([self.ONE])[0])[:3] == pytest.approx(expected, abs=2e-5)

    def test_alone_in_a_tree_or_a_task(self) -> None:
        pair = rewarded(chains([1.0, 0.0]))
        assert paths_of(TreeGrpo()([pair])[0]) == paths_of(Grpo()([pair])[0])
        assert paths_of(TreeGrpo()([rewarded(chains([1.0]))])[0]) == [0.0]
        # Defect of released code: its return, from the tree and from the task.
        assert paths_of(TreeGrpo(as_released=True)([rewarded(chains([1.0]))])[0]) == pytest.approx([2.0], abs=1e-5)
        assert paths_of(TreeGrpo(mode="tree", as_released=True)([pair])[0]) == pytest.approx([1.0, 0.0], abs=1e-5)

    def test_shared_tokens_have_what_all_their_paths_say(self) -> None:
        (credited,) = TreeGrpo()([self.ONE])
        assert credited.positive[1] == pytest.approx(2.0676 / 3, abs=2e-5)
        assert credited.negative[1] == pytest.approx(-2 * 1.4902 / 3, abs=2e-5)


class TestTreePo:
    @pytest.mark.parametrize(
        ("rule", "expected"),
        [
            (TreePo(whiten=False), [0.625, -0.375, -0.125, -0.125]),
            (TreePo(whiten=False, weight="size"), [2 / 3, -1 / 3, -1 / 6, -1 / 6]),
            (TreePo(whiten=False, drop_ties=True), [0.625, -0.375, -0.25, -0.25]),
            (TreePo(whiten=False, weight="size", drop_ties=True), [2 / 3, -1 / 3, -0.25, -0.25]),
        ],
    )
    def test_worked_example(self, rule: TreePo, expected: list[float]) -> None:
        assert paths_of(rule([branching(TOY)])[0]) == pytest.approx(expected, abs=2e-5)

    def test_whitened(self) -> None:
        # Paths of 4 tokens; the card's numbers have four digits.
        expected = [1.6137, -0.9682, -0.3227, -0.3227]
        assert paths_of(TreePo()([branching(TOY)])[0]) == pytest.approx(expected, abs=7e-5)
        exact = np.asarray([0.625, -0.375, -0.125, -0.125])
        exact /= np.repeat(exact, 4).std(ddof=1) + 1e-6
        assert paths_of(TreePo()([branching(TOY)])[0]) == pytest.approx(exact.tolist(), abs=2e-5)

    def test_progress(self) -> None:
        (found,) = TreePo(progress=True, whiten=False)([branching(TOY)])
        assert found.turn_advantage is not None
        expected = [1 / 7, 3 / 7, 1 / 7, -3 / 7, -1 / 7, 0, -1 / 7, 0]
        assert found.turn_advantage.tolist() == pytest.approx(expected, abs=2e-5)
        (white,) = TreePo(progress=True)([branching(TOY)])
        assert white.turn_advantage is not None
        # Shared turns count once for each path, as everywhere; all turns here are equally long.
        exact = np.asarray(expected) / (np.repeat(expected, 2).std(ddof=1) + 1e-6)
        assert white.turn_advantage.tolist() == pytest.approx(exact.tolist(), abs=2e-5)

    def test_prefixes_with_one_path_count_and_the_prompt_is_worth_nothing(self) -> None:
        """Numbers of the released functions: W is (2 * 0.5 + 0 + 0 + 0) / (2 + 1 + 1 + 1)."""
        (found,) = TreePo(progress=True, whiten=False)([rewarded(chains([1.0, 0.0], turns=3))])
        assert found.turn_advantage == pytest.approx([0.2, 0, 0, -0.2, 0, 0], abs=2e-6)

    def test_a_node_is_worth_the_mean_of_its_children(self) -> None:
        """Numbers of the released functions; by its paths a would be worth 0.0208, not 0.15625."""
        (found,) = TreePo(progress=True, whiten=False)([branching({"a": {"p": 1, "q": {"r": 0, "t": 0}}, "b": 0.5})])
        expected = {"a": 0.15625, "p": 0.40625, "q": -0.40625, "r": 0, "t": 0, "b": 0.1}
        assert named(found) == pytest.approx(expected, abs=2e-6)

    def test_whitened_as_released(self) -> None:
        """By sqrt(variance + 1e-8), over all tasks: rewards as small as the epsilon show it."""
        trees = [rewarded(chains([1e-4, 0.0])), rewarded(chains([1.0, 1.0], task="tied"))]
        first, tied = TreePo(as_released=True)(trees)
        words = np.repeat([5e-5, -5e-5, 0.0, 0.0], 2)
        assert paths_of(first) == pytest.approx((words[[0, 2]] / np.sqrt(words.var(ddof=1) + 1e-8)).tolist(), rel=1e-5)
        assert paths_of(tied) == [0.0, 0.0]

    def test_whitening_is_over_tokens(self) -> None:
        trees = [branching(TOY, tokens=3), branching({"x": 1, "y": 0, "z": 0}, tokens=5, task="other")]
        plain = np.asarray([a for c in TreePo(whiten=False)(trees) for a in paths_of(c)])
        tokens = np.asarray([6, 6, 6, 6, 5, 5, 5])
        words = np.repeat(plain, tokens)
        expected = (plain - words.mean()) / (words.std(ddof=1) + 1e-6)
        assert [a for c in TreePo()(trees) for a in paths_of(c)] == pytest.approx(expected.tolist(), abs=2e-5)

    def test_tasks_that_tie_stay_out_of_the_whitening(self) -> None:
        tied = branching({"x": 1, "y": 1, "z": {"u": 1, "v": 1}}, tokens=9, task="tied")
        alone = branching({"x": 1}, task="alone")
        # Unequal lengths, so that the mean is not 0.
        learns = branching({"x": 1, "y": {"u": {"v": 0}, "w": 0}}, task="learns")
        both = TreePo()([tied, learns, alone])
        assert paths_of(both[0]) == [0.0] * 4
        assert paths_of(both[2]) == [0.0]
        assert paths_of(both[1]) == pytest.approx(paths_of(TreePo()([learns])[0]), abs=1e-6)

    def test_places_passed_alone_say_nothing_but_the_prompt(self) -> None:
        short, long = branching({"x": 1, "y": 0}), branching({"x": {"u": {"v": 1}}, "y": 0})
        assert paths_of(TreePo(whiten=False)([short])[0]) == paths_of(TreePo(whiten=False)([long])[0]) == [0.5, -0.5]

    def test_a_stretch_repeats_its_comparison(self) -> None:
        forked = branching({"a": {"b": {"c": 1, "d": 0}}, "e": 0, "f": 0})
        # The prompt: 0.75; after a and after b: 0.5 twice.
        assert paths_of(TreePo(whiten=False)([forked])[0])[0] == pytest.approx((0.75 + 0.5 + 0.5) / 3)


class TestTreeRl:
    @pytest.mark.parametrize(
        ("rule", "expected"),
        [
            (TreeRl(as_released=True), [-0.2566, 1.4616, -1.205, -1.205, 1.3333]),
            (TreeRl(as_released=True, weight="none"), [-0.4444, 1.5556, -1.1111, -1.1111, 1.3333]),
        ],
    )
    def test_worked_example(self, rule: TreeRl, expected: list[float]) -> None:
        (credited,) = rule([branching({"s": {"tail": 1, "f1": 0, "f2": 0}, "B": {"B2": 1}})])
        got = named(credited)
        assert got["B"] == got["B2"]
        # The card's numbers have four digits.
        found = [got[name] for name in ("s", "tail", "f1", "f2", "B")]
        assert found == pytest.approx(expected, abs=7e-5)

    def test_more_digits(self) -> None:
        (credited,) = TreeRl(as_released=True)([branching({"s": {"tail": 1, "f1": 0, "f2": 0}, "B": {"B2": 1}})])
        got, shared = named(credited), -2 / 9 / math.sqrt(3)
        assert [got["s"], got["tail"], got["f1"], got["B"]] == pytest.approx(
            [2 * shared, 4 / 3 - shared, -4 / 3 - shared, 4 / 3], abs=2e-5
        )

    def test_the_formula(self) -> None:
        none = named(TreeRl(weight="none")([branching(FORKED)])[0])
        assert none == pytest.approx({"s": -1 / 3, "tail": 7 / 6, "f1": -5 / 6, "f2": -5 / 6, "B": 1}, abs=2e-5)
        root = named(TreeRl()([branching(FORKED)])[0])
        assert root == pytest.approx(none | {"s": -1 / 3 / math.sqrt(3)}, abs=2e-5)

    def test_the_released_form_is_larger_by_a_factor_where_lengths_and_roots_do_not_matter(self) -> None:
        """n / (n - 1): what leaving oneself out of the mean amounts to."""
        shape: Shape = {"s": {"tail": 1, "f1": 0, "f2": 0}, "B": {"B2": 1}}
        ours, theirs = (
            named(TreeRl(weight="none", as_released=released)([branching(shape)])[0]) for released in (False, True)
        )
        assert theirs == pytest.approx({name: value * 4 / 3 for name, value in ours.items()}, abs=2e-5)

    def test_every_turn_of_a_stretch_is_compared_with_the_fork_before_it(self) -> None:
        long: Shape = {"s": {"s'": {"tail": {"tail'": 1}, "f1": 0, "f2": 0}}, "B": {"B'": 1}}
        for as_released in (False, True):
            got = named(TreeRl(as_released=as_released)([branching(long)])[0])
            assert all(got[name] == got[f"{name}'"] for name in ("s", "tail", "B"))

    def test_the_mean_that_released_code_takes_off_is_over_tokens(self) -> None:
        unequal = branching({"x": {"u": {"v": 1}}, "y": 0})
        # R' = 1, -1; over 6 and 2 tokens their mean is 0.5, which leaves -0.5 / sqrt(2) of the prompt.
        got = named(TreeRl(as_released=True)([unequal])[0])
        prompt = -0.5 / math.sqrt(2)
        assert [got["x"], got["y"]] == pytest.approx([2 * 0.5 - prompt, 2 * -1.5 - prompt], abs=2e-5)

    def test_the_release_normalises_the_prompt_too(self) -> None:
        """Numbers of the released functions: one task, four chains of one turn."""
        nodes = [N(parent=-1, kind=PROMPT)]
        for paid, tokens in ((1, 4), (0, 8), (1, 4), (1, 5)):
            nodes.append(N(parent=0, kind=ACTION, tokens=[4] * tokens, env_reward=paid, outcome=Outcome.TERMINATED))
        (credited,) = TreeRl(as_released=True)([rewarded(build(*nodes))])
        assert paths_of(credited) == pytest.approx([0.928571, -1.738095, 0.928571, 0.928571], abs=2e-6)

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            ({}, [0.113749, 1.075701, -0.204379, -1.450869, 1.215798, -0.219697]),
            ({"term": "local"}, [0.037935, 0.499944, -0.140096, -0.693293, 0.64004, -0.128788]),
            ({"term": "global"}, [0.075814, 0.575758, -0.064282, -0.757576, 0.575758, -0.090909]),
            ({"term": "outcome"}, [0.074074, 0.666667, -0.222222, -1.111111, 0.666667, -0.222222]),
            ({"term": "local_outcome"}, [0.112009, 1.166611, -0.362318, -1.804404, 1.306707, -0.35101]),
            ({"term": "ancestors"}, [0.037935, 0.518911, -0.121129, -0.774046, 0.559288, -0.128788]),
            ({"mean": "branches"}, [0.292275, 0.922044, -0.257174, -1.508876, 1.157791, -0.333333]),
            ({"weight": "paths"}, [0.068603, 1.107744, -0.13468, -1.469697, 1.19697, -0.200758]),
            ({"center": "nodes"}, [0.072544, 0.986164, -0.257048, -1.53224, 1.134427, -0.314103]),
            ({"center": "none"}, [0.06415, 0.967925, -0.267777, -1.548816, 1.117851, -0.333333]),
        ],
    )
    def test_options_as_released(self, settings: dict[str, str], expected: list[float]) -> None:
        """Numbers of the released functions: a fork inside a turn, and another one below it."""
        nodes = [N(parent=-1, kind=PROMPT)]
        for parent, tokens, paid in ((0, 2, None), (1, 3, 1), (1, 1, None), (3, 4, 0), (3, 2, 1), (0, 5, 0.5)):
            ending = Outcome.OPEN if paid is None else Outcome.TERMINATED
            nodes.append(
                N(parent=parent, kind=ACTION, tokens=[4] * tokens, env_reward=float(paid or 0), outcome=ending)
            )
        tree = build(*nodes)
        (credited,) = TreeRl(as_released=True, **settings)([rewarded(tree)])  # type: ignore[arg-type]
        assert credited.advantage[tree.span[1:-1]] == pytest.approx(expected, abs=2e-6)

    @pytest.mark.parametrize(
        ("term", "expected"),
        [
            ("local", [-1 / 6, 2 / 3, -1 / 3, -1 / 3, 0.5]),
            ("global", [-1 / 6, 0.5, -0.5, -0.5, 0.5]),
            ("outcome", [-2 / 9, 2 / 3, -2 / 3, -2 / 3, 2 / 3]),
            ("local_outcome", [-1 / 6 - 2 / 9, 4 / 3, -1, -1, 7 / 6]),
            ("ancestors", [-1 / 6, 1 - 5 / 12, -5 / 12, -5 / 12, 0.5]),
        ],
    )
    def test_terms_of_the_formula(self, term: str, expected: list[float]) -> None:
        """The prompt is worth 1/2, the shared stretch 1/3."""
        (credited,) = TreeRl(weight="none", term=term)([branching(FORKED)])  # type: ignore[arg-type]
        assert list(named(credited).values()) == pytest.approx(expected, abs=2e-5)

    def test_a_value_by_branches_counts_each_once(self) -> None:
        # The shared stretch is worth 1/3 and the other chain 1, so the prompt 2/3.
        got = named(TreeRl(weight="none", term="global", mean="branches")([branching(FORKED)])[0])
        assert got == pytest.approx({"s": -1 / 3, "tail": 1 / 3, "f1": -2 / 3, "f2": -2 / 3, "B": 1 / 3}, abs=2e-5)


def test_tree_ps() -> None:
    got = named(TreePs()([branching(TOY)])[0])
    assert got == {"a": 0.25, "a1": 0.5, "a2": -0.5, "b": -0.25, "b1": 0.0, "b2": 0.0}
    # Turns after which nothing forks get nothing.
    assert named(TreePs()([branching({"x": {"u": 1}, "y": 0})])[0]) == {"x": 0.5, "u": 0.0, "y": -0.5}


@given(seeds())
def test_rises_add_up_to_the_return_over_the_tasks_mean(rng: np.random.Generator) -> None:
    trees = [rewarded(random_tree(rng, task=task)) for task in ("a", "b", "a")]
    view = path_view(trees)
    if not view.paths:
        return
    total = np.bincount(view.path, flat(*TreePs()(trees)), minlength=view.paths)
    assert (view.turns > 0).all()
    assert total == pytest.approx(dr_grpo().of_paths(view), abs=1e-5)


class TestTreeRpo:
    @pytest.mark.parametrize(("ddof", "size"), [(1, math.sqrt(0.5)), (0, 1.0)])
    def test_worked_example(self, ddof: int, size: float) -> None:
        got = named(TreeRpo(ddof=ddof)([branching(TOY)])[0])
        assert got == pytest.approx({"a": size, "a1": size, "a2": -size, "b": -size, "b1": 0, "b2": 0}, abs=2e-5)
        assert got["b1"] == got["b2"] == 0.0

    def test_a_branch_counts_once_however_many_paths_it_has(self) -> None:
        got = named(TreeRpo()([branching({"a": {"a1": 1, "a2": {"p": 0, "q": 0, "r": 0, "t": 0}}, "b": 0.4})])[0])
        # By its branches a is worth 0.5 and better than b; by its paths 0.2 and worse.
        assert got["a"] > 0 > got["b"]

    def test_stretches_are_nodes(self) -> None:
        short = named(TreeRpo()([branching(TOY)])[0])
        long: Shape = {"a": {"a'": {"a1": {"a1'": 1}, "a2": 0}}, "b": {"b1": 0, "b2": {"b2'": 0}}}
        got = named(TreeRpo()([branching(long)])[0])
        assert {name: value for name, value in got.items() if "'" not in name} == short
        assert all(got[name] == got[name[:-1]] for name in got if "'" in name)

    def test_prompts_of_one_task_are_one_fork(self) -> None:
        apart = TreeRpo()([branching({"x": 1}), branching({"y": 0})])
        assert [named(c) for c in apart] == [
            pytest.approx({"x": 0.707106}, abs=2e-5),
            pytest.approx({"y": -0.707106}, abs=2e-5),
        ]
        others = TreeRpo()([branching({"x": 1}), branching({"y": 0}, task="other")])
        assert [named(c) for c in others] == [{"x": 0.0}, {"y": 0.0}]


class TestSegmentPo:
    CUT, VALUE = np.asarray([-1, 1, 3]), np.asarray([0.5, 0.25, 0.75])
    P = np.asarray([0.5, 0.95, 0.5, 0.5, 0.5, 0.99])

    def test_worked_example(self) -> None:
        assert segments(self.CUT, self.VALUE, 1.0, self.P).tolist() == pytest.approx(
            [-0.25, 0, 0.5, 0.5, 0.25, 0], abs=2e-5
        )
        assert segments(self.CUT, self.VALUE, 1.0, self.P, certain=1.0).tolist() == [-0.25, -0.25, 0.5, 0.5, 0.25, 0.25]

    def test_cuts_that_are_none(self) -> None:
        for cut, value in (([0, 1], [0.5, 0.5]), ([-1, 3, 3], [0.1] * 3), ([-1, 1], [0.5])):
            with pytest.raises(ValueError, match="need -1 first, then ascending, a value each"):
                segments(np.asarray(cut), np.asarray(value), 1.0, self.P)

    def test_on_a_tree(self) -> None:
        got = named(SegmentPo(certain=1.0)([branching({"a": {"a1": 1, "a2": 0, "a3": 1}, "b": 0})])[0])
        assert got == pytest.approx({"a": 1 / 6, "a1": 1 / 3, "a2": -2 / 3, "a3": 1 / 3, "b": -0.5}, abs=2e-5)

    def test_every_turn_of_a_segment_gets_its_rise(self) -> None:
        got = named(SegmentPo()([branching({"x": {"u": 1}, "y": {"v": {"w": 0}}})])[0])
        assert got == {"x": 0.5, "u": 0.5, "y": -0.5, "v": -0.5, "w": -0.5}

    def test_a_chain_of_cuts_and_a_tree_agree(self) -> None:
        """Values by sampling at the cuts are values of a tree that forks there."""
        tree = branching({"a": {"b": {"c": 1, "d": 0.5}, "e": -0.75}, "f": 0.25}, tokens=2)
        got = named(SegmentPo(certain=1.0)([tree])[0])
        values = np.asarray([np.mean([1, 0.5, -0.75, 0.25]), np.mean([1, 0.5, -0.75]), 0.75])
        chain = segments(np.asarray([-1, 1, 3]), values, 1.0, np.full(6, 0.5))
        assert [got["a"], got["b"], got["c"]] == pytest.approx(chain[::2].tolist(), abs=2e-5)

    def test_tokens_that_were_certain_get_nothing(self) -> None:
        end = Outcome.TERMINATED
        logprob = [math.log(0.5), math.log(0.95), math.log(0.9) - 1e-6]
        nodes = [N(parent=-1, kind=PROMPT)]
        nodes += [
            N(parent=0, kind=ACTION, tokens=(4, 5, 6), logprob=logprob, env_reward=p, outcome=end) for p in (1, 0)
        ]
        (credited,) = SegmentPo()([rewarded(build(*nodes))])
        assert credited.advantage[1:].tolist() == [0.5, 0.0, 0.5, -0.5, 0.0, -0.5]
        assert credited.turn_advantage is None
        (whole,) = SegmentPo(certain=1.0)([rewarded(build(*nodes))])
        assert whole.advantage[1:].tolist() == [0.5] * 3 + [-0.5] * 3


class TestArpo:
    def test_shared_tokens(self) -> None:
        (soft,), (hard,) = (Arpo(attribution=kind)([branching(FORK)]) for kind in ("soft", "hard"))  # type: ignore[arg-type]
        assert soft.positive[1] == pytest.approx(0.353553, abs=2e-5)
        assert soft.negative[1] == pytest.approx(-0.353553, abs=2e-5)
        assert hard.positive[1] == hard.negative[1] == 0.0
        assert named(soft) == pytest.approx({"s": 0, "u": 0.707106, "v": -0.707106}, abs=2e-5)
        assert named(hard) == pytest.approx(named(soft), abs=1e-6)

    @given(seeds())
    def test_soft_is_grpo_and_hard_has_the_same_sum(self, rng: np.random.Generator) -> None:
        trees = [rewarded(random_tree(rng, task=task)) for task in "ab"]
        soft, hard, grpo = (rule(trees) for rule in (Arpo(), Arpo(attribution="hard"), Grpo()))
        for one, two, three in zip(soft, hard, grpo, strict=True):
            assert np.array_equal(one.positive, three.positive)
            assert np.array_equal(one.negative, three.negative)
            assert two.advantage == pytest.approx(one.advantage, abs=1e-5)
            assert not (two.positive * two.negative).any()

    def test_base(self) -> None:
        (plain,) = Arpo(base=dr_grpo())([branching(FORK)])
        assert named(plain) == {"s": 0, "u": 0.5, "v": -0.5}


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: type(rule).__name__)
@given(rng=seeds())
def test_paths_that_all_came_to_the_same_teach_exactly_nothing(rule: Credit, rng: np.random.Generator) -> None:
    """Whatever the shape of the tree, and though sums of tenths are rounded."""
    tree = random_tree(rng, unusual=0.0)
    reward = np.zeros(tree.nodes)
    reward[path_view([rewarded(tree)]).leaf] = 0.1
    (credited,) = rule([Rewarded(tree=tree, channels={"outcome": reward})])
    assert not credited.positive.any()
    assert not credited.negative.any()


@pytest.mark.parametrize(
    "rule", [SegmentPo(certain=1.0), TreePs(), TreeRl(), TreeRl(weight="none"), TreeRpo()], ids=str
)
@given(rng=seeds())
def test_rules_by_value_give_a_node_one_advantage(rule: Credit, rng: np.random.Generator) -> None:
    """The paths through a turn agree: nothing gains and loses at once."""
    for credited in rule([rewarded(random_tree(rng, task=task)) for task in ("a", "b", "a")]):
        assert not (credited.positive * credited.negative).any()


def test_ranges() -> None:
    for make, told in (
        (lambda: TreeGrpo(epsilon=0.0), "TreeGrpo.epsilon: got 0.0; need a number above 0"),
        (
            lambda: TreePo(progress=True, drop_ties=True),
            "TreePo.progress: got it with weight='even', drop_ties=True; need the defaults",
        ),
        (lambda: TreePo(epsilon=0.0), "TreePo.epsilon: got 0.0; need a number above 0"),
        (lambda: TreeRpo(epsilon=0.0), "TreeRpo.epsilon: got 0.0; need a number above 0"),
        (lambda: TreeRpo(ddof=2), "TreeRpo.ddof: got 2; need 0 or 1"),
        (lambda: SegmentPo(certain=0.0), "SegmentPo.certain: got 0.0; need a number above 0 and up to 1"),
    ):
        with pytest.raises(ValueError, match=told):
            make()
