"""`bough chat --at`: a person goes on from a turn of a stored tree; new branches are kept as the viewer keeps them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bough.cli.branch_player import BranchPlayer
from bough.cli.chat import Chat, Read, read_line, read_lines
from bough.cli.tree_place import TreePlace
from bough.engine import EngineFault
from bough.env import EnvFault
from bough.store import StoreError
from bough.tree import (
    Ints,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Ternary,
    TruncatedBy,
    action_in,
    fault_in,
    instructions_in,
    leaves,
    observation_in,
    path,
    sum_to_root,
    tools_at,
    turns,
)
from bough.view.transcript import show_action, show_end, show_instructions, show_observation, show_step
from bough.viewer.branches import Place, RunBranches
from bough.viewer.parts import NoParts
from bough.viewer.player import Moves
from bough.viewer.runs import Runs
from bough.viewer.tree_answers import TreeAnswers
from bough.viewer.tree_branches import Saved, TreeBranches
from bough.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

HELP = """\
TEXT             an action at the present turn; where there are tools, a call such as get(name="ann")
/sample [N [STEP]]   the run's policy goes on N times to the end of the episode, or the checkpoint of a step
/go PLACE        to another turn: 12 in the stored tree, b3:12 in branch 3
/undo            back to the turn before the last move
/save [all]      saves the path as a demonstration, in which the new turns, or all, are the examples
/prefer PLACE    saves the path as preferred to the path to another turn
/quit            ends; so does the end of the input"""


def chat_at(at: str, branches: Path, *, step: int | None = None, seed: int = 0, read: Read | None = None) -> None:
    """Go on from a turn of a stored tree; nothing in the run's directory is changed.

    Args:
        at: The turn, `RUN:TREE:NODE`.
        branches: The folder of new branches.
        step: The checkpoint that acts; the newest if None.
        seed: The seed of the samples.
        read: Reads a line; None for standard input.

    Raises:
        ConfigError: when the turn has another form, there is no such run, its world has several agents, or can't go
            back to an earlier state.
        StoreError: when there is no such tree, node, branch or checkpoint.
    """
    from rich.console import Console

    found = TreePlace.read(at)
    runs = Runs([found.run])
    (name,) = runs.directories()
    player = BranchPlayer()
    tree = TreeBranches(
        directory=found.run,
        name=found.tree,
        world=runs.setting(name, "world", "name"),
        kept=RunBranches(folder=branches.absolute() / runs.key(name)),
        answers=TreeAnswers(NoParts()),
        player=player,
    )
    try:
        # The turn first: an agent takes seconds to open.
        tree.credited(found.place)
        player.check(found.run, step)
        chat = BranchChat(tree, found.place, Console(), step=step, seed=seed)
        chat.begin(0)
        read_lines(chat, read or read_line)
    finally:
        player.close()


class BranchChat(Chat):
    """The lines of a person, and the branches that they make.

    Attributes:
        at: The present turn.
    """

    def __init__(self, tree: TreeBranches, at: Place, console: "Console", *, step: int | None, seed: int) -> None:
        self.at = at
        self._tree, self._console, self._step, self._seed = tree, console, step, seed
        self._before: list[Place] = []
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "/sample": self._sample,
            "/go": self._go,
            "/undo": self._undo,
            "/save": self._save,
            "/prefer": self._prefer,
        }

    @property
    def prompt(self) -> str:
        """The text before a line: the present turn."""
        return f"{self.at}> "

    def begin(self, number: int) -> None:
        """Show the conversation up to the present turn; branches have no further tasks, so the number is unused."""
        del number
        rewarded = self._tree.credited(self.at).rewarded
        self._note(
            f"task {rewarded.tree.task.id}, tree {self._tree.name}, node {self.at}; /help shows what a line can do"
        )
        self._show(rewarded, self.at.node, after=-1)

    def line(self, text: str) -> None:
        """Run a line; what is wrong with it is reported."""
        command, *rest = text.split() or [""]
        try:
            if command in self._commands:
                self._commands[command](rest)
            elif not command or command.startswith("/"):
                self._note(HELP)
            else:
                self._play(Moves(action=text.strip(), step=self._step, seed=self._seed))
        except (ValueError, StoreError, EnvFault, EngineFault) as error:
            self._note(str(error))

    def end(self) -> None:
        """Nothing is open: branches are on disk."""

    def _play(self, moves: Moves) -> None:
        """Make a branch and show what is new in it; a branch with one path is gone on with."""
        with self._console.status("..."):
            number, played = self._tree.play(self.at, moves)
        if played.note:
            self._note(played.note)
        ends: list[int] = leaves(played.rewarded.tree).tolist()
        if len(ends) == 1:
            self._before.append(self.at)
            self.at = Place(branch=number, node=ends[0])
            self._show(played.rewarded, ends[0], after=played.turns)
            return
        for end in ends:
            self._note(f"  {Place(branch=number, node=end)}: {_result(played.rewarded, end)}")
        self._note("/go with one of these shows it, and goes on from there")

    def _sample(self, words: list[str]) -> None:
        numbers = [int(word) for word in words if word.isascii() and word.isdigit()]
        if len(numbers) != len(words) or len(words) > 2:
            raise ValueError(f"got /sample {' '.join(words)}; need /sample, /sample N, or /sample N STEP")
        count, step = (*numbers, 1)[0], numbers[1] if len(numbers) == 2 else self._step
        # Each time other samples, and the same in another chat.
        self._seed += 1
        self._play(Moves(samples=count, step=step, seed=self._seed))

    def _go(self, words: list[str]) -> None:
        place = _place(words, "/go")
        rewarded = self._tree.credited(place).rewarded
        self._before.append(self.at)
        self.at = place
        self._show(rewarded, place.node, after=-1)

    def _undo(self, _: list[str]) -> None:
        if not self._before:
            self._note("there is nothing to undo")
            return
        self.at = self._before.pop()
        self._note(f"at node {self.at}")

    def _save(self, words: list[str]) -> None:
        if words not in ([], ["all"]):
            raise ValueError(f"got /save {' '.join(words)}; need /save, or /save all")
        self._saved(self._tree.save_demonstration(self.at, new_turns=not words))

    def _prefer(self, words: list[str]) -> None:
        self._saved(self._tree.save_preference(self.at, _place(words, "/prefer")))

    def _saved(self, saved: Saved) -> None:
        self._note(f"saved in {saved.file} ({saved.rows} in all); to imitate them:\n  {saved.command}")

    def _show(self, rewarded: Rewarded, node: int, *, after: int) -> None:
        """Print the path to a node, without its first turns."""
        tree = rewarded.tree
        walk, turn_of = path(tree, node), turns(tree)
        if after < 0:
            self._print(show_instructions(instructions_in(tree.info[0]), tools_at(tree, node)))
        reward = rewarded.reward
        shown: list[int] = walk[turn_of[walk] > after].tolist()
        for each in shown:
            info = tree.info[each]
            if tree.kind[each] == Kind.ACTION:
                by = "you" if tree.source[each] == Source.TEACHER else "agent"
                notes = show_step(
                    int(turn_of[each]), float(reward[each]), _known(tree.valid, each), _known(tree.cut_off, each)
                )
                self._print(show_action(action_in(info), by), notes)
            elif observation := observation_in(info):
                self._print(show_observation(observation))
            if fault := fault_in(info):
                self._note(f"the turn failed: {fault}")
        outcome, why = Outcome(int(tree.outcome[node])), TruncatedBy(int(tree.truncated_by[node]))
        # A branch ends where the person stopped: the episode is open there.
        if outcome is not Outcome.OPEN and why is not TruncatedBy.EXPLORER:
            limit = "" if why is TruncatedBy.NOTHING else f"limit: {why.name.lower()}"
            total = float(sum_to_root(tree, reward)[node])
            self._print(show_end(outcome, _known(tree.success, node), limit, total))

    def _print(self, *parts: object) -> None:
        for part in parts:
            self._console.print(part, end="", soft_wrap=True, highlight=False)

    def _note(self, text: str) -> None:
        self._console.print(visible(text), style="dim", markup=False, soft_wrap=True, highlight=False)


def _place(words: list[str], command: str) -> Place:
    if len(words) != 1:
        raise ValueError(
            f"got {command} {' '.join(words)}; need {command} and a turn, such as 12, or b3:12 in branch 3"
        )
    return Place.read(words[0])


def _known(column: Ints, node: int) -> bool | None:
    return Ternary(int(column[node])).known


def _result(rewarded: Rewarded, leaf: int) -> str:
    """How a path ended, on one line."""
    tree = rewarded.tree
    solved = _known(tree.success, leaf)
    word = Outcome(int(tree.outcome[leaf])).name.lower() if solved is None else "solved" if solved else "not solved"
    return f"{word}, return {sum_to_root(tree, rewarded.reward)[leaf]:.3g}, {int(turns(tree)[leaf])} turns"
