"""Judges: a model rates paths or steps by a rubric."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.path_fields import acts, path_fields
from bough.ask import VoteSettings
from bough.ask.answer import mean_entry
from bough.ask.each import each
from bough.ask.prompts import AnswerParser, LabelParser, NumberParser, Placeholders
from bough.needs import POLICY, Need, appraised
from bough.piece import piece
from bough.tree import Entry, Tree, counted

SYSTEM = "You judge the work of an agent."
PATH = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "Rate how well it did its task, from 0 to 10. Answer with the number."
)
STEP = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\nIt then did this:\n{action}\n\n"
    "Say in a sentence what speaks for and against it. End with one word: good, unclear or bad."
)


@piece
class RubricJudge(VoteSettings):
    """A model rates each path, or each step, by a rubric; mean of the votes (LLM-as-a-judge, arXiv 2306.05685).

    The value of a path is at its leaf, that of a step at its action. A step that several paths share is rated once.

    Attributes:
        column: Name of the column.
        each: What is rated: whole paths, or single steps.
        prompt: The question, with the placeholders {instructions}, {turns}, {observation}, {answer}, the last action,
            and for steps {action}. A prompt with {answer} alone rates the final answer.
        prompt_file: A text file with the question, in place of `prompt`.
        system: The system prompt.
        read: Converts an answer to a value.
    """

    column: str = "judge"
    each: Literal["path", "step"] = "path"
    prompt: str = PATH
    prompt_file: str | None = None
    system: str = SYSTEM
    read: AnswerParser[float] = NumberParser()

    def __post_init__(self) -> None:
        self._check("prompt", self.prompt)

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The value of each path or step."""
        prompt = self._prompt()
        return {self.column: await each(self._tree(tree, ask, prompt) for tree in trees)}

    async def _tree(self, tree: Tree, ask: AskModels, prompt: str) -> Mapping[int, Entry]:
        nodes = acts(tree) if self.each == "step" else counted(tree).tolist()
        texts = [prompt.format_map(path_fields(tree, node)) for node in nodes]
        queries = [self.query(text, self.read, system=self.system, n=self.n) for text in texts]
        answers = await each(ask(query) for query in queries)
        return dict(zip(nodes, map(mean_entry, answers), strict=True))

    def _prompt(self) -> str:
        if self.prompt_file is None:
            return self.prompt
        try:
            prompt = Path(self.prompt_file).read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(
                f"RubricJudge.prompt_file: cannot read {self.prompt_file} ({error.strerror}); need a text file"
            ) from error
        self._check(f"prompt_file {self.prompt_file}", prompt)
        return prompt

    def _check(self, name: str, prompt: str) -> None:
        if wrong := Placeholders("answer", *(["action"] if self.each == "step" else [])).wrong(prompt):
            raise ValueError(f"RubricJudge.{name}: {wrong}")


def step_critic(column: str = "critic", n: int = 1, role: str = POLICY) -> RubricJudge:
    """A generative critic: it writes a critique of each step that ends in a word, whose value is the step's.

    Args:
        column: Name of the column.
        n: Number of votes.
        role: The role whose model answers.
    """
    words = LabelParser(scores={"good": 1.0, "unclear": 0.0, "bad": -1.0})
    return RubricJudge(column=column, each="step", prompt=STEP, read=words, n=n, role=role)
