"""SPARK: the majority of verifications, the four advantages, and the format constraint."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.appraise.test_appraisers import appraised, asker, says, trees
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.appraise import PathCritique, Verifications
from bough.appraise.verification import VerdictParser
from bough.cli.find import find_run
from bough.credit import Verified
from bough.credit.verified import Design
from bough.engine import Request
from bough.engine.scripted import Reply
from bough.reward import FormatConstraint, Judged, reward_trees
from bough.tree import Kind, Outcome, Rewarded, StageError, Tree, Verdict, counted, path


def steps_of(tree: Tree, leaf: int) -> list[int]:
    return [node for node in path(tree, leaf).tolist() if tree.kind[node] == Kind.ACTION]


def chain(*texts: str, tokens: int = 1) -> Tree:
    """A path with these actions."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1,))]
    for number, text in enumerate(texts):
        outcome = Outcome.TERMINATED if number + 1 == len(texts) else Outcome.OPEN
        nodes.append(N(parent=2 * number, kind=ACTION, tokens=(2,) * tokens, info={"text": text}))
        nodes.append(N(parent=2 * number + 1, kind=OBSERVATION, tokens=(3,), outcome=outcome))
    return build(*nodes)


def judged(verdict: float, steps: tuple[float, ...], constraint: float = 1.0) -> Rewarded:
    tree = chain(*"x" * len(steps))
    at = {"verdict": np.zeros(tree.nodes), "steps": np.zeros(tree.nodes), "format_constraint": np.zeros(tree.nodes)}
    at["steps"][1::2] = steps
    at["verdict"][-1], at["format_constraint"][-1] = verdict, constraint
    return Rewarded(tree=tree, channels=at | {"env": np.ones(tree.nodes)})


def test_the_majority_of_the_card(tmp_path: Path) -> None:
    answers = iter(["[1, 1, 0] yes", "fine. [1,0,0] no", "[1, 1, 1]: Yes."])
    ask, engine = asker(lambda _: says(next(answers)), tmp_path)
    (tree,) = appraised(trees(n=1), ask, Verifications(role="judge"))
    (leaf,) = counted(tree).tolist()
    nodes = steps_of(tree, leaf)
    assert tree.appraisals["steps"].value[nodes].tolist() == [1, 1, 0]
    assert tree.appraisals["verdict"].value[leaf] == 1
    assert len(engine.requests) == tree.appraisals["verdict"].questions.sum() == 3
    assert tree.appraisals["steps"].questions.sum() == 0


def test_a_tie_is_wrong(tmp_path: Path) -> None:
    answers = iter(["[1, 1, 1] yes", "[1, 0, 1] no"])
    ask, _ = asker(lambda _: says(next(answers)), tmp_path)
    (tree,) = appraised(trees(n=1), ask, Verifications(role="judge", n=2))
    (leaf,) = counted(tree).tolist()
    assert tree.appraisals["verdict"].value[leaf] == 0
    assert tree.appraisals["steps"].value[steps_of(tree, leaf)].tolist() == [1, 0, 1]


@pytest.mark.parametrize("answer", ["[1, 0] yes", "[1, 1, 1]", "yes", "[1, 2, 1] yes"])
def test_a_malformed_verification_is_no_vote(answer: str, tmp_path: Path) -> None:
    ask, _ = asker(lambda _: says(answer), tmp_path)
    (tree,) = appraised(trees(n=1), ask, Verifications(role="judge"), required=("verdict", "steps"))
    assert set(tree.appraisals["steps"].verdict[tree.kind == Kind.ACTION].tolist()) == {Verdict.UNPARSED}
    assert not len(counted(tree))
    assert VerdictParser()("[1, 0] no, rather [0, 1] yes") == ((False, True), True)


def test_labels_by_majority_find_the_first_error_more_often_than_one_verifier(tmp_path: Path) -> None:
    """Verifiers that are right about a step with .8, on paths whose second step is wrong."""

    def noisy(request: Request) -> Reply:
        luck = random.Random(f"{request.prompt_tokens} {request.seed}")
        seen = [truth if luck.random() < 0.8 else 1 - truth for truth in (1, 0, 1)]
        return says(f"{seen} {'yes' if luck.random() < 0.2 else 'no'}")

    def share(n: int) -> float:
        (tmp_path / str(n)).mkdir()
        ask, _ = asker(noisy, tmp_path / str(n))
        found: list[bool] = []
        for number in range(60):
            piece = Verifications(role="judge", n=n, prompt=f"{number}: {{steps}}")
            (tree,) = appraised(trees(n=1), ask, piece)
            nodes = steps_of(tree, int(counted(tree)[0]))
            found.extend(
                value == truth for value, truth in zip(tree.appraisals["steps"].value[nodes], (1, 0, 1), strict=True)
            )
        return float(np.mean(found))

    assert share(1) == pytest.approx(0.8, abs=0.07)
    assert share(9) == pytest.approx(0.980419, abs=0.025)


def advantages(design: Design, *paths: Rewarded) -> list[list[float]]:
    return [each.path_advantage.tolist() for each in Verified(design=design)(paths)]


def z(*value: float) -> list[float]:
    found = np.array(value)
    return ((found - found.mean()) / (found.std(ddof=1) + 1e-6)).tolist()


def test_the_four_designs() -> None:
    assert [round(0.4 * 2 / 3 + 0.6 * final, 6) for final in (1, 0)] == [0.866667, 0.266667]
    one, two = judged(1, (1, 1, 0)), judged(0, (1, 1, 0))
    assert advantages("process", one, two) == [[pytest.approx(each)] * 3 for each in z(1, 0)]
    assert advantages("step_augmented", one, judged(0, (0, 0, 0)), two) == [
        [pytest.approx(each)] * 3 for each in z(0.4 * 2 / 3 + 0.6, 0, 0.4 * 2 / 3)
    ]
    good, bad = z(1, 0)
    assert advantages("selective", judged(1, (1, 0, 1)), judged(0, (1, 0, 1))) == [
        pytest.approx([good, 0, good]),
        pytest.approx([0, bad, 0]),
    ]
    own = z(1, 0, 1, 1, 1, 1)
    expected = [0.8 * good + 0.2 * each for each in own[:3]], [0.8 * bad + 0.2 * each for each in own[3:]]
    assert advantages("global", judged(1, (1, 0, 1)), judged(0, (1, 1, 1))) == [
        pytest.approx(expected[0]),
        pytest.approx(expected[1]),
    ]


def test_a_path_of_wrong_form_earns_nothing() -> None:
    """A hack that the judge likes wins without the constraint, and loses with it."""
    hack, honest, wrong = judged(1, (1,) * 9, constraint=0), judged(1, (1, 0, 1)), judged(0, (0, 0, 0))
    constrained = advantages("step_augmented", hack, honest, wrong)
    assert constrained[0][0] < constrained[1][0]
    open_door = advantages("step_augmented", judged(1, (1,) * 9), honest, wrong)
    assert open_door[0][0] > open_door[1][0]


@pytest.mark.parametrize(
    ("texts", "fits"),
    [
        (("2 + 2", "4 * 3", "answer 12"), True),
        (("2 + 2", "4 * 3", "answer 12. Another problem: 1 + 1, answer 2"), False),
        (("2 + 2", "answer 12", "1 + 1 is 2"), False),
        (("answer 12", "2 + 2", "answer 12"), False),
        (("well", *("so",) * 9, "answer 12"), False),
        (("answer 12",), False),
        (("2 + 2", "4 * 3"), False),
    ],
)
def test_the_constraint_refuses_the_three_hacks(texts: tuple[str, ...], fits: bool) -> None:
    constraint = FormatConstraint(answer=r"answer \d+", min_steps=2, max_steps=5)
    (paid,) = constraint([chain(*texts)])
    assert paid["format_constraint"].sum() == paid["format_constraint"][-1] == fits


def test_the_constraint_refuses_a_giant_step_and_wrong_settings() -> None:
    (paid,) = FormatConstraint(step_tokens=3)([chain("a", "b", tokens=4)])
    assert paid["format_constraint"].sum() == 0
    (paid,) = FormatConstraint(step_tokens=4)([chain("a", "b", tokens=4)])
    assert paid["format_constraint"].sum() == 1
    with pytest.raises(ValueError, match=r"FormatConstraint.answer: got '\(' .* need a regular expression"):
        FormatConstraint(answer="(")
    with pytest.raises(ValueError, match=r"FormatConstraint.max_steps: got 1; need at least min_steps=2"):
        FormatConstraint(min_steps=2, max_steps=1)


def test_spark_has_no_other_reward_than_the_judge(tmp_path: Path) -> None:
    run = find_run("spark(judge=judge)", "frozenlake")
    (piece,) = run.world.appraisers
    ask, _ = asker(lambda request: says("[1, 0, 1] yes" if request.seed % 2 else "[1, 1, 0] no"), tmp_path)
    found = appraised(trees("t", n=1), ask, piece, required=("verdict", "steps"))
    rewarded = reward_trees(found, run.world.rewards)
    raised = [
        Rewarded(tree=each.tree, channels={**each.channels, "env": 9 + each.tree.env_reward}) for each in rewarded
    ]
    plain, other = run.method.credit(rewarded), run.method.credit(raised)
    assert all(np.array_equal(one.path_advantage, two.path_advantage) for one, two in zip(plain, other, strict=True))
    with pytest.raises(StageError, match="need a reward that pays this channel"):
        run.method.credit(reward_trees(found, (Judged(column="verdict"),)))


def test_an_unknown_design_is_refused() -> None:
    with pytest.raises(ValueError, match="design: got 'best'; need 'process', 'step_augmented'"):
        Verified(design="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("piece", [Verifications(role="judge", n=1), PathCritique(role="judge", n=1)])
def test_the_judge_reads_the_task_and_what_came_of_the_steps(
    piece: Verifications | PathCritique, tmp_path: Path
) -> None:
    tree = chain("max 3 2", "solve")
    shown = ("profit 3 2.", "max 3 2", "ok", "solve", "maximum 10")
    tree = replace(tree, info=tuple({**info, "text": text} for info, text in zip(tree.info, shown, strict=True)))
    ask, engine = asker(lambda _: says("[1, 1] yes"), tmp_path)
    appraised([tree], ask, piece)
    question = "".join(map(chr, engine.requests[0].prompt_tokens))
    assert "profit 3 2.\n> max 3 2\nok\n> solve\nmaximum 10\n" in question
    assert "1. max 3 2\n2. solve\n" in question
