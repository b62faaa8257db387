"""Failures put right: where they went wrong, what goes on from there, and what is learned from it."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.engines import Front, Late, Recorder
from tests.explore.stage import Letters, World, grow, runner, scripted
from tests.explore.test_quality import LAKE
from tests.rollout.test_builder import columns
from tests.rollout.test_writing import play

from bough.batch import pack
from bough.credit import Grpo
from bough.engine import Completion, Engine, EngineFault, InjectedFault, Request, Scripted
from bough.env import InProcessHost
from bough.explore import Correct, FirstInvalid, FirstOracleMistake
from bough.reward import Success
from bough.rewrite.teacher_paths import teacher_paths
from bough.rollout import Attempt, Limits, RoleModel, Rollout
from bough.rollout.attempt import attempt
from bough.tree import Kind, Outcome, Rewarded, Source, Ternary, Tree, counted, leaves, path
from bough.worlds.frozenlake import FrozenLake


def writes(text: str) -> Scripted:
    """Writes the letters of a text, one a turn."""

    def reply(request: Request) -> tuple[int, ...]:
        turn = sum(token == 0 for token in request.prompt_tokens)
        return (ord(text[turn]),)

    return Scripted(script=reply)


def grown(explorer: Correct, engine: Engine, *, length: int = 5, seed: int = 0, limits: Limits | None = None) -> Tree:
    place = runner(engine, InProcessHost(env=World(length=length)), limits=limits or Limits())
    (tree,) = grow(place, explorer, seed=seed).trees
    return tree


def paid(tree: Tree) -> Rewarded:
    return Rewarded(tree=tree, channels=Success()([tree])[0])


def acts(tree: Tree, leaf: int) -> list[int]:
    return [int(node) for node in path(tree, leaf) if tree.kind[node] == Kind.ACTION]


@pytest.mark.parametrize("wrong", range(5))
def test_the_good_part_is_kept_and_a_teacher_goes_on(wrong: int) -> None:
    text = "a" * wrong + "b" * (5 - wrong)
    tree = grown(Correct(n=1), writes(text))
    # Siblings by branch: the policy's own step comes first.
    failed, righted = counted(tree).tolist()
    assert "".join(str(tree.info[node]["text"]) for node in acts(tree, failed)) == text
    assert "".join(str(tree.info[node]["text"]) for node in acts(tree, righted)) == "aaaaa"
    assert [int(tree.source[node]) for node in acts(tree, righted)] == [Source.SAMPLED] * wrong + [Source.TEACHER] * (
        5 - wrong
    )
    assert (tree.kind == Kind.ACTION).sum() == 5 + (5 - wrong), "what is kept is not played again"


def test_so_many_are_put_right_and_each_place_once() -> None:
    tree = grown(Correct(n=6, max_corrected=3), writes("abbbb"))
    assert len(counted(tree)) == 6 + 3
    first = grown(Correct(n=6, max_corrected=3), writes("bbbbb"))
    assert len(counted(first)) == 6 + 1, "all went wrong at the prompt"
    assert len(counted(grown(Correct(n=6, max_corrected=0), writes("bbbbb")))) == 6
    assert len(counted(grown(Correct(n=6), writes("aaaaa")))) == 6, "nothing failed"


def test_who_is_to_blame() -> None:
    async def lost(rollout: Rollout) -> Attempt:
        return await attempt(rollout, await rollout.root(), branch=0)

    def blamed(text: str, rule: FirstOracleMistake, **world: int) -> int | None:
        said: list[int | None] = []

        async def script(rollout: Rollout) -> None:
            said.append(await rule(rollout, await lost(rollout)))

        play(runner(writes(text), InProcessHost(env=World(**world))), script)  # type: ignore[arg-type]
        return said[0]

    assert blamed("abb", FirstOracleMistake()) == 1
    assert blamed("aab", FirstOracleMistake()) == 2, "the last step led to the end without success"
    assert blamed("bbb", FirstOracleMistake()) == 0


def test_what_is_invalid_is_wrong_if_it_is_to_be() -> None:
    """On a lake, text that is no move costs a turn and changes nothing."""
    said: list[int | None] = []
    words = iter(["jump", "down"] * 2)

    async def script(rollout: Rollout) -> None:
        lost = await attempt(rollout, await rollout.root(), branch=0)
        assert lost.unsolved
        said.extend([await FirstOracleMistake()(rollout, lost), await FirstOracleMistake(invalid=False)(rollout, lost)])

    play(runner(scripted(lambda _: next(words)), InProcessHost(env=FrozenLake(size=2))), script, LAKE)
    assert said == [0, 1]


def test_groups_are_mixed_and_the_suffix_can_be_imitated() -> None:
    tree = grown(Correct(n=1), writes("aabbb"))
    (credited,) = Grpo()([paid(tree)])
    failed, righted = counted(tree).tolist()
    shared, own = acts(tree, failed)[0], acts(tree, failed)[3]
    at = int(tree.span[shared])
    assert credited.positive[at] == pytest.approx(0.7071 / 2, abs=2e-5)
    assert credited.negative[at] == pytest.approx(-0.7071 / 2, abs=2e-5)
    assert credited.negative[int(tree.span[own])] == pytest.approx(-0.7071, abs=2e-5)
    teacher = acts(tree, righted)[-1]
    assert not credited.positive[tree.span[teacher] : tree.span[teacher + 1]].any()
    (shown,) = teacher_paths([credited])
    batch = pack([credited], experts=[shown])
    assert int(batch.expert.sum()) == 3 * 2, "three moves of a letter and a stop"
    assert int((~batch.expert).sum()) == 5 * 2


@pytest.mark.parametrize("limits", [Limits(), Limits(tree_turns=13), Limits(tree_tokens=30), Limits(tree_calls=9)])
def test_the_order_of_arrival_does_not_show_and_budgets_hold(limits: Limits) -> None:
    plain = scripted(lambda chance: chance.choice("aab"))
    expected = grown(Correct(n=3), plain, limits=limits)
    assert np.sum(expected.valid != Ternary.UNKNOWN) <= (limits.tree_turns or 100)
    assert expected.sampled.sum() <= (limits.tree_tokens or 100)
    assert len(counted(expected))

    @settings(max_examples=8)
    @given(chance=strategies.integers(0, 2**32 - 1).map(random.Random))
    def late(chance: random.Random) -> None:
        assert columns(grown(Correct(n=3), Late(plain, chance), limits=limits)) == columns(expected)

    late()


def test_faults_are_tried_again() -> None:
    def reply(request: Request) -> object:
        return InjectedFault.FAULT if random.Random(request.seed).random() < 0.2 else (ord("b"),)

    tree = grown(Correct(n=3, retries=50), Scripted(script=reply))  # type: ignore[arg-type]
    assert len(counted(tree)) == 3 + 1
    nothing = grown(Correct(n=2, retries=1), Scripted(script=lambda _: InjectedFault.FAULT))
    assert nothing.outcome[leaves(nothing)].tolist() == [Outcome.FAILED] * 4
    assert not np.isnan(Grpo()([paid(nothing)])[0].advantage).any()


@pytest.mark.parametrize("fields", [{"n": 0}, {"max_corrected": -1}, {"retries": -1}])
def test_ranges(fields: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=rf"Correct.{next(iter(fields))}: got .*; need at least"):
        Correct(**fields)


def test_a_model_of_a_role_corrects_in_place_of_the_oracle() -> None:
    """The policy writes a, then what is invalid; the teacher's model reads the conversation and writes a."""
    teacher = Recorder(scripted(lambda _: "a"))
    place = runner(writes("axxxx"), InProcessHost(env=World(length=5)))
    agent = replace(place.agent, models={"teacher": RoleModel(engine=teacher, renderer=Letters())})
    explorer = Correct(n=1, blame=FirstInvalid(), teacher="teacher")
    (tree,) = grow(replace(place, agent=agent), explorer).trees
    failed, righted = counted(tree).tolist()
    assert "".join(str(tree.info[node]["text"]) for node in acts(tree, failed)) == "axxxx"
    assert "".join(str(tree.info[node]["text"]) for node in acts(tree, righted)) == "aaaaa"
    assert [int(tree.source[node]) for node in acts(tree, righted)] == [Source.SAMPLED] + [Source.TEACHER] * 4
    assert (tree.success[failed], tree.success[righted]) == (Ternary.NO, Ternary.YES)
    read = ["".join(map(chr, request.prompt_tokens)) for request, _ in teacher.heard]
    assert [text.endswith("}") and "x" not in text for text in read] == [True] * 4
    assert len({request.seed for request, _ in teacher.heard}) == 4


def test_a_correction_by_a_model_needs_the_role_and_no_oracle() -> None:
    assert {need.text for need in Correct(teacher="teacher").needs} == {
        "an environment that steps a state more than once",
        "a model for the role 'teacher'",
    }


def test_a_teacher_that_breaks_ends_the_correction() -> None:
    class Broken(Front):
        async def generate(self, request: Request) -> Completion:
            raise EngineFault(f"no teacher for {len(request.prompt_tokens)} tokens")

    place = runner(writes("bbbbb"), InProcessHost(env=World(length=5)))
    agent = replace(place.agent, models={"teacher": RoleModel(engine=Broken(writes("a")), renderer=Letters())})
    (tree,) = grow(replace(place, agent=agent), Correct(n=1, teacher="teacher", blame=FirstInvalid())).trees
    assert int((tree.success == Ternary.YES).sum()) == 0
    assert len(counted(tree)) >= 1
