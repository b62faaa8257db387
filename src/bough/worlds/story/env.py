"""Short stories, one plot step at a time."""

import random
from dataclasses import dataclass
from typing import Annotated, cast

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, piece
from bough.tree import Outcome, Task

HEROES = ("fox", "girl", "king", "monk", "owl", "poet", "sailor", "smith", "thief", "witch")
THINGS = ("bell", "boat", "coin", "crown", "harp", "key", "lamp", "map", "rope", "sword")
PLACES = ("bridge", "cave", "forest", "garden", "harbor", "island", "market", "mill", "river", "tower")
DEEDS = ("finds", "hides", "loses", "sells", "breaks", "mends", "steals", "buries")
WAYS = ("at dawn", "at night", "in the rain", "in secret", "by chance", "with a friend")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryState:
    """The value of a state of `Story`: the three words of the premise, and the plot steps so far."""

    words: tuple[str, ...]
    steps: tuple[str, ...] = ()


@piece
class Story:
    """Writes a story: the task names a hero, a thing and a place, and each action is the next plot step.

    The states of COS(M+O)S (arXiv 2501.17104) are partial stories in this sense; there a model writes the chapters
    between plot steps, and readers judge. Here the check is of form alone: success needs `steps` different sentences of
    at most `max_words` words, each with a full stop, that use all three words of the premise. It pays 1 at the end.
    What makes a story good is left to a search or a reward, such as `Curiosity`.

    A step that is no sentence, or repeats one, is not valid, and stays in the story. The state key is the premise with
    the story so far. Splits are by premise.

    Attributes:
        steps: Number of plot steps, at least 1.
        max_words: Maximum number of words of a step, at least 3.

    Raises:
        ValueError: when a field is out of its range.
    """

    steps: Annotated[int, AtLeast(1)] = 4
    max_words: Annotated[int, AtLeast(3)] = 12
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The rules."""
        return (
            f"Write a story with the three words, in {self.steps} steps. Each turn add one new sentence of at most "
            f"{self.max_words} words, with a full stop."
        )

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different premises of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        drawn = draw_instances(
            name="Story", split=split, count=count, seed=seed, propose=_propose, content=", ".join, accept=bool
        )
        return [instance_task(name="story", content=", ".join(each), data={"words": list(each)}) for each in drawn]

    def start(self, task: Task) -> State:
        """Returns the state with the premise.

        Raises:
            ValueError: when `task.data["words"]` is not a list of words.
        """
        found = task.data.get("words")
        words = cast("list[object]", found) if isinstance(found, list) else []
        if not words or not all(isinstance(each, str) and each for each in words):
            raise ValueError(f"Story: task {task.id} got the words {found!r}; need a list of words")
        return _state(StoryState(words=tuple(map(str, words))))

    def step(self, state: State, action: str) -> Step:
        """Adds a plot step. After the last one every action is invalid and changes nothing."""
        story = value_of(state, StoryState, "Story")
        if len(story.steps) == self.steps:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        # Lone surrogates are no text, and a key can't have them.
        sentence = " ".join(action.encode("utf-8", "ignore").decode().split())
        after = StoryState(words=story.words, steps=(*story.steps, sentence))
        done = len(after.steps) == self.steps
        success = done and self._complete(after)
        return Step(
            state=_state(after),
            reward=float(success),
            outcome=Outcome.TERMINATED if done else Outcome.OPEN,
            valid=self._sentence(sentence) and sentence not in story.steps,
            success=success,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns sentences that complete the story; None where a step so far is invalid."""
        story = value_of(state, StoryState, "Story")
        left = self.steps - len(story.steps)
        if not left or not all(map(self._sentence, story.steps)) or len(set(story.steps)) < len(story.steps):
            return None
        hero, thing, place = (*story.words, *story.words)[:3]
        rng = random.Random(" ".join((*story.words, *story.steps)))
        found: list[str] = []
        while len(found) < left:
            text = f"The {hero} {rng.choice(DEEDS)} the {thing} at the {place} {rng.choice(WAYS)}."
            if text not in found and text not in story.steps:
                found.append(text)
        whole = StoryState(words=story.words, steps=(*story.steps, *found))
        return tuple(found) if self._complete(whole) else None

    def _sentence(self, text: str) -> bool:
        """Whether a text is one sentence of a fitting length."""
        return 3 <= len(text.split()) <= self.max_words and text.endswith(".") and text.count(".") == 1

    def _complete(self, story: StoryState) -> bool:
        """Whether all steps are different sentences and use the words of the premise."""
        used = {word.strip(".,;:!?'\"").lower() for step in story.steps for word in step.split()}
        return (
            all(map(self._sentence, story.steps))
            and len(set(story.steps)) == len(story.steps)
            and used >= {word.lower() for word in story.words}
        )


def _propose(rng: random.Random) -> tuple[str, ...]:
    return (rng.choice(HEROES), rng.choice(THINGS), rng.choice(PLACES))


def _state(story: StoryState) -> State:
    premise = f"Words: {', '.join(story.words)}."
    # The agent reads its own steps in the conversation; the key has them all.
    text = f"{premise} Begin." if not story.steps else f"Step {len(story.steps)} is written. Go on."
    return State(observation=text, key=" ".join((premise, *story.steps)), value=story)
