"""EAG-RL: attention maps of the policy, the overlap with an expert's features, and a search that an expert guides."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.queries import ENV, TASK
from tests.trees import ACTION, PROMPT, N, build, rewarded

from bough.credit import Grpo
from bough.hooks import AttentionReward
from bough.hooks.attention_reward import AttentionRewardState, find_features, overlap
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.learner.attention_maps import attention_maps
from bough.methods.eag_rl import eag_rl
from bough.methods.eag_search import eag_search
from bough.policy import Tiny
from bough.search import Judge, OracleValue, Search
from bough.tree import Outcome, Rewarded, Task
from bough.worlds.frozenlake.preset import frozenlake

PROMPT_TEXT = "age 70\npulse 60\nmood ok\n"


def test_maps_are_those_of_the_models_own_attention() -> None:
    """Against the weights that transformers returns, and causal: no token reads a later one."""
    policy = Tiny(layers=2, width=16, heads=2, vocab_tokens=300).build(["age 70, pulse 60, mood ok"])
    text = np.asarray(policy.renderer.write("age 70, pulse 60"), dtype=np.int32)
    (found,) = attention_maps(policy, [text])
    assert np.allclose(found.sum(1), 1, atol=1e-5)
    assert np.allclose(np.triu(found, 1), 0)
    model = policy._model.model  # type: ignore[attr-defined]
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(input_ids=torch.as_tensor(text[None].astype(np.int64)), output_attentions=True).attentions
    expected = torch.stack([each[0].mean(0) for each in maps]).mean(0)
    assert np.allclose(found, expected.numpy(), atol=1e-5)


def test_the_overlap_of_features() -> None:
    """Worked example: a and b have most attention, a and c are salient."""
    assert overlap([0.4, 0.3, 0.2, 0.1], {0, 2}) == pytest.approx(1 / 3)
    assert overlap([0.4, 0.3, 0.2, 0.1], {0, 1}) == 1
    assert overlap([0.1, 0.1], {0}) == 1
    features = find_features([*map(ord, PROMPT_TEXT)], lambda tokens: "".join(map(chr, tokens)), r"[^\n]+")
    assert [text for text, _ in features] == ["age 70", "pulse 60", "mood ok"]
    assert features[1][1] == list(range(7, 15))


def reading(line: str) -> AttentionRewardState:
    """The hook with a policy that attends to the tokens of one line, if its first action token is `line`'s first."""

    def attention(texts: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        maps = []
        for text in texts:
            found = np.full((len(text), len(text)), 0.01, dtype=np.float32)
            begin = PROMPT_TEXT.index(chr(int(text[len(PROMPT_TEXT)])))
            found[:, begin : begin + len(line)] = 1.0
            maps.append(found)
        return maps

    return attending(attention)


def attending(attention: Callable[[Sequence[NDArray[np.int32]]], list[NDArray[np.float32]]]) -> AttentionRewardState:
    access = PolicyAccess(attention=attention, text=lambda tokens: "".join(map(chr, tokens)))
    return AttentionReward(key="salient", weight=0.5).build(HookSetup(policy=access))


def two_paths(salient: object) -> Rewarded:
    """Two wrong answers to one prompt: `a` and `p`, the first letters of two lines."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=tuple(map(ord, PROMPT_TEXT)))]
    nodes += [
        N(parent=0, kind=ACTION, tokens=(ord(letter),), env_reward=0.0, outcome=Outcome.TERMINATED) for letter in "ap"
    ]
    tree = build(*nodes)
    data = {} if salient is None else {"salient": salient}
    return rewarded(replace(tree, task=Task(id="patient", data=data)))


def test_a_path_is_paid_for_what_it_reads() -> None:
    """Both answers are wrong; the one that read the pulse has the positive advantage."""
    state = reading("age 7")
    (paid,) = state.transform([two_paths(["pulse"])], 0)
    assert paid.returns().tolist() == [0, 0.5]
    assert state.observe() == {"attention/overlap": 0.5, "attention/salient": 1}
    (credited,) = Grpo()([paid])
    assert credited.path_advantage[0] < 0 < credited.path_advantage[1]
    (flat,) = Grpo()([two_paths(["pulse"])])
    assert not flat.path_advantage.any()


def test_the_attention_of_an_action_is_that_of_all_its_pieces() -> None:
    """The first token reads the mood, the others less of the age."""
    whole = [N(parent=0, kind=ACTION, tokens=tuple(map(ord, "app")), outcome=Outcome.TERMINATED)]
    parts = [
        N(parent=0, kind=ACTION, tokens=(ord("a"),)),
        N(parent=1, kind=ACTION, tokens=tuple(map(ord, "pp")), outcome=Outcome.TERMINATED),
    ]
    prompt = PROMPT_TEXT[:-1]

    def attention(texts: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        (text,) = texts
        found = np.zeros((len(text), len(text)), dtype=np.float32)
        found[len(prompt) - 1, prompt.index("mood") : len(prompt)] = 9.0
        found[len(prompt) :, : len("age 70")] = 1.0
        return [found]

    for turn in (whole, parts):
        state = attending(attention)
        tree = build(N(parent=-1, kind=PROMPT, tokens=tuple(map(ord, prompt))), *turn)
        tree = replace(tree, task=Task(id="patient", data={"salient": ["mood"]}))
        (paid,) = state.transform([rewarded(tree)], 0)
        assert paid.returns().tolist() == [0.5]


@pytest.mark.parametrize("salient", [None, [], ["temperature"], "pulse"])
def test_without_salient_features_nothing_is_paid(salient: object) -> None:
    state = reading("age 7")
    (paid,) = state.transform([two_paths(salient)], 0)
    assert paid.channels["attention"].tolist() == [0, 0, 0]
    assert state.observe()["attention/salient"] == 0


def test_on_a_real_environment() -> None:
    """Text-to-SQL: the line with the columns of the table is salient; an untrained policy has some overlap."""
    policy = Tiny(layers=1, width=16, heads=2, context_tokens=512).build([str(ENV.start(TASK).observation)])
    access = PolicyAccess(attention=lambda texts: attention_maps(policy, texts), text=policy.renderer.text)
    state = AttentionReward(weight=1.0).build(HookSetup(policy=access))
    prompt = policy.renderer.write(str(ENV.start(TASK).observation))
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=tuple(prompt)),
        N(parent=0, kind=ACTION, tokens=tuple(prompt[:3]), outcome=Outcome.TERMINATED),
    )
    shown = [*str(ENV.start(TASK).observation).split("\n")]
    for salient, least in (([shown[0]], 0.0), (shown, 1.0)):
        task = replace(TASK, data={**TASK.data, "salient": salient})
        (paid,) = state.transform([rewarded(replace(tree, task=task))], 0)
        assert least <= paid.channels["attention"].max() <= 1
        assert state.observe()["attention/salient"] == 1


def test_the_methods() -> None:
    assert eag_rl(frozenlake(), weight=0.3).method.hooks == (AttentionReward(weight=0.3),)
    guided, judged = eag_search(frozenlake()).method.explorer, eag_search(frozenlake(), expert="expert").method.explorer
    assert isinstance(guided, Search)
    assert isinstance(judged, Search)
    assert (guided.evaluate, judged.evaluate) == (OracleValue(), Judge(role="expert"))
    with pytest.raises(ValueError, match="need a regular expression"):
        AttentionReward(feature="(")
    with pytest.raises(ValueError, match="need the name of a list"):
        AttentionReward(key="")
