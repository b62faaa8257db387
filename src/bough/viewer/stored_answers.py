"""The answers of the viewer's server about runs, as data for pages that no server answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import quote

from bough.store import StoreError
from bough.tree import groups
from bough.usercode.json_file import json_text
from bough.view import choose_groups
from bough.viewer.run_answers import RUN_ANSWERS
from bough.viewer.runs import Runs
from bough.viewer.stored_trees import TreeName, step_files
from bough.viewer.tree_answers import Answer, TreeAnswers

Answers: TypeAlias = dict[str, Answer]
"""Answers by address."""

MOST_NUMBERS = 60_000
"""Numbers of the metrics in the pages of a run; where there are more, steps are left out evenly."""

MOST_RESULTS = 100_000
"""Held-out results, task by task, in the pages of a run; where there are more, the first and the last remain."""

SMALL_RUN = 200
"""Trees up to which all trees of a run are exported by default."""

FEW_TREES = 4
"""Trees of a step that are exported of a larger run by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which trees of a run are exported.

    Attributes:
        trees: Most trees of a step; None for all.
        steps: Most steps with trees, the last ones; None for all.
        most_bytes: Trees are left out from where the data of those before have as many bytes; None for no bound.
        pictures: Whether turns have the environment's pictures of states.
        whole: How a reader sees the rest.
    """

    trees: int | None = None
    steps: int | None = None
    most_bytes: int | None = None
    pictures: bool = False
    whole: str = "bough view shows all"


def small_or_few(directory: Path, answers: TreeAnswers, asked: int | None) -> Selection:
    """The trees of a run that `bough view --export` writes: as many a step as asked, by default all of a small run."""
    if asked is None:
        count, most = 0, None
        for step, _ in step_files(directory):
            count += answers.count(directory, step)
            if count > SMALL_RUN:
                most = FEW_TREES
                break
    else:
        most = asked
    return Selection(trees=most, pictures=True, whole="bough view, or a larger --trees, shows all")


def address(name: str) -> str:
    """The address of the answers about a run, as the front end writes it."""
    return f"/api/run/{quote(name, safe=chr(39) + '!~*()')}"


def about_run(runs: Runs, name: str) -> Answers:
    """The answers about a run as a whole, with a bounded number of numbers.

    Raises:
        StoreError: when a file is damaged.
    """
    found = {f"{address(name)}{end}": answer(runs, name) for end, answer in RUN_ANSWERS.items()}
    metrics, held = found[f"{address(name)}/metrics"], found[f"{address(name)}/evaluations"]
    metrics |= _thinned(cast("list[dict[str, Any]]", metrics["rows"]))
    found[f"{address(name)}/evaluations"] = _first_and_last(held)
    return found


def about_trees(directory: Path, name: str, answers: TreeAnswers, selection: Selection) -> Iterator[Answers]:
    """The answers about the chosen trees of a run, those of a tree together; at last those of their steps."""
    base, notes = address(name), list[str]()
    steps: Answers = {}
    written = 0
    files = [*step_files(directory)]
    if selection.steps is not None and len(files) > selection.steps:
        notes.append(f"The trees are those of the last of {len(files)} steps with trees; {selection.whole}.")
        files = files[-selection.steps :]
    for step, _ in files:
        try:
            chosen, total = _chosen(directory, step, answers, selection.trees)
            kept: list[TreeName] = []
            for tree in chosen:
                if selection.most_bytes is not None and written > selection.most_bytes:
                    break
                found = {f"{base}{end}": answer for end, answer in _tree(directory, tree, answers, selection).items()}
                written += len(json_text(found))
                kept.append(tree)
                yield _linked(found, f"{base}/tree/{tree}", chosen)
        except StoreError as error:
            notes.append(f"step {step}: {error}")
            continue
        if len(kept) < total:
            notes.append(f"{len(kept)} of {total} trees of step {step} are in these pages; {selection.whole}.")
        steps[f"{base}/step/{step}"] = _only(answers.step(directory, step), {*map(str, kept)})
    known = {int(path.rpartition("/")[2]): None for path in steps}
    about = {**answers.trees(directory), "steps": [*known], "rules": [], "notes": _few(notes)}
    yield {f"{base}/trees": about, **steps}


def _chosen(directory: Path, step: int, answers: TreeAnswers, most: int | None) -> tuple[list[TreeName], int]:
    """The trees of a step that are exported, and the number of all.

    Those of the most divided, the best and the worst group come first.
    """
    trees = answers.credited(directory, step)
    order = [*range(len(trees))]
    if most is not None and most < len(trees) and (found := choose_groups(groups(trees))) is not None:
        first = [each for group in (found.divided, found.best, found.worst) for each in group]
        rank = {id(each): at for at, each in reversed([*enumerate(first)])}
        order.sort(key=lambda at: rank.get(id(trees[at]), len(first)))
    return [TreeName(step=step, index=at) for at in sorted(order[:most])], len(trees)


def _tree(directory: Path, name: TreeName, answers: TreeAnswers, selection: Selection) -> Answers:
    base = f"/tree/{name}"
    return {
        base: answers.tree(directory, name),
        f"{base}/branches": {"playable": False, "checkpoints": [], "branches": []},
        f"{base}/nodes": answers.turns(directory, name, pictures=selection.pictures),
    }


def _linked(found: Answers, path: str, chosen: Sequence[TreeName]) -> Answers:
    """The answers of a tree, whose links lead to chosen trees only."""
    tree, names = found[path], [*map(str, chosen)]
    at = names.index(str(tree["name"]))
    found[path] = {
        **tree,
        "group": [each for each in cast("list[str]", tree["group"]) if each in names],
        "previous": names[at - 1] if at else None,
        "next": names[at + 1] if at + 1 < len(names) else None,
    }
    return found


def _only(step: Answer, names: set[str]) -> Answer:
    """The answer about a step with some of its trees."""
    paths = cast("Mapping[str, list[object]]", step["paths"])
    rows = [at for at, tree in enumerate(paths.get("tree", [])) if tree in names]
    trees = [each for each in cast("list[Answer]", step["trees"]) if each["name"] in names]
    return {**step, "trees": trees, "paths": {key: [column[at] for at in rows] for key, column in paths.items()}}


def _thinned(rows: list[dict[str, Any]]) -> Answer:
    """Metrics with a bounded number of numbers; held-out results remain."""
    numbers = sum(map(len, rows))
    every = -(-numbers // MOST_NUMBERS)
    if every <= 1:
        return {"rows": rows}
    kept = [row for at, row in enumerate(rows) if at % every == 0 or "heldout/success" in row or at + 1 == len(rows)]
    return {"rows": kept, "note": f"One of {every} steps is shown; metrics.jsonl has all."}


def _first_and_last(held: Answer) -> Answer:
    """Held-out results, with those between the first and the last left out where there are too many."""
    steps, tasks = cast("list[int]", held["steps"]), cast("Mapping[str, list[object]]", held["tasks"])
    if len(steps) * len(tasks) <= MOST_RESULTS or len(steps) <= 2:
        return held
    ends = {name: [row[0], row[-1]] for name, row in tasks.items()}
    return {**held, "steps": [steps[0], steps[-1]], "tasks": ends}


def _few(notes: Sequence[str], most: int = 6) -> list[str]:
    more = [f"and {len(notes) - most} more steps."] if len(notes) > most else []
    return [*notes[:most], *more]
