"""Trees for tests: from a list of nodes, from the returns of chains, and at random."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, update_wrapper
from inspect import signature

import numpy as np
from hypothesis import settings, strategies

from bough.needs import (
    CANDIDATE_SCORES,
    GREEDY,
    REFERENCE,
    Annotation,
    Appraised,
    Channel,
    Estimate,
    Head,
    Need,
    names_of,
)
from bough.tree import (
    DTYPES,
    UNKNOWN_VALUES,
    Appraisal,
    Bools,
    Credited,
    Entry,
    Kind,
    Outcome,
    PathView,
    Rewarded,
    Source,
    Tree,
    TreeNode,
    Verdict,
    build,
    counted,
    path_view,
    spread_paths,
    token_advantages,
    token_node,
)

# A deadline says something about the machine, not about the property.
settings.register_profile("bough", deadline=None, max_examples=50)
settings.load_profile("bough")

PER_TOKEN = ("token", "logprob", "entropy", "allowed")
PROMPT, ACTION, OBSERVATION, EDIT = Kind.PROMPT, Kind.ACTION, Kind.OBSERVATION, Kind.EDIT


@dataclass(slots=True, kw_only=True)
class N(TreeNode):
    """A node whose sampled tokens have entropies."""

    entropy: float | Sequence[float] = 0.3


def chains(
    returns: Sequence[float],
    *,
    turns: Sequence[int] | int = 1,
    outcomes: Sequence[Outcome] | None = None,
    action_tokens: int = 2,
    task: str = "task",
) -> Tree:
    """One chain for each return, paid at its last action; chain i has `turns[i]` turns."""
    turns = [turns] * len(returns) if isinstance(turns, int) else turns
    outcomes = [Outcome.TERMINATED] * len(returns) if outcomes is None else outcomes
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1, 2, 3))]
    for paid, length, outcome in zip(returns, turns, outcomes, strict=True):
        parent = 0
        for turn in range(length):
            last = turn == length - 1
            action = tuple(4 + (len(nodes) + i) % 5 for i in range(action_tokens))
            nodes.append(N(parent=parent, kind=ACTION, tokens=action, env_reward=paid if last else 0.0))
            nodes.append(
                N(
                    parent=len(nodes) - 1,
                    kind=OBSERVATION,
                    tokens=(2, 3),
                    outcome=outcome if last else Outcome.OPEN,
                    success=paid > 0 if last else None,
                )
            )
            parent = len(nodes) - 1
    return build(*nodes, task=task)


def random_tree(
    rng: np.random.Generator,
    *,
    turns: int = 4,
    branches: int = 3,
    vocab: int = 13,
    edits: float = 0.3,
    unusual: float = 0.2,
    logprobs: tuple[float, float] = (-2.0, -0.1),
    task: str = "task",
    grammars: float = 0.0,
) -> Tree:
    """A tree with everything in it: branches at any turn, contexts rebuilt, other authors, every outcome.

    Args:
        rng: Where the shape and the numbers come from.
        turns: Most turns of a path.
        branches: Most actions from one place.
        vocab: Tokens are below this.
        edits: How often an observation is an `EDIT`.
        unusual: How often an action is not sampled, or a path is not counted.
        logprobs: Range of the behaviour log-probabilities; no two are equal.
        task: Id of the task.
        grammars: How often a sampled action was restricted by a grammar.
    """
    nodes: list[N] = []

    def tokens(least: int) -> tuple[int, ...]:
        return tuple(rng.integers(vocab, size=int(rng.integers(least, 4))).tolist())

    def add(**given: object) -> int:
        nodes.append(N(**given))  # type: ignore[arg-type]
        return len(nodes) - 1

    def outcome() -> Outcome:
        rare = (Outcome.OPEN, Outcome.REFUSED, Outcome.FAILED)
        return Outcome(rng.choice(rare if rng.random() < unusual else (Outcome.TERMINATED, Outcome.TRUNCATED)))

    def grow(place: int, left: int) -> None:
        for _ in range(int(rng.integers(1, branches + 1))):
            written = tokens(1)
            source = Source.SAMPLED if rng.random() >= unusual else Source(rng.choice((1, 2, 3)))
            ends_now = rng.random() < 0.1
            paid = float(rng.integers(-2, 3))
            action = add(
                parent=place,
                kind=ACTION,
                tokens=written,
                logprob=rng.uniform(*logprobs, size=len(written)).tolist(),
                allowed=[some_set(rng, token) for token in written]
                if grammars and source is Source.SAMPLED and rng.random() < grammars
                else None,
                source=source,
                env_reward=paid,
                outcome=outcome() if ends_now else Outcome.OPEN,
                valid=bool(rng.random() < 0.8),
                well_formed=bool(rng.random() < 0.8),
                info={"text": "act"},
            )
            if ends_now:
                continue
            ends = left == 1 or rng.random() < 0.15
            edit = not ends and rng.random() < edits
            read = add(
                parent=action,
                kind=EDIT if edit else OBSERVATION,
                tokens=tokens(1 if edit else 0),
                outcome=outcome() if ends else Outcome.OPEN,
                state_key=int(rng.integers(1, 5)),
                success=bool(rng.random() < 0.5) if ends else None,
            )
            if not ends:
                grow(read, left - 1)

    add(parent=-1, kind=PROMPT, tokens=tokens(1))
    grow(0, int(rng.integers(1, turns + 1)))
    return build(*nodes, task=task)


def some_set(rng: np.random.Generator, token: int) -> bytes:
    """A random set of the tokens below 1,024, with one that it must have; every third has that one alone."""
    bits = np.zeros(1024, dtype=np.bool_) if rng.random() < 1 / 3 else rng.random(1024) < 0.5
    bits[token] = True
    return np.packbits(bits, bitorder="little").tobytes()


def rewarded(tree: Tree) -> Rewarded:
    """The tree with what its environment paid."""
    return Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)})


def as_replayed(given: Rewarded) -> Rewarded:
    """The tree, marked as sampled in an earlier step."""
    return replace(given, tree=replace(given.tree, replayed=True))


def dressed(tree: Tree, rng: np.random.Generator, needs: Collection[Need] = ()) -> Rewarded:
    """A random version of everything that a credit rule may need: entropies, states, estimates and marks by name.

    Args:
        tree: Its entropies and, where they are unknown, some state keys are drawn anew.
        rng: Where the numbers come from.
        needs: What the rule needs.
    """
    acts, written = tree.kind == Kind.ACTION, (tree.kind == Kind.ACTION)[token_node(tree)]
    columns = tree.columns()
    columns["entropy"] = np.where(tree.sampled, rng.uniform(0.0, 2.0, len(tree.token)), np.nan).astype(np.float32)
    unknown = ~acts & (tree.state_key == 0) & (rng.random(tree.nodes) < 0.8)
    columns["state_key"] = np.where(unknown, rng.integers(1, 5, tree.nodes), tree.state_key)
    marks = names_of(needs, Annotation)
    lengths = np.diff(tree.span).tolist()
    info = tuple(
        {**given, **found(marks, length, rng)} if act else given
        for given, act, length in zip(tree.info, acts.tolist(), lengths, strict=True)
    )
    if CANDIDATE_SCORES in needs:
        columns["rating"] = np.where(acts, rng.normal(size=tree.nodes), np.nan)
    heads = names_of(needs, Head)
    estimates = {name: np.where(written, rng.normal(size=len(written)), np.nan) for name in heads}
    advice = names_of(needs, Estimate)
    # An adviser speaks of whole turns.
    estimates |= {name: rng.uniform(size=tree.nodes)[token_node(tree)] for name in advice}
    if REFERENCE in needs:
        estimates["reference"] = np.where(tree.sampled, -rng.uniform(0.1, 2.0, len(written)), np.nan)
    if GREEDY in needs:
        estimates["greedy"] = np.where(tree.sampled, -rng.uniform(0.1, 2.0, len(written)), np.nan)
    asked = [Entry(value=value, verdict=Verdict.OK, votes=1) for value in rng.uniform(-1, 1, tree.nodes).tolist()]
    appraisals = {
        name: Appraisal.of({node: asked[node] for node in np.flatnonzero(acts).tolist()}, tree.nodes)
        for name in names_of(needs, Appraised)
    }
    whole = Tree(task=tree.task, info=info, appraisals=appraisals, **columns)  # type: ignore[arg-type]
    paid = ["env", *names_of(needs, Channel)]
    return Rewarded(tree=whole, channels={name: np.asarray(tree.env_reward) for name in paid}, estimates=estimates)


def found(marks: Collection[str], tokens: int, rng: np.random.Generator) -> dict[str, object]:
    """What a parser may have found in an answer of so many tokens: for each mark whether or what, and where."""
    cut = sorted(rng.integers(0, tokens, 2, endpoint=True).tolist())
    spans = {"switch": [0, cut[0]], "subgoal": cut, "action": [cut[1], tokens], **dict.fromkeys(marks, cut)}
    texts = {mark: text for mark in marks if (text := rng.choice(("one", "two", "")))}
    return {**texts, "switch": bool(rng.random() < 0.5), "spans": spans}


def in_pieces(given: Rewarded, rng: np.random.Generator) -> Rewarded:
    """The tree with its actions cut at random into several nodes in a row, as `Growth.split` does; tokens stay."""
    tree, old, lengths = given.tree, list[int](), list[int]()
    for node, tokens in enumerate(np.diff(tree.span).tolist()):
        cuts = np.flatnonzero(rng.random(max(tokens - 1, 0)) < 0.5) + 1 if tree.kind[node] == ACTION else []
        parts = np.diff([0, *cuts, tokens]).tolist()
        old, lengths = [*old, *[node] * len(parts)], [*lengths, *parts]
    # What was known of an action stands at its last piece.
    last, first = np.diff(old, append=-1) != 0, np.diff(old, prepend=-1) > 0
    columns = {
        name: column if name in PER_TOKEN else column[old] for name, column in tree.columns().items() if name != "span"
    }
    above = np.append(np.flatnonzero(last), -1)[tree.parent[old]]
    columns["parent"] = np.where(first, above, np.arange(len(old)) - 1)
    columns["span"] = np.cumsum([0, *lengths])
    columns["outcome"] = np.where(last, columns["outcome"], Outcome.OPEN)
    columns["env_reward"] = np.where(last, columns["env_reward"], 0.0)
    columns |= {name: np.where(last, columns[name], unknown) for name, unknown in UNKNOWN_VALUES.items()}
    # An explorer marks the first piece.
    columns["chain"] = np.where(first, tree.chain[old], -1)
    columns = {name: column.astype(DTYPES[name]) for name, column in columns.items()}
    info = tuple(tree.info[node] if whole else {} for node, whole in zip(old, last.tolist(), strict=True))
    return Rewarded(
        tree=Tree(task=tree.task, info=info, appraisals=_at_last_pieces(tree, old, last), **columns),  # type: ignore[arg-type]
        channels={name: np.where(last, paid[old], 0.0) for name, paid in given.channels.items()},
        estimates=given.estimates,
    )


def _at_last_pieces(tree: Tree, old: Sequence[int], last: Bools) -> dict[str, Appraisal]:
    """The appraisals of a tree whose nodes are cut into pieces of the nodes `old`."""
    found = dict[str, Appraisal]()
    for name, each in tree.appraisals.items():
        kept = each.take(np.asarray(old))
        verdict = np.where(last, kept.verdict, Verdict.NONE)
        found[name] = replace(kept, value=np.where(last, kept.value, np.nan), verdict=verdict)
    return found


def subtree(given: Rewarded, kept: Bools) -> Rewarded:
    """The tree of the kept nodes, [N] bool; whatever is below a dropped node must be dropped too."""
    tree, words = given.tree, kept[token_node(given.tree)]
    number = np.cumsum(kept) - 1
    columns = {
        name: column[words] if name in PER_TOKEN else column[kept]
        for name, column in tree.columns().items()
        if name != "span"
    }
    columns["parent"] = np.where(columns["parent"] < 0, -1, number[columns["parent"]]).astype(np.int32)
    columns["span"] = np.concatenate([[0], np.cumsum(np.diff(tree.span)[kept])])
    info = tuple(each for each, stays in zip(tree.info, kept.tolist(), strict=True) if stays)
    return Rewarded(
        tree=Tree(
            task=tree.task,
            info=info,
            appraisals={name: each.take(np.flatnonzero(kept)) for name, each in tree.appraisals.items()},
            **columns,  # type: ignore[arg-type]
        ),
        channels={name: paid[kept] for name, paid in given.channels.items()},
        estimates={name: thought[words] for name, thought in given.estimates.items()},
    )


def credited(tree: Tree, rng: np.random.Generator) -> Credited:
    """The tree with a random advantage for each counted path, of either sign, some of them 0."""
    advantage = rng.normal(size=len(counted(tree)))
    advantage[rng.random(len(advantage)) < 0.2] = 0.0
    return spread_paths(rewarded(tree), advantage)


def seeds() -> strategies.SearchStrategy[np.random.Generator]:
    """Random generators: `@given(seeds())`, then `random_tree(rng)`, is how properties of trees are tested."""
    return strategies.integers(0, 2**32 - 1).map(np.random.default_rng)


@lru_cache(maxsize=1024)
def view_of(rewarded: Rewarded) -> PathView:
    """Its paths, computed once for all rules that give credit for the same object."""
    return path_view([rewarded])


def sides(credited: Credited) -> tuple[np.ndarray, np.ndarray]:
    """What tokens are to thank and to blame for."""
    return token_advantages([credited], view_of(credited.rewarded))


FEW = 6
"""Seeds of a property of all rules."""


def each_seed(test: Callable[..., None]) -> Callable[..., None]:
    """A property of all rules, for a few seeds: `test(seed=..., ...)`. What is made of a seed can be made once.

    It is a plain loop, because Hypothesis would take longer than such properties do.
    """
    stated = signature(test)
    assert "seed" in stated.parameters

    def for_seeds(**arguments: object) -> None:
        for seed in range(FEW):
            try:
                test(**arguments, seed=seed)
            except BaseException as error:
                error.add_note(f"seed={seed}")
                raise

    update_wrapper(for_seeds, test)
    kept = [each for name, each in stated.parameters.items() if name != "seed"]
    vars(for_seeds)["__signature__"] = stated.replace(parameters=kept)
    return for_seeds
