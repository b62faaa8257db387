"""The work of stored trees."""

from tests.trees import ACTION, EDIT, OBSERVATION, PROMPT, N, chains

from bough.plan import TurnWork, tree_work
from bough.tree import Outcome, build

END = Outcome.TERMINATED


def test_chains_share_their_prompt() -> None:
    """Each chain: two sampled tokens, two observed ones, two sampled ones, two observed ones."""
    work = tree_work(chains([1.0, 0.0], turns=2))
    first = TurnWork(parent=-1, new_tokens=0, context_tokens=3, sampled_tokens=2)
    assert (work.prompt_tokens, work.episodes, work.trained_tokens) == (3, 2, 8)
    assert work.turns[0] == work.turns[2] == first
    # The observation, and the last sampled token of the turn before.
    assert work.turns[1] == TurnWork(parent=0, new_tokens=3, context_tokens=7, sampled_tokens=2)
    assert work.turns[3].parent == 2
    assert work.steps == 4
    assert work.longest == 9
    assert work.unique_tokens == 3 + 2 * 8
    assert work.pairs == 1 + 2 + 3 + 2 * sum(range(4, 12))


def test_equal_prefixes_count_once() -> None:
    turn = {"kind": ACTION, "tokens": (5, 6)}
    seen = {"kind": OBSERVATION, "tokens": (7,), "outcome": END}
    work = tree_work(
        build(
            N(parent=-1, kind=PROMPT, tokens=(1, 2)),
            N(parent=0, **turn),
            N(parent=1, **seen),
            N(parent=0, **turn),
            N(parent=3, **seen),
        )
    )
    assert work.unique_tokens == 5
    assert work.trained_tokens == 4


def test_a_rebuilt_context_reuses_its_common_prefix() -> None:
    work = tree_work(
        build(
            N(parent=-1, kind=PROMPT, tokens=(1, 2, 3)),
            N(parent=0, kind=ACTION, tokens=(5,)),
            N(parent=1, kind=EDIT, tokens=(1, 2, 8, 9)),
            N(parent=2, kind=ACTION, tokens=(6,)),
            N(parent=3, kind=OBSERVATION, tokens=(7,), outcome=END),
        )
    )
    assert work.turns[1] == TurnWork(parent=0, new_tokens=3, context_tokens=4, sampled_tokens=1)
    assert work.unique_tokens == 4 + 2 + 2


def test_an_action_of_two_pieces_has_one_step() -> None:
    work = tree_work(
        build(
            N(parent=-1, kind=PROMPT, tokens=(1,)),
            N(parent=0, kind=ACTION, tokens=(5, 5)),
            N(parent=1, kind=ACTION, tokens=(6, 6, 6)),
            N(parent=2, kind=OBSERVATION, tokens=(7,), outcome=END),
        )
    )
    assert [turn.steps for turn in work.turns] == [False, True]
    assert [turn.sampled_tokens for turn in work.turns] == [2, 3]
    assert work.steps == 1
