"""Rows of a data set on the Hugging Face hub, from its own files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, cast

from bough.env.dataset_files import CARD, Splits, split_files
from bough.env.row_files import json_line, read_row_file
from bough.hub import HubRepo, repo_of, snapshot
from bough.hub.progress import say
from bough.piece import piece
from bough.units import number_of
from bough.usercode.json_file import parse_json, parse_object

SHOWN = 3
"""Names of files in a message."""

ALL = "all"
"""The key of `HubDataset.splits` for rows that a hash divides."""

OURS = ("train", "dev", "test", ALL)

KNOWN = {"train": "train", "validation": "dev", "valid": "dev", "val": "dev", "dev": "dev", "test": "test"}
"""Splits of tasks by the usual names of a data set's splits."""


@piece
class HubDataset:
    """Rows of a data set on the Hugging Face hub: its Parquet, JSON and CSV files, read without code of its own.

    The columns "id" and "split" of a data set are left out, since its ids may repeat in each split; `columns` takes
    them in. A column of splits that it takes in decides in place of the split of the file.

    Attributes:
        id: "owner/name", or "owner/name@REVISION".
        config: The configuration; "" for the only or the default one.
        splits: The data set's split for each split of the tasks, {"train": "train", "test": "validation"}; or {"all":
            "train"}, whose rows a hash divides. {} takes the splits by their usual names, and divides a single one.
        columns: The data set's column for a column of the rows, {"prompt": "question"}; the others keep their names,
            and one whose name is taken is left out.
        json_columns: Columns, by the names in the rows, whose texts are JSON, such as lists of tools.

    Raises:
        ValueError: when the id has another form, or `splits` has another key.
    """

    id: str
    config: str = ""
    splits: Mapping[str, str] = field(default_factory=dict[str, str])
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    json_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.hub_repo()
        for name, mapping in (("splits", self.splits), ("columns", self.columns)):
            texts = [cast("object", each) for pair in mapping.items() for each in pair]
            if wrong := [each for each in texts if not isinstance(each, str)]:
                raise ValueError(f"HubDataset.{name}: got {wrong[0]!r}; need names")
        unknown = [each for each in self.splits if each not in OURS]
        if unknown or (ALL in self.splits and len(self.splits) > 1):
            raise ValueError(
                f"HubDataset.splits: got {', '.join(map(str, self.splits))}; need some of train, dev and test, or all "
                "alone"
            )

    def __hash__(self) -> int:
        # Mappings have no hash.
        splits, columns = (tuple(sorted(each.items())) for each in (self.splits, self.columns))
        return hash((self.id, self.config, splits, columns, self.json_columns))

    def hub_repo(self) -> HubRepo:
        """The data set.

        Raises:
            ValueError: when the id has another form.
        """
        if (repo := repo_of(self.id, "dataset", "HubDataset.id")) is None:
            raise ValueError(f"HubDataset.id: got {self.id!r}; need owner/name, or owner/name@REVISION")
        return repo

    def pinned_settings(self) -> Mapping[str, str]:
        """Download, say which files have the rows, and return `id` with its commit.

        Raises:
            OSError: when the data set can't be had.
        """
        folder, files = self._download()
        for split, names in files.items():
            rest = f" and {number_of(len(names) - SHOWN, 'file')} more" if len(names) > SHOWN else ""
            rows = "rows" if split == ALL else f"rows of {split}"
            say(f"{self.id}: {rows} from {', '.join(names[:SHOWN])}{rest}")
        return {"id": self.hub_repo().at(folder.name)}

    def rows(self) -> list[dict[str, Any]]:
        """The rows, for a function of your own that changes them; errors as of `lines`."""
        return [json.loads(line) for _, line in self.lines()]

    def lines(self) -> Iterator[tuple[str, str]]:
        """The rows as lines of JSON, each after its place; what is not in the cache is downloaded.

        Raises:
            OSError: when the data set can't be had, or a file can't be read.
            ValueError: when a row can't be read, or lacks a column.
            ImportError: for a Parquet file without the extra `parquet`.
        """
        folder, files = self._download()
        for ours, names in files.items():
            for name in names:
                for where, line in read_row_file(folder / name):
                    place = f"{self.id}, {where.removeprefix(f'{folder}/')}"
                    yield place, json_line(self._row(line, place, ours), place)

    def _row(self, line: str, place: str, split: str) -> dict[str, Any]:
        """A row with the columns and the split of the settings."""
        given = parse_object(line, place, "a row with columns")
        if missing := [theirs for theirs in self.columns.values() if theirs not in given]:
            raise ValueError(f"{place}: got the columns {', '.join(given)}; need {missing[0]!r}, which columns names")
        taken = {"id", "split", *self.columns.values()}
        row = {name: value for name, value in given.items() if name not in taken}
        row |= {ours: given[theirs] for ours, theirs in self.columns.items()}
        for name in self.json_columns:
            if not isinstance(row.get(name), str):
                raise ValueError(f"{place}: got {row.get(name)!r:.80} in the column {name!r}; need a text of JSON")
            try:
                row[name] = parse_json(row[name])
            except ValueError as error:
                raise ValueError(f"{place}, column {name!r}: got {error}; need a text of JSON") from error
        # The user's column of splits decides before the file's split.
        return row if split == ALL else row | {"split": row.get("split", split)}

    def _download(self) -> tuple[Path, dict[str, list[str]]]:
        """The folder of the data set, and the files of each split of the tasks."""
        repo, found = self.hub_repo(), dict[str, list[str]]()

        def select(listing: Mapping[str, int], commit: str) -> Sequence[str]:
            found.clear()
            # The card of another commit may name other files.
            card = _card(replace(repo, revision=commit), listing)
            found.update(self._chosen(split_files(listing, card, self.config)))
            own = [CARD] if CARD in listing else []
            return [*own, *dict.fromkeys(name for names in found.values() for name in names)]

        return snapshot(repo, select), found

    def _chosen(self, files: Splits) -> dict[str, list[str]]:
        """The files of each split of the tasks."""
        there = ", ".join(files)
        if absent := [theirs for theirs in self.splits.values() if theirs not in files]:
            raise ValueError(f"which has the splits {there}, and no {absent[0]!r}; need one of them in its splits")
        if self.splits:
            return {ours: files[theirs] for ours, theirs in self.splits.items()}
        if len(files) == 1:
            return {ALL: next(iter(files.values()))}
        chosen = dict[str, list[str]]()
        for theirs in files:
            if theirs in KNOWN:
                chosen.setdefault(KNOWN[theirs], []).extend(files[theirs])
        if "train" not in chosen:
            first = next(iter(files))
            raise ValueError(
                f"which has the splits {there}; need its splits by ours, such as splits={{'train': '{first}'}}"
            )
        return chosen


def _card(repo: HubRepo, listing: Mapping[str, int]) -> Mapping[str, Any]:
    """The metadata of the data set's card; {} without a card.

    Raises:
        ValueError: when it can't be read.
    """
    if CARD not in listing:
        return {}
    folder = snapshot(repo, lambda _listing, _commit: [CARD], lambda cached: (cached / CARD).is_file())
    import huggingface_hub

    try:
        found: object = cast("Any", huggingface_hub).metadata_load(folder / CARD)
    # The parser of YAML has errors of its own.
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        raise ValueError(f"whose card can't be read ({line}); need another revision") from error
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
