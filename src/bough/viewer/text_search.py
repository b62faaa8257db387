"""Full-text search in the stored texts of a run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

from bough.store import StoreError
from bough.store.atomic import stored_object
from bough.tree import fault_in, instructions_in, messages_in, written_in
from bough.viewer.stored_trees import TreeName, step_files

Hit: TypeAlias = dict[str, object]

AROUND = 60
"""Letters of the text on each side of a hit."""

MOST_HITS = 200
"""Hits after which a search ends."""


def search_texts(directory: Path, words: str, most: int = MOST_HITS) -> tuple[list[Hit], bool]:
    """The turns of a run with a text, the newest step first, and whether there are more than `most`.

    Upper and lower case are the same. A hit names its tree and node, and has the text before, of, and after the first
    match in the node.

    Raises:
        StoreError: for an empty text.
    """
    wanted = words.strip().lower()
    if not wanted:
        raise StoreError("got an empty text to search for; need at least one letter")
    hits: list[Hit] = []
    for step, file in reversed([*step_files(directory)]):
        for hit in _in_file(step, file.with_suffix(".jsonl"), wanted):
            if len(hits) == most:
                return hits, True
            hits.append(hit)
    return hits, False


def _in_file(step: int, file: Path, wanted: str) -> Iterator[Hit]:
    # Lines that lack the text are not parsed. JSON writes other letters than ASCII, quotes and the like as escapes.
    plain = wanted.encode() if json.dumps(wanted)[1:-1] == wanted else None
    if not file.is_file():
        return
    with file.open("rb") as lines:
        for index, line in enumerate(lines):
            if plain is not None and plain not in line.lower():
                continue
            try:
                record = stored_object(line)
            except (ValueError, StoreError):
                # A damaged file is reported where its trees are listed.
                continue
            yield from _in_tree(TreeName(step=step, index=index), record, wanted)


def _in_tree(name: TreeName, record: "dict[str, Any]", wanted: str) -> Iterator[Hit]:
    infos = cast("list[dict[str, object]]", record.get("info", []))
    for node, info in enumerate(infos):
        texts = [*(message.content for message in messages_in(info)), written_in(info), fault_in(info) or ""]
        if not node:
            texts.insert(0, instructions_in(info))
        for text in texts:
            if (place := text.lower().find(wanted)) >= 0:
                end = place + len(wanted)
                yield {
                    "tree": str(name),
                    "node": node,
                    "task": cast("dict[str, object]", record["task"])["id"],
                    "before": text[max(0, place - AROUND) : place],
                    "match": text[place:end],
                    "after": text[end : end + AROUND],
                }
                break
