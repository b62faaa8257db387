"""B-Coder: the policy as a Q-function of tokens, and targets of the conservative Bellman operator."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.trees import ACTION, PROMPT, N, build, rewarded

from bough.batch import pack
from bough.credit import ConservativeBellman
from bough.learner.estimates import add_estimates
from bough.methods.b_coder import b_coder
from bough.objective import LossInputs, SftMix, TokenQ
from bough.objective.inputs import ValueInputs
from bough.policy import Tiny
from bough.tree import Credited, Outcome, count_path_tokens
from bough.worlds.frozenlake.preset import frozenlake

ONE = rewarded(
    build(
        N(parent=-1, kind=PROMPT, tokens=(1, 2)),
        N(parent=0, kind=ACTION, tokens=(4, 5), logprob=(-1.0, -0.5), env_reward=1.0, outcome=Outcome.TERMINATED),
    )
)


def test_the_target_takes_the_greedy_token_of_the_reference() -> None:
    """The worked example of the docstring, and a better token in the next state that changes nothing."""
    nan = np.nan
    values = {"value": np.array([nan, nan, 0.2, 0.4]), "greedy": np.array([nan, nan, -0.1, -0.3])}
    (credited,) = ConservativeBellman(tau=0.5)([replace(ONE, estimates=values)])
    assert credited.value_targets["value"].tolist() == pytest.approx([nan, nan, 0.25, 1.0], nan_ok=True)
    assert credited.path_advantage.tolist() == pytest.approx([0.55, 0.85])
    (short,) = ConservativeBellman(tau=0.5, discount=0.5)([replace(ONE, estimates=values)])
    assert short.value_targets["value"][2:].tolist() == pytest.approx([0.125, 1.0])
    unlikely = values | {"greedy": np.array([nan, nan, -0.1, -2.0])}
    (feared,) = ConservativeBellman(tau=0.5)([replace(ONE, estimates=unlikely)])
    assert feared.value_targets["value"][2] == pytest.approx(0.4 - 1.0), "the policy has left the greedy token"


def test_greedy_logprobs_are_the_policys_of_the_references_best_token() -> None:
    """Against whole logits: the policy moves away, and the reference keeps its choice."""
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=300).build(["some text to read, and more of it"])
    with torch.no_grad():
        for weight in policy.parameters().values():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)) * 0.3)
    frozen = policy.replica()
    with torch.no_grad():
        for weight in policy.parameters().values():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(2)) * 0.3)
    settings = {"critic": None, "temperature": 0.7, "micro_tokens": 64}
    (found,) = add_estimates([ONE], policy, reference=policy, guide=frozen, **settings)
    (own,) = add_estimates([ONE], policy, reference=None, guide=policy, **settings)
    batch = pack([Credited(rewarded=ONE, path_advantage=np.zeros(count_path_tokens(ONE.tree)))])
    logits = {}
    for name, model in (("policy", policy), ("frozen", frozen)):
        weight, bias = model.head()
        (chunk,) = add_chunks(model, batch)
        logits[name] = torch.nn.functional.linear(chunk.hidden, weight, bias)
    logprobs = (logits["policy"] / 0.7).log_softmax(-1)
    expected = logprobs.gather(1, logits["frozen"].argmax(-1, keepdim=True))[:, 0]
    assert found.estimates["greedy"][2:].tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert own.estimates["greedy"][2:].tolist() == pytest.approx(logprobs.max(-1).values.tolist(), abs=1e-5)
    assert not np.allclose(found.estimates["greedy"][2:], own.estimates["greedy"][2:])


def add_chunks(model: object, batch: object) -> list[object]:
    from bough.learner.token_outputs import read

    return list(read(model, batch.prefix_tree(), 64).forward())  # type: ignore[arg-type, attr-defined]


def inputs(progress: float = 0.5) -> tuple[LossInputs, torch.Tensor, torch.Tensor]:
    logprob, value = torch.tensor([-1.0, -3.0], requires_grad=True), torch.tensor([0.2, 0.7], requires_grad=True)
    columns = LossInputs(
        logprob=logprob,
        rollout_logprob=logprob.detach(),
        positive=torch.zeros(2),
        negative=torch.zeros(2),
        loss_weight=torch.tensor([0.5, 0.5]),
        values={
            "value": ValueInputs(value=value, old=value.detach(), target=torch.tensor([0.25, torch.nan]), scale=2.0)
        },
        progress=progress,
    )
    return columns, logprob, value


def test_the_loss_moves_value_and_policy_together() -> None:
    """Worked example: Q -.3 and target .25; a token without a target has no loss; at first only the value learns."""
    columns, logprob, value = inputs()
    loss = TokenQ(tau=0.5)(columns)
    assert loss.value.item() == pytest.approx(0.3025)
    loss.value.backward()
    assert value.grad is not None
    assert logprob.grad is not None
    assert value.grad.tolist() == pytest.approx([-1.1, 0])
    assert logprob.grad.tolist() == pytest.approx([-0.55, 0])
    columns, logprob, value = inputs(progress=0.05)
    TokenQ(tau=0.5)(columns).value.backward()
    assert value.grad is not None
    assert logprob.grad is None


def test_the_operator_values_the_greedy_reference_and_improves_on_it_by_a_step() -> None:
    """Tabular: the second token is good (1) or bad (0) after either first; after `a` the reference takes the good one.

    Repeated targets converge to the reference's values: 1 after a, 0 after b, although 1 could be had after b too.
    """
    tau, value = 0.05, {"": 0.0, "a": 0.0, "b": 0.0}
    paths = [(one, two, float(two == "good")) for one in "ab" for two in ("good", "bad")]
    advantage = dict.fromkeys([(one, two) for one, two, _ in paths] + [("", "a"), ("", "b")], 0.0)
    best = {"a": "good", "b": "bad"}
    for _ in range(60):
        for one, two, pay in paths:
            nan = np.nan
            ahead = advantage[one, best[one]] / tau
            tree = replace(
                ONE,
                channels={"env": ONE.channels["env"] * pay},
                estimates={
                    "value": np.array([nan, nan, value[""], value[one]]),
                    "greedy": np.array([nan, nan, 0.0, ahead]),
                },
            )
            target = ConservativeBellman(tau=tau)([tree])[0].value_targets["value"][2:]
            advantage["", one] += 0.3 * (target[0] - value[""] - advantage["", one])
            advantage[one, two] += 0.3 * (target[1] - value[one] - advantage[one, two])
    assert advantage["", "a"] == pytest.approx(1, abs=0.05)
    assert advantage["", "b"] == pytest.approx(0, abs=0.05)


def test_settings() -> None:
    run = b_coder(frozenlake(), tau=0.3, imitation=0.37)
    mixed = run.method.objective
    assert isinstance(mixed, SftMix)
    assert mixed.objective == TokenQ(tau=run.method.credit.tau, value_first=0.2)  # type: ignore[attr-defined]
    assert mixed.mu / (1 - mixed.mu) == pytest.approx(0.37 + 0.1 * 0.3), "imitation, and advantages of at most 0"
    assert run.method.demonstrations.count, "reference programs hold the policy"
    with pytest.raises(ValueError, match=r"ConservativeBellman\.tau: got 0"):
        ConservativeBellman(tau=0)
    with pytest.raises(ValueError, match=r"TokenQ\.tau: got 0"):
        TokenQ(tau=0)
    with pytest.raises(ValueError, match=r"TokenQ\.head: got 'other'"):
        TokenQ(head="other")(inputs()[0])
