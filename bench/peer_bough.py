"""A side of bench/peers.py: Bough, with the pieces that a run is made of."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bough.batch import pack, skipped_tokens
from bough.credit import Grpo
from bough.engine import Engine, Local, Request, Sampling
from bough.learner import Learner, Optimizer
from bough.objective import Normalizer, PpoClip
from bough.policy import Pretrained
from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.tree import Credited, Kind, Outcome, Rewarded, Source, Task, Tree, leaves, path
from peer_line import Line, arguments
from peer_shapes import BETAS, CLIP, CLIP_NORM, EPSILON, LEARNING_RATE, SHAPES, SIZES, Shape, reward

OPTIMIZER = Optimizer(learning_rate=LEARNING_RATE, betas=BETAS, clip_norm=CLIP_NORM)
LOSS, SHARE = PpoClip(low=CLIP, high=CLIP), Normalizer(by="path_tokens")


async def grow(engine: Engine, shape: Shape, seed: int) -> list[Tree]:
    """The trees of a round; every branch goes on as soon as its action is written."""
    texts = shape.texts(seed)
    rounds = seed * sum(shape.nodes)

    async def branch(builder: TreeBuilder, parent: int, text: tuple[int, ...], turn: int, node: int) -> None:
        completion = await engine.generate(
            Request(
                prompt_tokens=text,
                sampling=Sampling(max_tokens=shape.action_tokens),
                stop_tokens=(),
                seed=rounds + sum(shape.nodes[:turn]) + node,
            )
        )
        goes_on = texts.goes_on[turn][node]
        number = builder.add(
            NodeDraft(
                parent=parent,
                kind=Kind.ACTION,
                branch=node,
                tokens=completion.tokens,
                logprobs=completion.logprobs,
                entropies=completion.entropies,
                outcome=Outcome.OPEN if goes_on else Outcome.TERMINATED,
                source=Source.SAMPLED,
                policy_version=completion.policy_version,
            )
        )
        if goes_on:
            observation = texts.observations[turn][node].tolist()
            number = builder.add(NodeDraft(parent=number, kind=Kind.OBSERVATION, tokens=observation))
            await fork(builder, number, (*text, *completion.tokens, *observation), turn + 1, node)

    async def fork(builder: TreeBuilder, parent: int, text: tuple[int, ...], turn: int, node: int) -> None:
        first = node * shape.forks[turn]
        await asyncio.gather(*(branch(builder, parent, text, turn, first + each) for each in range(shape.forks[turn])))

    async def tree(number: int, prompt: list[int]) -> Tree:
        builder = TreeBuilder(Task(id=str(number)))
        root = builder.add(NodeDraft(parent=-1, kind=Kind.PROMPT, tokens=prompt))
        await fork(builder, root, tuple(prompt), 0, number)
        return builder.done()

    return await asyncio.gather(*(tree(number, prompt) for number, prompt in enumerate(texts.prompts.tolist())))


def completion(tree: Tree, leaf: int) -> tuple[list[int], list[int]]:
    """What follows the prompt on a path, and which of it (1 or 0) the policy wrote."""
    nodes = path(tree, leaf)[1:].tolist()
    tokens = np.concatenate([tree.tokens_of(node) for node in nodes])
    own = np.concatenate([np.full(len(tree.tokens_of(node)), tree.kind[node] == Kind.ACTION) for node in nodes])
    return tokens.tolist(), own.astype(int).tolist()


def credit(trees: Sequence[Tree]) -> list[Credited]:
    """Group-relative advantages; each path is paid at its end."""
    rewarded: list[Rewarded] = []
    for tree in trees:
        paid = np.zeros(tree.nodes)
        for leaf in leaves(tree).tolist():
            paid[leaf] = reward(completion(tree, leaf)[0])
        rewarded.append(Rewarded(tree=tree, channels={"reward": paid}))
    return Grpo(epsilon=EPSILON)(rewarded)


def limit_s(shape: Shape) -> float:
    """How long the operations of an update take at the rate of matrix products of the same shapes, and nothing else."""
    tokens = min(shape.tokens(), OPTIMIZER.micro_tokens)
    matrices = [
        product
        for rows, columns in SIZES.products
        for product in (
            ((tokens, rows), (rows, columns)),
            ((tokens, columns), (columns, rows)),
            ((columns, tokens), (tokens, rows)),
        )
    ]
    path, width = sum(each for _, _, each in shape.stretches()), SIZES.head_width
    heads = shape.prompts * SIZES.heads
    scores, mixed = ((path, width), (width, path)), ((path, path), (path, width))
    # Forward scores and a mean of values; backward those scores again and four more.
    attention = [((heads, *left), (heads, *right)) for left, right in (*(scores,) * 3, *(mixed,) * 4)]
    of_matrices, of_attention = shape.update_flops()
    # What follows attention in the last layer is left out for tokens that predict nothing, unless they are few.
    silent, after = skipped_tokens(shape.tokens(), shape.trained()), SIZES.products[3:]
    of_matrices -= 6 * silent * sum(rows * columns for rows, columns in after)
    return of_matrices / rate(matrices) + of_attention / rate(attention)


def rate(products: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> float:
    """Operations per second of some matrix products, given the shapes of what is multiplied."""
    spent = done = 0.0
    for left, right in ((torch.randn(left), torch.randn(right)) for left, right in products):
        out = left @ right
        begin = time.perf_counter()
        torch.matmul(left, right, out=out)
        spent += time.perf_counter() - begin
        done += 2 * left.numel() * right.shape[-1]
    return done / spent


class Run:
    """One optimizer step after the other; with an engine process and a reader of batches for each thread."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        self.policy = Pretrained(path=str(folder), device="cpu").build()
        local = Local(slots=max(shape.nodes), processes=torch.get_num_threads())
        self.engine = local.build(self.policy)
        optimizer = replace(OPTIMIZER, cpu_workers=torch.get_num_threads())
        self.learner = Learner(self.policy, optimizer, total_updates=1, temperature=1.0)
        self._shape, self._loop = shape, asyncio.new_event_loop()

    def trees(self, seed: int) -> list[Tree]:
        """Only grow."""
        return self._loop.run_until_complete(grow(self.engine, self._shape, seed))

    def generate(self, seed: int) -> dict[str, float]:
        """Seconds of growth alone. No round begins like another, so that nothing read before is of use."""
        begin = time.perf_counter()
        trees = self.trees(seed)
        return {"seconds": time.perf_counter() - begin, "tokens": sum(int(tree.sampled.sum()) for tree in trees)}

    def step(self, seed: int) -> dict[str, float]:
        """Seconds of a step, of its parts, and of the operations of its update at the rate of matrix products.

        That rate is measured before and after: a machine that others use, too, has none that lasts.
        """
        before = limit_s(self._shape)
        begin = time.perf_counter()
        trees = self.trees(seed)
        grown = time.perf_counter()
        batch = pack(credit(trees)).to(self.policy.device)
        packed = time.perf_counter()
        self.learner.learn(batch, LOSS, SHARE, seed=seed)
        learned = time.perf_counter()
        self.engine.load_weights(self.policy.weights(), self.learner.updates)
        end = time.perf_counter()
        return {
            "seconds": end - begin,
            "generation": grown - begin,
            "update": learned - packed,
            "limit": (before + limit_s(self._shape)) / 2,
        }


def replay(folder: Path, shape: Shape) -> tuple[list[dict[str, list[int]]], float, dict[str, Tensor]]:
    """The paths of a round, and the loss and its gradient on them, for another library to find the same."""
    run = Run(folder, shape)
    trees = run.trees(seed=0)
    batch = pack(credit(trees)).to(run.policy.device)
    loss = run.learner.backward(batch, LOSS, SHARE)["loss/total"]
    paths: list[dict[str, list[int]]] = []
    for tree in trees:
        for leaf in leaves(tree).tolist():
            tokens, own = completion(tree, leaf)
            paths.append({"prompt": tree.tokens_of(0).tolist(), "completion": tokens, "own": own})
    slopes = {name: weight.grad for name, weight in run.policy.parameters().items() if weight.grad is not None}
    return paths, loss, slopes


def main() -> None:
    given, line = arguments(), Line()
    torch.set_num_threads(given.threads)
    shape = SHAPES[given.shape]
    run = Run(given.folder, shape)
    line.serve(run.step if shape.trains else run.generate)
    asyncio.run(run.engine.close())


if __name__ == "__main__":
    main()
