"""EGPO's bonus: its bound, its sign, and the tokens that it reads."""

from dataclasses import replace

import numpy as np
import pytest
from tests.credit.seen import paths_of
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import Egpo, Grpo
from bough.needs import ENTROPIES, annotation, needs_of
from bough.tree import Outcome, Rewarded


def thought(*paths: tuple[float, float, float]) -> Rewarded:
    """Paths of one turn by their return, the entropy of the two tokens of the thinking, and that of the others."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for paid, thinking, rest in paths:
        info: dict[str, object] = {"spans": {"thought": [1, 3]}}
        entropy = (rest, thinking, thinking, rest)
        nodes.append(N(parent=0, kind=ACTION, tokens=(4, 5, 6, 7), entropy=entropy, env_reward=paid, info=info))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=Outcome.TERMINATED))
    return rewarded(build(*nodes))


def test_worked_example() -> None:
    found = Egpo().raised(np.asarray([1.0, 1, -1, -1, 0]), np.asarray([0.5, 5, 0.5, 5, 5]))
    assert found == pytest.approx([1.2, 1.5, -0.8, -0.5, 0.0])


def test_the_entropy_of_the_thinking_alone_counts() -> None:
    """Two successes differ by their thinking; the entropy of calls is no reason for a bonus."""
    given = thought((1.0, 0.5, 0.1), (1.0, 0.2, 9.0), (0.0, 0.5, 9.0), (0.0, 0.0, 9.0))
    (found,) = Egpo(mark="thought")([given])
    base = 0.8660254 - 1e-6
    assert paths_of(found) == pytest.approx([base + 0.2, base + 0.08, 0.2 - base, -base], abs=2e-5)
    (whole,) = Egpo()([given])
    assert paths_of(whole)[1] == pytest.approx(1.5 * base, abs=2e-5)
    (plain,) = Egpo(alpha=0.0, mark="thought")([given])
    assert paths_of(plain) == pytest.approx(paths_of(Grpo()([given])[0]))


def test_ties_and_turns_without_thinking_get_no_bonus() -> None:
    (tied,) = Egpo(mark="thought")([thought((1.0, 5.0, 5.0), (1.0, 1.0, 1.0))])
    assert tied.is_zero
    given = thought((1.0, 5.0, 5.0), (0.0, 5.0, 5.0))
    bare = replace(given, tree=replace(given.tree, info=({},) * given.tree.nodes))
    (found,) = Egpo(mark="thought")([bare])
    assert paths_of(found) == pytest.approx(paths_of(Grpo()([given])[0]))


def test_what_it_needs_and_refuses() -> None:
    assert needs_of(Egpo()) == {ENTROPIES}
    assert needs_of(Egpo(mark="thought")) == {ENTROPIES, annotation("thought")}
    with pytest.raises(ValueError, match=r"Egpo.kappa: got 1; need a number above 1"):
        Egpo(kappa=1)
    with pytest.raises(ValueError, match=r"Egpo.alpha: got -1"):
        Egpo(alpha=-1)
