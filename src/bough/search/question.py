"""Questions that a search asks the agent's engine about what it knows."""

from typing import TypeVar

from bough.engine import EngineFault, Sampling
from bough.explore import asking
from bough.explore.asking import Reader
from bough.rollout.cursor import Cursor
from bough.search.node import SearchNode
from bough.search.tree import SearchTree

UNANSWERED = "unanswered"
"""In the notes of a node, and in the info of its action: how many questions about it got no answer that can be read."""

Answer = TypeVar("Answer")


def story(tree: SearchTree, node: SearchNode) -> dict[str, str]:
    """What there is to say of the place where a node led, or of where its action was written if nobody did it yet."""
    nodes, draft = tree.rollout.builder.nodes, node.draft
    if node.ended and draft is not None:
        past = [(turn.observation, turn.action) for turn in draft.cursor.past]
        past.append((draft.cursor.state.observation, draft.parsed.action))
        observation = str(nodes[tree.rollout.answered[draft.node]].info["text"])
    else:
        cursor = node.at if isinstance(node.at, Cursor) else None
        if cursor is None and draft is not None:
            cursor = draft.cursor
        if cursor is None:
            raise ValueError(f"story: got {node}, which is nowhere; need one that was carried out or written")
        past = [(turn.observation, turn.action) for turn in cursor.past]
        observation = cursor.state.observation
    return asking.story(str(nodes[0].info["instructions"]), past, observation)


def place(node: SearchNode) -> tuple[int, ...]:
    """What tells a node apart from all others of its tree, for the names of questions."""
    return () if node.draft is None else node.draft.branches


async def asked(
    tree: SearchTree,
    node: SearchNode,
    *name: int | str,
    system: str,
    text: str,
    read: Reader[Answer],
    sampling: Sampling | None = None,
) -> Answer | None:
    """Ask the agent's engine about a node; once more when the answer can't be read, or the engine broke.

    Args:
        tree: The search.
        node: What the question is about.
        name: Tells the question apart from others about the node.
        system: What the engine is told first.
        text: The question.
        read: Finds the answer.
        sampling: How the answer is sampled, if not as the agent samples.

    Returns:
        The answer; None when there is none, which is then counted as `UNANSWERED`.

    Raises:
        BudgetExceeded: when a budget can't pay for it.
    """
    for attempt in range(2):
        try:
            said = await tree.rollout.ask(system, text, *name, *place(node), attempt, sampling=sampling)
        except EngineFault:
            tree.faults += 1
            continue
        answer = read(said)
        if answer is not None:
            return answer
    unanswered(tree, node)
    return None


def unanswered(tree: SearchTree, node: SearchNode) -> None:
    """Count a question about a node to which there is no answer."""
    info = tree.rollout.builder.nodes[0 if node.draft is None else node.draft.node].info
    for where in (node.notes, info):
        known = where.get(UNANSWERED, 0)
        where[UNANSWERED] = 1 + (known if isinstance(known, int) else 0)
