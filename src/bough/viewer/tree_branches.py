"""New branches from one tree of a run: they are played, kept, and saved as rows that a warm-up reads."""

from dataclasses import dataclass
from pathlib import Path

from bough.store import StoreError
from bough.tree import Credited
from bough.viewer.branches import Place, Row, RunBranches, preference, without_lesson
from bough.viewer.player import Moves, Played, Player
from bough.viewer.stored_trees import TreeName
from bough.viewer.tree_answers import TreeAnswers


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A saved row.

    Attributes:
        file: Its file.
        rows: Number of rows in the file.
        command: A command that imitates them.
    """

    file: str
    rows: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeBranches:
    """The branches from a tree of a run.

    Attributes:
        directory: The run directory, which is only read.
        name: The tree.
        world: The name of the run's world.
        kept: The branches of the run.
        answers: Reads trees.
        player: Goes on from turns.
    """

    directory: Path
    name: TreeName
    world: str
    kept: RunBranches
    answers: TreeAnswers
    player: Player

    def credited(self, place: Place) -> Credited:
        """The tree of a place.

        Raises:
            StoreError: when there is no such tree, branch or node.
        """
        return self.answers.place(self.directory, self.name, place, self.kept)

    def play(self, at: Place, moves: Moves) -> tuple[int, Played]:
        """Go on from a place; returns the number of the new branch, and what was played.

        Raises:
            StoreError: when there is no such place, or the disk is full.
            ValueError, EnvFault, EngineFault: as of `Player.play`.
        """
        played = self.player.play(self.directory, self.credited(at).tree, at.node, moves)
        about: dict[str, object] = {"turns": played.turns, "step": played.step, "note": played.note}
        about |= {"action": moves.action, "samples": moves.samples}
        return self.kept.of(self.name).add(played.rewarded, at, about), played

    def save_demonstration(self, leaf: Place, *, new_turns: bool) -> Saved:
        """Save the path to a place as a demonstration.

        Args:
            leaf: The place.
            new_turns: Whether only the turns of its branch are examples; those before are its context.

        Raises:
            StoreError: when there is no such place, it is before the first action, or the disk is full.
        """
        row = self._row(leaf)
        if new_turns and leaf.branch is not None:
            row = without_lesson(row, self.kept.of(self.name).turns_before(leaf.branch))
        return self._save("demonstrations", row)

    def save_preference(self, chosen: Place, rejected: Place) -> Saved:
        """Save two paths of the task as a preference.

        Raises:
            StoreError: when there is no such place, they do not part at an action, or the disk is full.
        """
        return self._save("preferences", preference(self._row(chosen), self._row(rejected)))

    def _save(self, kind: str, row: Row) -> Saved:
        file = self.kept.save(kind, row)
        with file.open("rb") as rows:
            count = sum(1 for _ in rows)
        return Saved(file=str(file), rows=count, command=f"bough train grpo --on {self.world} warmup.file={file}")

    def _row(self, place: Place) -> Row:
        row = self.player.row(self.credited(place).rewarded, place.node)
        if row is None:
            raise StoreError(f"got node {place}, before the first action; need a turn with one")
        return row
