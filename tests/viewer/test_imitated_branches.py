"""Rows saved from branches are imitated: failed paths go on to success by hand, and a warm-up on them learns it."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import bough
from bough.cli.branch_chat import chat_at
from bough.cli.branch_player import BranchPlayer
from bough.env import Env, State
from bough.store import RunDirectory, read_trees
from bough.train.start import load_run
from bough.tree import Credited, Kind, Source, Ternary, Tree, ends_turn, leaves, path, text_in
from bough.viewer.player import Moves

SAMPLES = 16


def lines(given: Sequence[str]) -> Callable[[str], str]:
    rest = iter(given)

    def read(_: str) -> str:
        for line in rest:
            return line
        raise EOFError

    return read


def state_at(env: Env, tree: Tree, node: int) -> State:
    state = env.start(tree.task)
    walk = path(tree, node)
    for each in walk[ends_turn(tree)[walk]].tolist():
        state = env.step(state, text_in(tree.info[each]) or "").state
    return state


def failed_paths(env: Env, trees: Sequence[Credited]) -> list[tuple[int, int, int, list[str]]]:
    """One a task: the number of a tree, the end of its failed path, an early turn on it, and the plan from there."""
    found: dict[str, tuple[int, int, int, list[str]]] = {}
    for number, each in enumerate(trees):
        tree = each.tree
        for leaf in leaves(tree).tolist():
            walk = path(tree, leaf)
            acts = walk[tree.kind[walk] == Kind.ACTION]
            if tree.success[leaf] == Ternary.YES or len(acts) < 3:
                continue
            early = int(tree.parent[acts[1]])
            plan = env.plan(state_at(env, tree, early))  # type: ignore[attr-defined]
            if plan and text_in(tree.info[acts[1]]) != plan[0]:
                found.setdefault(tree.task.id, (number, leaf, early, [*plan]))
    return [*found.values()]


def digest(folder: Path) -> str:
    files = sorted(each for each in folder.rglob("*") if each.is_file() and each.name != "run.lock")
    return sha256(b"".join(str(each).encode() + each.read_bytes() for each in files)).hexdigest()


def last_branch(folder: Path) -> Tree:
    return read_trees(max(folder.glob("*.safetensors")))[0].tree  # type: ignore[union-attr]


def written(player: BranchPlayer, directory: Path, tree: Tree) -> float:
    """The log-probability of the actions that a person wrote, under the newest policy of a run."""
    acts = [
        node for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION and tree.source[node] == Source.TEACHER
    ]
    return sum(sum(player.score(directory, tree, node, None).logprobs) for node in acts)


def solved(player: BranchPlayer, directory: Path, tree: Tree, node: int) -> float:
    """The share of continuations from a node that solve the task."""
    grown = player.play(directory, tree, node, Moves(samples=SAMPLES, seed=1)).rewarded.tree
    return float((grown.success[leaves(grown)] == Ternary.YES).mean())


def test_failed_paths_that_were_continued_are_learned(run: Path, tmp_path: Path) -> None:
    """One path is saved as a demonstration, another as preferred to the failed one; both become probable."""
    before = digest(run)
    step = max(int(file.stem.removeprefix("step_")) for file in (run / "trees").glob("*.safetensors"))
    trees = read_trees(run / "trees" / f"step_{step:06d}.safetensors", Credited)
    with RunDirectory.open(run).in_its_folder() as directory:
        env = load_run(directory).world.env
    shown, preferred, *_ = sorted(failed_paths(env, trees), key=lambda each: len(each[3]))
    for (number, _, early, plan), save in ((shown, "/save"), (preferred, f"/prefer {preferred[1]}")):
        chat_at(f"{run}:{step}.{number}:{early}", tmp_path / "branches", read=lines([*plan, save]))
    (folder,) = (tmp_path / "branches").glob("*")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join((folder / name).read_text() for name in ("demonstrations.jsonl", "preferences.jsonl")))
    settings = (
        "steps=1",
        "explorer.n=2",
        "optimizer.learning_rate=1e-9",
        "warmup.demonstrations=0",
        f"warmup.file={file}",
        "warmup.epochs=40",
        "evaluation.every=0",
    )
    small = ("tasks.count=8", "batch_tasks=2", "checkpointing.every=1", "warmup.learning_rate=0.003")
    learned = bough.train(
        "grpo", [*settings, *small], on="sokoban", policy=str(run / "final"), out=tmp_path, name="learned"
    ).directory
    player = BranchPlayer()
    try:
        continued = [last_branch(folder / f"{step}.{number}") for number, *_ in (shown, preferred)]
        assert all((each.success[leaves(each)] == Ternary.YES).all() for each in continued), "continued to success"
        scores = [[written(player, where, tree) for tree in continued] for where in (run, learned)]
        shares = [
            [solved(player, where, trees[number].tree, early) for number, _, early, _ in (shown, preferred)]
            for where in (run, learned)
        ]
    finally:
        player.close()
    for at in range(2):
        assert scores[1][at] > scores[0][at] + 1, "the written actions are e times as probable, or more"
        assert shares[1][at] >= shares[0][at] + 0.2, "the task is solved more often from there"
    assert digest(run) == before, "the run's own files are as they were"
