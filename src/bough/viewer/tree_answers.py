"""What the viewer answers about the trees of a run, as JSON data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from bough.env import EnvFault
from bough.store import StoreError
from bough.tree import Credited, Ternary, Tree, counted, leaves, seat_of_task_id
from bough.viewer.branches import Place, RunBranches
from bough.viewer.credit_rules import apply_rule, credit_rules
from bough.viewer.node_view import Sides, node_view
from bough.viewer.parts import Parts
from bough.viewer.path_rows import FLAGS, path_rows
from bough.viewer.reward_audit import reward_audit
from bough.viewer.stored_trees import FILES, PerFile, TreeName, count_lines, read_file, step_files, tree_in
from bough.viewer.turn_changes import turn_changes
from bough.viewer.turn_nodes import Turns, drawn, number

Answer: TypeAlias = dict[str, object]


class TreeAnswers:
    """The answers about the trees of run directories; the files that were used last stay in memory.

    Args:
        parts: The tokenizers and environments of the runs.
    """

    def __init__(self, parts: Parts) -> None:
        self._files = PerFile(self._read, most=FILES)
        self._steps = PerFile(self._step, most=FILES)
        self._parts = parts

    def trees(self, directory: Path) -> Answer:
        """The steps with stored trees, ascending, and the credit rules that can be chosen."""
        return {
            "steps": [step for step, _ in step_files(directory)],
            "rules": [rule.record() for rule in credit_rules().values()],
            "flags": dict(FLAGS),
        }

    def step(self, directory: Path, step: int) -> Answer:
        """The trees of a step, its episodes, and its rewards and checks beside each other.

        Raises:
            StoreError: when there is no such step, or its file is damaged.
        """
        return self._steps.get(_file(directory, step))

    def _read(self, file: Path, rule: str) -> list[Credited]:
        """The trees of a file, with the advantages of the run, or of another rule."""
        return apply_rule(rule, [each.rewarded for each in self._files.get(file)]) if rule else read_file(file)

    def _step(self, file: Path, _: str) -> Answer:
        step, trees = int(file.stem.removeprefix("step_")), self._files.get(file)
        summaries = [_summary(TreeName(step=step, index=index), each) for index, each in enumerate(trees)]
        paths = path_rows(step, trees)
        return {"step": step, "trees": summaries, "paths": paths, "rewards": reward_audit(step, trees)}

    def tree(self, directory: Path, name: TreeName, rule: str = "") -> Answer:
        """A tree as it is drawn, with the advantages of its run or of another rule.

        Raises:
            StoreError: when there is no such tree, or the rule does not fit.
        """
        trees = self.credited(directory, name.step, rule)
        credited = tree_in(trees, name)
        task = credited.tree.task.id
        same = [index for index, each in enumerate(trees) if each.tree.task.id == task]
        return {
            **_summary(name, credited),
            "rule": rule,
            "columns": drawn(credited),
            "group": [str(TreeName(step=name.step, index=index)) for index in same],
            "of_step": len(trees),
            "previous": str(TreeName(step=name.step, index=name.index - 1)) if name.index else None,
            "next": str(TreeName(step=name.step, index=name.index + 1)) if name.index + 1 < len(trees) else None,
        }

    def node(self, directory: Path, name: TreeName, place: Place, branches: RunBranches, rule: str = "") -> Answer:
        """A turn of a tree, or of a branch from it, in full.

        Raises:
            StoreError: when there is no such tree, branch or node.
        """
        credited = self.place(directory, name, place, branches, rule)
        pieces, problem = self._parts.pieces(directory, credited.tree.task.id)
        shown = node_view(credited, place.node, pieces)
        return {"place": str(place), "tree": str(name), "undecoded": problem, **shown}

    def turns(self, directory: Path, name: TreeName, *, pictures: bool) -> Answer:
        """All turns of a tree in full, as exported pages have them; see `turn_changes`.

        Args:
            directory: The run's folder.
            name: The tree.
            pictures: Whether they have the environment's pictures of states, where it accepts the path.

        Raises:
            StoreError: when there is no such tree.
        """
        credited = tree_in(self.credited(directory, name.step), name)
        pieces, problem = self._parts.pieces(directory, credited.tree.task.id)
        found = Turns.of(credited.tree)
        last, parent = cast("list[int]", found.last.tolist()), cast("list[int]", found.parent.tolist())
        sides = Sides.of(credited)
        whole = {"tree": str(name), "undecoded": problem}
        records = [{"place": str(node), **whole, **node_view(credited, node, pieces, sides)} for node in last]
        drawn_states = [self._picture(directory, credited.tree, node) for node in last] if pictures else []
        return {"last": last, "parent": parent, "turns": turn_changes(records, parent), "pictures": drawn_states}

    def _picture(self, directory: Path, tree: Tree, node: int) -> str | None:
        try:
            return self._parts.picture(directory, tree, node)
        except (ValueError, EnvFault):
            return None

    def state(self, directory: Path, name: TreeName, place: Place, branches: RunBranches) -> Answer:
        """The environment's picture of the state after a turn; `svg` is None where it has none.

        Raises:
            StoreError: when there is no such tree, branch or node.
            ValueError: when the environment does not accept the path.
        """
        tree = self.place(directory, name, place, branches).tree
        last = int(Turns.of(tree).last[Turns.of(tree).of_node[place.node]])
        return {"svg": self._parts.picture(directory, tree, last)}

    def place(self, directory: Path, name: TreeName, place: Place, branches: RunBranches, rule: str = "") -> Credited:
        """The tree of a place.

        Raises:
            StoreError: when there is no such tree, branch or node.
        """
        if place.branch is not None:
            found = branches.of(name).tree(place.branch)
        else:
            found = tree_in(self.credited(directory, name.step, rule), name)
        if place.node >= found.tree.nodes:
            raise StoreError(f"got node {place}; the tree has the nodes 0 to {found.tree.nodes - 1}")
        return found

    def credited(self, directory: Path, step: int, rule: str = "") -> list[Credited]:
        """The trees of a step, with the advantages of the run, or of another rule.

        Raises:
            StoreError: when there is no such step, its file is damaged, or the rule does not fit.
        """
        return self._files.get(_file(directory, step), rule)

    def count(self, directory: Path, step: int) -> int:
        """The number of trees of a step; 0 where its file is damaged."""
        return count_lines(_file(directory, step).with_suffix(".jsonl"))


def _file(directory: Path, step: int) -> Path:
    """The file of the trees of a step.

    Raises:
        StoreError: when there is none.
    """
    files = dict(step_files(directory))
    if step not in files:
        raise StoreError(
            f"{directory.name}: got step {step}, which has no stored trees; need one of {_listed([*files])}"
        )
    return files[step]


def _listed(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps[-8:])) or "none: set checkpointing.trees_every"


def _summary(name: TreeName, credited: Credited) -> Mapping[str, object]:
    tree, returns = credited.tree, credited.rewarded.returns()
    solved = tree.success[counted(tree)] == Ternary.YES
    return {
        "name": str(name),
        "step": name.step,
        "task": tree.task.id,
        "seat": seat_of_task_id(tree.task.id),
        "nodes": tree.nodes,
        "paths": len(leaves(tree)),
        "counted": len(solved),
        "solved": int(solved.sum()),
        "mean_return": number(float(np.mean(returns))) if len(returns) else None,
        "signal": not credited.is_zero,
    }
