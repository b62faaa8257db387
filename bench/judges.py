"""What judges know: accuracy against the environment's truth, cost, and answers without a verdict.

    python bench/judges.py [--tasks 30] [--rounds 30] [--write]

The paths are those of an oracle that makes mistakes, four for each task, on worlds whose truth is known: the result of
a path is the environment's success, and a step is right if the oracle's plan is shorter after it.

The first table has a scripted judge, each of whose verdicts is true with probability .8, independent of the others; 5 %
of its answers have no verdict. The second has a local model as judge, `Verifications` of linear programs: a small
transformer that has learned the form of an answer alone, and the same model after the hook `TrainedJudge` trained it on
batches of such paths, of other problems. `--write` puts the tables into docs/judges.md. Three minutes on one core.
"""

import argparse
import asyncio
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bough.appraise import (
    Appraiser,
    Checklist,
    PathCritique,
    RoundRobin,
    RubricJudge,
    Tournament,
    Verifications,
    appraise_trees,
    step_critic,
)
from bough.env.env import Env
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.tree import Ternary, Tree, Verdict, begins_turn, counted
from judged_paths import WORLDS, NoisyJudge, grow, new_items, ordered_pairs, right_steps
from local_judge import LocalJudge
from machine import machine
from page import write

ACCURACY, UNPARSED = 0.8, 0.05
APPRAISERS: Mapping[str, Appraiser] = {
    "`RubricJudge()`": RubricJudge(),
    "`RubricJudge(n=5)`": RubricJudge(n=5),
    "`step_critic()`": step_critic(),
    "`Verifications(n=1)`": Verifications(n=1),
    "`Verifications(n=9)`": Verifications(n=9),
    "`PathCritique(n=4)`": PathCritique(n=4),
    "`PathCritique(n=9)`": PathCritique(n=9),
    "`Checklist()`": Checklist(),
    "`Checklist(n=5)`": Checklist(n=5),
    "`Tournament()`": Tournament(),
    "`Tournament(n=5)`": Tournament(n=5),
    "`RoundRobin()`": RoundRobin(),
}
HEAD = (
    "| Judge | Result accuracy | Pair accuracy | Step accuracy | Unparsed | Questions a turn | Tokens a turn |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a judge's columns say about trees.

    Attributes:
        result: Accuracy: the share of paths whose value is above 1/2 if and only if they succeed; nan without values.
        pair: Pair accuracy: the share of pairs of a success and a failure of a task in which the success has the larger
            value, a tie as half.
        step: Accuracy: the share of steps whose value agrees with the truth.
        unparsed: Share of entries without a value.
        questions: Questions for each turn.
        tokens: Tokens of answers for each turn.
    """

    result: float
    pair: float
    step: float
    unparsed: float
    questions: float
    tokens: float

    def line(self, name: str) -> str:
        """The row of a table."""
        shares = ["" if np.isnan(each) else f"{each:.2f}" for each in (self.result, self.pair, self.step)]
        return f"| {name} | {' | '.join(shares)} | {self.unparsed:.2f} | {self.questions:.2f} | {self.tokens:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    policy = small_policy()
    lines = [HEAD]
    for world, env in WORLDS.items():
        lines += [row.line(f"{name}, {world}") for name, row in scripted(world, env, policy, arguments.tasks).items()]
    local = [HEAD, *(row.line(name) for name, row in trained(policy, arguments.tasks, arguments.rounds).items())]
    text = "\n\n".join(["\n".join(lines), "\n".join(local), machine(1)])
    print(text)
    if arguments.write:
        write("judges.md", "judges", text)


def small_policy() -> Policy:
    """A small model whose vocabulary is that of linear programs and verdicts."""
    env = WORLDS["linear_programs"]
    texts = [str(env.start(task).observation) for task in env.tasks("train", 50, 0)]
    texts += ["[1, 0, 1, 1] yes", "[0, 1, 1, 1] no", "max 3 2", "row 1 2 4", "solve", "ok", "maximum 10/3"]
    return Tiny(layers=2, width=64, heads=4, vocab_tokens=400, context_tokens=512).build(texts)


def scripted(world: str, env: Env, policy: Policy, tasks: int) -> dict[str, Row]:
    """The rows of a scripted judge, by appraiser."""
    trees = grow(env, policy, env.tasks("test", tasks, 0))
    truth = [right_steps(env, tree) for tree in trees]
    judge = NoisyJudge(accuracy=ACCURACY, unparsed=UNPARSED, policy=policy)
    for tree, steps in zip(trees, truth, strict=True):
        judge.learn(tree, steps)

    async def ask(piece: Appraiser) -> list[Tree]:
        return [tree for each in trees for tree in await appraise_trees([each], [piece], judge)]

    pieces = {name: piece for name, piece in APPRAISERS.items() if world == "linear_programs" or "Check" not in name}
    return {name: row_of(asyncio.run(ask(piece)), truth, piece) for name, piece in pieces.items()}


def trained(policy: Policy, tasks: int, rounds: int, *, form: int = 60, batch: int = 8) -> dict[str, Row]:
    """The rows of a local judge: frozen, and after training on the paths of `rounds` batches."""
    env = WORLDS["linear_programs"]
    asks = Verifications(role="judge", n=1, prompt="{turns}\n{observation}", system="", max_tokens=24)
    drawn = env.tasks("train", rounds * batch, 0)
    batches = [grow(env, policy, drawn[at : at + batch]) for at in range(0, len(drawn), batch)]
    heldout = grow(env, policy, env.tasks("test", tasks, 0))
    truth = [right_steps(env, tree) for tree in heldout]
    judge = LocalJudge(policy, asks)
    for number in range(form):
        judge.learn_form(batches[number % len(batches)], 1)
    rows: dict[str, Row] = {}
    for name in ("frozen", "trained"):
        for votes in (1, 5):
            judge.asks = replace(asks, n=votes)
            rows[f"`Verifications(n={votes})`, {name}"] = row_of(judge.verify(heldout), truth, judge.asks)
        judge.asks = replace(asks, n=2)
        for each in batches if name == "frozen" else []:
            judge.train(each)
    return rows


def row_of(trees: Sequence[Tree], truth: Sequence[Mapping[int, bool]], piece: Appraiser) -> Row:
    """The row of appraised trees, by the truth of their steps; for a checklist, of its items."""
    if isinstance(piece, Checklist):
        truth = [new_items(tree) for tree in trees]
    ranks = isinstance(piece, Tournament | RoundRobin)
    results: list[bool] = []
    steps: list[bool] = []
    pairs: list[tuple[float, int]] = []
    unparsed: list[bool] = []
    turns = sum(int(begins_turn(tree).sum()) for tree in trees)
    for tree, right in zip(trees, truth, strict=True):
        for column in tree.appraisals.values():
            asked = column.verdict != Verdict.NONE
            unparsed += (column.verdict[asked] != Verdict.OK).tolist()
            ends = [leaf for leaf in counted(tree).tolist() if column.verdict[leaf] == Verdict.OK]
            won = [bool(tree.success[leaf] == Ternary.YES) for leaf in ends]
            values = column.value[ends].tolist()
            results += [] if ranks else [(value > 0.5) == good for value, good in zip(values, won, strict=True)]
            pairs.append(ordered_pairs(values, won))
            known = [node for node in right if column.verdict[node] == Verdict.OK]
            steps += [says(piece, column.value[node]) == right[node] for node in known]
    count = sum(number for _, number in pairs)
    cost = [column for tree in trees for column in tree.appraisals.values()]
    return Row(
        result=float(np.mean(results)) if results else np.nan,
        pair=sum(right for right, _ in pairs) / count if count else np.nan,
        step=float(np.mean(steps)) if steps else np.nan,
        unparsed=float(np.mean(unparsed)),
        questions=sum(int(each.questions.sum()) for each in cost) / turns,
        tokens=sum(int(each.tokens.sum()) for each in cost) / turns,
    )


def says(piece: Appraiser, value: float) -> bool:
    """Whether the value of a step says that it is right."""
    return value < 0.5 if isinstance(piece, PathCritique) else value > 0


if __name__ == "__main__":
    main()
