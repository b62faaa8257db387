"""The trees of an export: files of trees, or logged conversations."""

from collections.abc import Sequence
from pathlib import Path

from bough.policy.chat import ChatRenderer
from bough.rewrite.message_trees import message_trees
from bough.rollout import PolicyFormat
from bough.store import RunDirectory, read_conversations, read_trees
from bough.train.policy_renderer import policy_renderer
from bough.train.run import Run
from bough.train.stored_settings import load_run
from bough.tree import Credited, Rewarded, Tree, seat_of_task_id

TREES = ".safetensors"


def rewarded_trees(run: Run, file: Path, renderer: ChatRenderer) -> list[Rewarded]:
    """The trees of a file with their rewards; those without rewards get the run's.

    Raises:
        StoreError: when it is no file of trees.
        ValueError: when it is no file of conversations, or they do not fit the run.
    """
    # Imported here because it imports torch; wrong arguments are reported earlier.
    from bough.reward import reward_trees

    stages = read_trees(file) if file.suffix == TREES else logged_trees(run, file, renderer)
    bare = reward_trees([each for each in stages if isinstance(each, Tree)], run.world.rewards)
    scored = [each.rewarded if isinstance(each, Credited) else each for each in stages if not isinstance(each, Tree)]
    return [*scored, *bare]


def logged_trees(run: Run, file: Path, renderer: ChatRenderer) -> list[Tree]:
    """The conversations of a file as trees in the format of a run's policy.

    Raises:
        ValueError: when a line is no conversation, or does not fit the run's parser.
    """
    policy_format = PolicyFormat(renderer=renderer, context=run.world.context, parser=run.world.parser)
    return [*message_trees(read_conversations(file), policy_format).trees]


def read_message_log(target: Path, file: Path) -> list[Tree]:
    """The conversations of a JSONL file as trees in the format of a run's policy; see `read_conversations`.

    Rows of one task are one tree, which branches where they differ.

    Args:
        target: The run directory.
        file: The JSONL file.

    Raises:
        StoreError: when there is no such run.
        ValueError: when a line is no conversation, or does not fit the run's parser.
    """
    file = file.absolute()
    with RunDirectory.open(target).in_its_folder() as directory:
        run = load_run(directory)
        return logged_trees(run, file, policy_renderer(run, directory.policy))


def of_seats(rewarded: Sequence[Rewarded], seats: Sequence[str]) -> list[Rewarded]:
    """The trees of some seats; all trees of an environment for one agent."""
    return [each for each in rewarded if not seats or seat_of_task_id(each.tree.task.id) in (*seats, "")]
