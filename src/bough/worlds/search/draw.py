"""Tasks from the questions of a source."""

from bough.env.env import Split
from bough.env.splits import instance_task
from bough.tree import Task
from bough.worlds.search.index import IndexSettings
from bough.worlds.search.source import QuestionSource, open_collection


def draw_tasks(
    source: QuestionSource, index: IndexSettings, top: int, *, split: Split, count: int, seed: int
) -> list[Task]:
    """Returns `count` different questions of a split as tasks; the same question is the same task in every environment.

    Raises:
        ValueError: when the split has fewer.
    """
    questions = source.questions(split, count, seed, open_collection(source, index).index, top)
    return [instance_task(name="search", content=each.content, data=each.data()) for each in questions]
