"""Question answering in one turn, in which the model is its own search engine."""

from dataclasses import field
from typing import Annotated, Literal

from bough.env.env import Branching, Split, State, Step
from bough.env.state_value import value_of
from bough.piece import AtLeast, piece
from bough.tree import Outcome, Task
from bough.worlds.search.draw import draw_tasks
from bough.worlds.search.index import Fts5, IndexSettings
from bough.worlds.search.knowledge import KnowledgeGraph
from bough.worlds.search.question import read_question
from bough.worlds.search.score import final_answer, score
from bough.worlds.search.source import QuestionSource


@piece
class SelfSearch:
    """SSRL (arXiv 2508.10874): the policy writes thoughts, searches, the documents found, and the answer in one turn.

    The answer is the text between the last `<answer>` tags. Its reward is its score after SQuAD's normalisation, and
    success is exact match. Use it with the parser `SearchBlocks` and the credit rule `MaskedSpans`. The parser scores
    the form and finds the information that the policy wrote.

    `SearchQa` with the same source, index and `top` has the same questions, so it can evaluate a policy trained here.

    Attributes:
        source: The questions: `KnowledgeGraph` or `CorpusFiles`.
        index: The index by which questions count as solvable.
        top: Number of documents in results, by which questions count as solvable, >= 1.
        metric: The reward of an answer: "em" or "f1".
    """

    source: QuestionSource = field(default_factory=KnowledgeGraph)
    index: IndexSettings = field(default_factory=Fts5)
    top: Annotated[int, AtLeast(1)] = 5
    metric: Literal["f1", "em"] = "em"
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The rules and the form."""
        return (
            "Answer the question. First think between <think> and </think>. For each search write the query between "
            "<search> and </search>, then what it finds between <information> and </information>, and think again. "
            "End with the answer alone between <answer> and </answer>."
        )

    @property
    def data_hash(self) -> str:
        """SHA-256 of the corpus, or of the settings that generate it."""
        return self.source.data_hash

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        return draw_tasks(self.source, self.index, self.top, split=split, count=count, seed=seed)

    def start(self, task: Task) -> State:
        """Returns the state with the question.

        Raises:
            ValueError: when the task has no question or no answers.
        """
        return State(observation=read_question(task).text, key=task.id, value=task)

    def step(self, state: State, action: str) -> Step:
        """Ends the episode with the answer in a text. After the end an action is not valid and pays nothing."""
        if _is_over(state):
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        answer = final_answer(action)
        exact, f1 = score(answer, read_question(value_of(state, Task, "SelfSearch")).answers)
        return Step(
            state=State(observation="", key=f"{state.key} over", value=state.value),
            reward=f1 if self.metric == "f1" else exact,
            outcome=Outcome.TERMINATED,
            valid=bool(answer),
            success=exact == 1,
            info={"em": exact, "f1": f1},
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns one text with a search for each fact; None without known evidence, or after the end."""
        question = read_question(value_of(state, Task, "SelfSearch"))
        if not question.evidence or _is_over(state):
            return None
        lines: list[str] = []
        for each in question.evidence:
            lines += [f"<think>I need {each.query}.</think>", f"<search>{each.query}</search>"]
            lines.append(f"<information>{each.text}</information>")
        answer = ", ".join(each[0] for each in question.answers)
        return ("\n".join([*lines, "<think>I have it.</think>", f"<answer>{answer}</answer>"]),)


def _is_over(state: State) -> bool:
    return state.key != value_of(state, Task, "SelfSearch").id
