"""Conversational tree search: a dialogue graph whose edges are the moves of an agent."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task

ASK, ANSWER = "ask", "answer"
ROOT = "start"
ONSETS, VOWELS = "bdfgklmnprstvz", "aeiou"
PHRASES = (
    "how does {} work?",
    "what about {}?",
    "i need help with {}",
    "who pays for {}?",
    "can i get {} this year?",
    "tell me about {}",
    "my {} is missing",
    "is {} included?",
    "when is {} due?",
    "i lost my {}",
    "where do i send {}?",
    "do i need {}?",
)
"""What users write; {} is a word for their goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of the dialogue graph.

    Attributes:
        name: Its name, one word.
        parent: The name of the node above; "" at the start.
        children: The names of the nodes that its edges lead to.
        words: The words with which users refer to it, if it is a goal.
    """

    name: str
    parent: str
    children: tuple[str, ...]
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueGraphState:
    """The value of a state of `DialogueGraph`.

    Attributes:
        question: The user's question.
        goal: The name of the node with the user's answer.
        at: The name of the present node.
        turns: Number of turns so far.
        replies: The node at each question to the user, and the node that was named: an edge, or the same without a
            fitting one.
        over: Whether the episode is over.
    """

    question: str
    goal: str
    at: str = ROOT
    turns: int = 0
    replies: tuple[tuple[str, str], ...] = ()
    over: bool = False


@piece
class DialogueGraph:
    """Conversational tree search (arXiv 2303.10227): find the node of a dialogue graph that answers a user's question.

    The graph is that of an expert, the same in every task; here it is a generated tree. The agent reads the question,
    the present node and its edges. A move is one of:

        NODE      an edge: go to a node below, without a word to the user
        ask       show the node's question to the user, whose reply names the edge toward the goal
        answer    show the node as the answer, which ends the dialogue; success when it is the user's goal

    Nothing but the graph's own texts is ever shown. A user with a question that the agent understands needs no `ask`;
    the agent learns which edges lead to which questions. The reward is 1 for the right answer. Each turn costs
    1 / (4 * depth), and `ask` twice that, as it takes the user's time.

    `Step.info["hindsight"]` at the end has the goal for which this path would have been right, and its last reward:
    see `bough.hooks.Hindsight`. It is missing where the user's replies do not fit that goal.

    The goal and the question decide a task's split: all goals occur in training, with other questions. The published
    graphs have texts of experts, conditions on variables, and questions that users wrote.

    Attributes:
        branching_factor: Edges of a node, 2 to 5.
        depth: Edges from the start to a goal, 1 to 4.
        graph: Seed of the graph.
        max_turns: Turns after which the user leaves, and the dialogue is `TRUNCATED`, at least 1.

    Raises:
        ValueError: when a field is out of its range.
    """

    branching_factor: Annotated[int, Between(2, 5)] = 3
    depth: Annotated[int, Between(1, 4)] = 2
    graph: int = 0
    max_turns: Annotated[int, AtLeast(1)] = 6
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The moves."""
        return "Find the node that answers the question. Answer with an edge to follow, with ask, or with answer."

    @property
    def nodes(self) -> Mapping[str, GraphNode]:
        """The graph: its nodes by name, the start first."""
        return make_graph(self.branching_factor, self.depth, self.graph)

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        goals = [node for node in self.nodes.values() if node.words]

        def propose(rng: random.Random) -> tuple[str, str]:
            goal = rng.choice(goals)
            return goal.name, rng.choice(PHRASES).format(rng.choice(goal.words))

        drawn = draw_instances(
            name="DialogueGraph",
            split=split,
            count=count,
            seed=seed,
            propose=propose,
            content=" ".join,
            accept=bool,
        )
        return [
            instance_task(name="dialogue-graph", content=f"{goal} {text}", data={"goal": goal, "question": text})
            for goal, text in drawn
        ]

    def start(self, task: Task) -> State:
        """Returns the state at the start of the graph.

        Raises:
            ValueError: when the task's goal is not in the graph.
        """
        goal, question = str(task.data.get("goal")), str(task.data.get("question"))
        if goal not in self.nodes:
            raise ValueError(f"DialogueGraph: task {task.id} got the goal {goal!r}; need a node of the graph")
        return self._state(DialogueGraphState(question=question, goal=goal))

    def step(self, state: State, action: str) -> Step:
        """Makes a move. Any other text is not valid and costs a turn."""
        current, move = dialogue_state(state), action.strip().lower()
        if current.over:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        node, cost = self.nodes[current.at], 1 / (4 * self.depth)
        if move == ANSWER:
            right = node.name == current.goal
            return self._ended(current, success=right, reward=float(right) - cost)
        at, replies = current.at, current.replies
        if move == ASK and node.children:
            at = self._toward(node.name, current.goal) or current.at
            replies, cost = (*replies, (node.name, at)), 2 * cost
        elif move in node.children:
            at = move
        after = replace(current, at=at, turns=current.turns + 1, replies=replies)
        if after.turns >= self.max_turns:
            ended = self._ended(after, outcome=Outcome.TRUNCATED, reward=-cost)
            return replace(ended, valid=move in (state.admissible or ()))
        return Step(state=self._state(after), reward=-cost, valid=move in (state.admissible or ()))

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the edges to the goal and the answer; None where the goal is not below, or after the end."""
        current = dialogue_state(state)
        moves: list[str] = []
        at = current.at
        while at != current.goal:
            found = self._toward(at, current.goal)
            if found is None:
                return None
            moves.append(found)
            at = found
        return None if current.over else (*moves, ANSWER)

    def _toward(self, name: str, goal: str) -> str | None:
        """The edge of a node toward a goal; None where the goal is not below it."""
        here = self.nodes[goal]
        while here.parent and here.parent != name:
            here = self.nodes[here.parent]
        return here.name if here.parent == name and name else None

    def _ended(
        self,
        current: DialogueGraphState,
        *,
        reward: float,
        success: bool = False,
        outcome: Outcome = Outcome.TERMINATED,
    ) -> Step:
        after = DialogueGraphState(
            question=current.question, goal=current.goal, at=current.at, replies=current.replies, over=True
        )
        # The user would have given the same replies, also where it named no edge.
        fits = all((self._toward(asked, current.at) or asked) == reply for asked, reply in current.replies)
        info: dict[str, object] = {}
        if outcome is Outcome.TERMINATED and self.nodes[current.at].words and fits:
            info["hindsight"] = {"goal": current.at, "reward": 1 - 1 / (4 * self.depth)}
        info["goal"] = current.goal
        return Step(state=self._state(after), reward=reward, outcome=outcome, success=success, info=info)

    def _state(self, current: DialogueGraphState) -> State:
        node = self.nodes[current.at]
        edges = " ".join(node.children) or "none"
        told = f"user: {current.replies[-1][1]}\n" if current.replies and current.replies[-1][1] == current.at else ""
        text = f"node: {node.name}\nedges: {edges}"
        shown = f"question: {current.question}\n{text}" if not current.turns else f"{told}{text}"
        moves = (*node.children, *((ASK,) if node.children else ()), ANSWER)
        key = f"{current.question}\n{current.goal} {current.at} {current.replies}{' over' if current.over else ''}"
        return State(observation=shown, key=key, value=current, admissible=moves)


@lru_cache(maxsize=16)
def make_graph(branching_factor: int, depth: int, seed: int) -> Mapping[str, GraphNode]:
    """A tree with the goals as leaves; every name and every word occurs once."""
    rng = random.Random(f"DialogueGraph {seed}")
    pool = [a + b + c + d for a in ONSETS for b in VOWELS for c in ONSETS for d in VOWELS]
    names = iter(rng.sample(pool, len(pool)))
    made: dict[str, GraphNode] = {}
    level = [(ROOT, "")]
    for step in range(depth + 1):
        following: list[tuple[str, str]] = []
        for name, parent in level:
            children = tuple(next(names) for _ in range(branching_factor if step < depth else 0))
            words = () if children else (name, next(names))
            made[name] = GraphNode(name=name, parent=parent, children=children, words=words)
            following += [(child, name) for child in children]
        level = following
    return made


def dialogue_state(state: State) -> DialogueGraphState:
    """The value of a state of `DialogueGraph`.

    Raises:
        TypeError: for a state of another environment.
    """
    return value_of(state, DialogueGraphState, "DialogueGraph")
