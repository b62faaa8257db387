"""Invariant 2: what branches give to a token they share, packed, is the ordinary loss on every path by itself."""

import dataclasses

import numpy as np
import pytest
import torch
from tests.invariants.tiny import apart, gradient, loss, read, tiny
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, random_tree, rewarded
from torch import Tensor

from bough.batch import pack
from bough.objective import Entropy, Kl, LossInputs, Normalizer, PpoClip, Sum
from bough.policy.model import causal
from bough.tree import Outcome, Tree, counted, path, spread_paths, text_start, token_node, trained

DONE = Outcome.TERMINATED
CLIPPED = PpoClip(low=0.2, high=0.3, dual=1.6)
WHOLE = Sum(terms=(CLIPPED, Kl(coefficient=0.05), Entropy(coefficient=0.02)))
NEAR = (-3.3, -1.8)
"""Behaviour log-probabilities about as likely as the tiny model finds its tokens: every bound is active somewhere."""


def branches(rng: np.random.Generator, task: str) -> Tree:
    """Random, with everything in it, three turns deep and at least three counted paths."""
    while True:
        tree = random_tree(rng, turns=3, logprobs=NEAR, task=task)
        if len(counted(tree)) >= 3 and len(tree.token) < 120:
            return tree


def even(rng: np.random.Generator, task: str) -> Tree:
    """Two turns of two branches, with actions of two tokens: every path has four trained tokens."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1, 2))]
    for _ in range(2):
        draw = [rng.integers(13, size=2).tolist() for _ in range(4)]
        logprob = [rng.uniform(*NEAR, size=2).tolist() for _ in range(3)]
        nodes.append(N(parent=0, kind=ACTION, tokens=draw[0], logprob=logprob[0]))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=draw[1]))
        fork = len(nodes) - 1
        nodes.append(N(parent=fork, kind=ACTION, tokens=draw[2], logprob=logprob[1], outcome=DONE))
        nodes.append(N(parent=fork, kind=ACTION, tokens=draw[3], logprob=logprob[2], outcome=DONE))
    return build(*nodes, task=task)


def read_path(tree: Tree, leaf: int) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probability, entropy and behaviour of the trained tokens of one path, each text read by itself."""
    walk, start, learn = path(tree, leaf), text_start(tree), trained(tree)
    columns: list[tuple[Tensor, Tensor, Tensor]] = []
    for first in dict.fromkeys(start[walk].tolist()):
        at = np.concatenate([np.arange(tree.span[i], tree.span[i + 1]) for i in walk if start[i] == first])
        tokens = torch.as_tensor(tree.token[at]).long()
        hidden = tiny().hidden(tokens, torch.arange(len(at)), causal)
        logprobs = tiny().logits(hidden).log_softmax(-1)
        here = np.flatnonzero(learn[at])
        own = logprobs[here - 1].gather(1, tokens[here, None])[:, 0]
        entropy = -(logprobs.exp() * logprobs).sum(-1)[here - 1]
        columns.append((own, entropy, torch.as_tensor(tree.logprob[at][here])))
    own, entropy, rollout_logprob = (torch.cat(parts) for parts in zip(*columns, strict=True))
    return own, entropy, rollout_logprob


def path_loss(trees: list[Tree], advantages: list[np.ndarray], by: str, horizon: int | None) -> Tensor:
    """The textbook loss of `WHOLE`, path by path; every path knows only its own advantage."""
    each: list[Tensor] = []
    for tree, advantage in zip(trees, advantages, strict=True):
        for leaf, a in zip(counted(tree).tolist(), advantage.tolist(), strict=True):
            own, entropy, rollout_logprob = read_path(tree, leaf)
            if not len(own):
                continue
            ratio = (own - rollout_logprob).exp()
            policy = torch.maximum(-a * ratio, -a * ratio.clamp(1 - 0.2, 1 + 0.3))
            if a < 0:
                policy = policy.clamp(max=-a * 1.6)
            apart_by = own + 2.5
            each.append(policy + 0.05 * ((-apart_by).exp() - 1 + apart_by) - 0.02 * entropy)
    tokens = sum(len(part) for part in each)
    match by:
        case "path_tokens":
            return torch.cat(each).sum() / tokens
        case "paths":
            return torch.stack([part.mean() for part in each]).mean()
        case _:
            return torch.cat(each).sum() / (len(each) * horizon)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "share",
    [Normalizer(by="path_tokens"), Normalizer(by="constant", horizon_tokens=20), Normalizer(by="paths")],
    ids=lambda s: s.by,
)
def test_packed_is_path_by_path(share: Normalizer, seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = [(even if share.by == "paths" else branches)(rng, str(i)) for i in range(2)]
    advantages = [rng.normal(size=len(counted(tree))) for tree in trees]
    batch = pack([spread_paths(rewarded(tree), a) for tree, a in zip(trees, advantages, strict=True)])
    packed = loss(WHOLE, batch, share(batch.paths, batch.inverse_length, batch.equal_length))
    apiece = path_loss(trees, advantages, share.by, share.horizon_tokens)
    assert packed.item() == pytest.approx(apiece.item(), rel=1e-6)
    assert apart(gradient(packed), gradient(apiece)) < 1e-6


def test_one_summed_advantage_is_another_loss() -> None:
    rng = np.random.default_rng(0)
    tree = even(rng, "task")
    advantage = np.asarray([2.0, -1.5, 1.0, -1.0])
    batch = pack([spread_paths(rewarded(tree), advantage)])
    net = batch.positive + batch.negative
    summed = dataclasses.replace(batch, positive=net.clamp(min=0), negative=net.clamp(max=0))
    share = Normalizer()(batch.paths, batch.inverse_length, batch.equal_length)
    apiece = gradient(path_loss([tree], [advantage], "path_tokens", None))
    assert apart(gradient(loss(WHOLE, batch, share)), apiece) < 1e-6
    assert apart(gradient(loss(WHOLE, summed, share)), apiece) > 0.05


def test_every_bound_is_active_somewhere() -> None:
    rng = np.random.default_rng(1)
    trees = [branches(rng, str(i)) for i in range(4)]
    batch = pack([spread_paths(rewarded(tree), rng.normal(size=len(counted(tree)))) for tree in trees])
    share = Normalizer(by="unique_tokens")(batch.paths, batch.inverse_length, batch.equal_length)
    logprob, entropy = read(batch)
    columns = LossInputs(
        logprob=logprob,
        entropy=entropy,
        rollout_logprob=batch.rollout_logprob,
        reference=None,
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=share,
    )
    metrics = CLIPPED(columns).metrics
    for name in ("clip_high", "clip_low", "clip_dual"):
        assert 0.02 < metrics[name].item() < 0.9
    assert ((batch.positive > 0) & (batch.negative < 0)).any()


def test_paths_of_different_lengths_are_refused_where_they_share_tokens() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, outcome=DONE),
        N(parent=2, kind=ACTION, tokens=(1, 2), outcome=DONE),
    )
    batch = pack([spread_paths(rewarded(tree), np.asarray([1.0, -1.0]))])
    with pytest.raises(ValueError, match=r"Normalizer\(by='paths'\): got 1 trained tokens shared"):
        Normalizer(by="paths")(batch.paths, batch.inverse_length, batch.equal_length)


def test_advantages_are_keyed_by_node() -> None:
    """Each node's tokens have one credit, wherever the node lies."""
    rng = np.random.default_rng(2)
    for i in range(20):
        tree = random_tree(rng, task=str(i))
        spread = spread_paths(rewarded(tree), rng.normal(size=len(counted(tree))))
        node = token_node(tree)
        for column in (spread.positive, spread.negative):
            assert all(len(set(column[node == which].tolist())) <= 1 for which in range(tree.nodes))
