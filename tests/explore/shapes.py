"""What tests of rollout shapes share: an engine of plain letters, one that is a small model, and readings of trees."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.engine.toys import Toy
from tests.explore.stage import STOP, Letters, World, runner

from bough.context import Plain
from bough.engine import Completion, Engine, Local, Request, Sampling, Scripted
from bough.env import InProcessHost
from bough.rollout import Agent, Explorer, Limits, Rollout, RolloutRunner, TreeBuilder
from bough.tree import Kind, Outcome, Source, Task, Tree, context, leaves, path

FREE = Limits()


def text_of(request: Request) -> str:
    """What the policy has written of its present action."""
    return "".join(map(chr, request.prompt_tokens)).rpartition("}")[2]


def spelling(length: int, letters: str = "abcd") -> Callable[[Request], tuple[int, ...]]:
    """A script that writes actions of so many letters, drawn by the seed, in however many pieces."""

    def reply(request: Request) -> tuple[int, ...]:
        luck = random.Random(request.seed)
        return tuple(ord(luck.choice(letters)) for _ in range(length - len(text_of(request))))

    return reply


def place_of(engine: Engine, *, turns: int = 1, max_tokens: int = 40, limits: Limits = FREE) -> RolloutRunner:
    """A world in which every action adds its letters, and so many letters are the end."""
    return runner(engine, InProcessHost(env=World(length=turns)), max_tokens=max_tokens, limits=limits)


def grown(place: RolloutRunner, explorer: Explorer, *, seed: int = 0) -> Tree:
    """The tree that an explorer grows."""
    return ledgered(place, explorer, seed=seed)[0]


def ledgered(place: RolloutRunner, explorer: Explorer, *, seed: int = 0) -> tuple[Tree, Rollout]:
    """The same, and the player that it was grown with."""

    async def main() -> tuple[Tree, Rollout]:
        builder = TreeBuilder(Task(id="t"))
        rollout = Rollout(
            builder,
            place.agent,
            place.host,
            instructions="go",
            limits=place.limits,
            seed=seed,
            deadlines=place.deadlines,
        )
        await explorer(rollout)
        rollout.finish()
        return builder.done(), rollout

    return asyncio.run(main())


def ends(tree: Tree) -> list[Outcome]:
    """How the paths of a tree ended, those given up in the middle of an action left out."""
    outcomes = [Outcome(int(tree.outcome[leaf])) for leaf in leaves(tree)]
    return [outcome for outcome in outcomes if outcome is not Outcome.OPEN]


def written(tree: Tree, leaf: int) -> str:
    """All that was written on a path, turns apart by a dot."""
    out = ""
    for node in path(tree, int(leaf)).tolist():
        if tree.kind[node] == Kind.ACTION:
            out += "".join("." if token == STOP else chr(token) for token in tree.tokens_of(node).tolist())
    return out


def pieces(tree: Tree, leaf: int) -> list[int]:
    """How many tokens each piece on a path has."""
    return [len(tree.tokens_of(node)) for node in path(tree, int(leaf)).tolist() if tree.kind[node] == Kind.ACTION]


def _least(alternative: tuple[int, float]) -> float:
    return -alternative[1]


class Told(Scripted):
    """A script whose alternatives and entropies are told as well, by functions of the text before each token."""

    def __init__(
        self,
        *,
        script: Callable[[Request], Sequence[int]],
        likely: Callable[[str], dict[str, float]] | None = None,
        entropy: Callable[[str], float] | None = None,
        logprob: Callable[[str], float] | None = None,
    ) -> None:
        super().__init__(script=script)  # type: ignore[arg-type]
        self.likely, self.entropy, self.logprob = likely, entropy, logprob

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        read = "".join(map(chr, request.prompt_tokens))
        befores = [read + "".join(map(chr, completion.tokens[:end])) for end in range(len(completion.tokens))]
        if self.likely is not None and request.sampling.top_probs:
            alternatives = [sorted(((ord(c), p) for c, p in self.likely(each).items()), key=_least) for each in befores]
            said = tuple(tuple(each[: request.sampling.top_probs]) for each in alternatives)
            completion = replace(completion, top_probs=said)
        if self.entropy is not None:
            completion = replace(completion, entropies=tuple(map(self.entropy, befores)))
        if self.logprob is not None:
            completion = replace(completion, logprobs=tuple(map(self.logprob, befores)))
        return completion


def model_grove(*, turns: int = 3, max_tokens: int = 6) -> RolloutRunner:
    """A small model of letters whose places matter, in the same world: what it writes is rarely an action."""
    engine = Local(slots=16).build(Toy(vocab_tokens=128, context_tokens=512))
    agent = Agent(
        engine=engine,
        renderer=Letters(),
        context=place_of(Scripted(script={})).agent.context,
        parser=Plain(),
        sampling=Sampling(max_tokens=max_tokens),
    )
    return replace(place_of(Scripted(script={}), turns=turns * max_tokens), agent=agent)


async def _scores(engine: Engine, tree: Tree) -> list[tuple[float, float]]:
    said: list[tuple[float, float]] = []
    for node in range(tree.nodes):
        if tree.kind[node] == Kind.ACTION and tree.source[node] == Source.SAMPLED and len(tree.tokens_of(node)):
            read = tuple(context(tree, node).tolist())
            again = await engine.score(read, tuple(tree.tokens_of(node).tolist()))
            kept = tree.logprob[tree.span[node] : tree.span[node + 1]].tolist()
            said += list(zip(again, kept, strict=True))
    return said


def scores(place: RolloutRunner, tree: Tree) -> list[tuple[float, float]]:
    """For each sampled token, what the engine says of it after the whole text before it, and what the tree says."""
    return asyncio.run(_scores(place.agent.engine, tree))
