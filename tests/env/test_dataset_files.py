"""The files of data sets, as people lay them out."""

from typing import Any

import pytest

from bough.env.dataset_files import Splits, split_files


def config(name: str, *files: tuple[str, object], **more: object) -> dict[str, object]:
    return {"config_name": name, "data_files": [{"split": split, "path": path} for split, path in files], **more}


TWO = [config("main", ("train", "main/train-*"), ("test", "main/test-*")), config("other", ("train", "other/*"))]
OF_TWO = ["main/train-0.parquet", "main/test-0.parquet", "other/train.parquet"]


@pytest.mark.parametrize(
    ("names", "configs", "chosen", "found"),
    [
        # By the card.
        (OF_TWO, TWO, "main", {"train": OF_TWO[:1], "test": OF_TWO[1:2]}),
        (OF_TWO, TWO, "other", {"train": OF_TWO[2:]}),
        (OF_TWO, [TWO[0], {**TWO[1], "default": True}], "", {"train": OF_TWO[2:]}),
        (OF_TWO, [{**TWO[0], "config_name": "default"}, TWO[1]], "", {"train": OF_TWO[:1], "test": OF_TWO[1:2]}),
        (["a.csv", "b.csv", "c.csv"], [config("x", ("all", ["a.csv", "b.csv"]))], "", {"all": ["a.csv", "b.csv"]}),
        (["a.csv", "b.csv"], [{"config_name": "x", "data_files": "b.*"}], "", {"train": ["b.csv"]}),
        (["a.csv", "b.csv"], [{"config_name": "x", "data_files": {"dev": "a.csv"}}], "", {"dev": ["a.csv"]}),
        (
            ["x/a/1.csv", "x/2.csv", "3.csv"],
            [config("x", ("train", "x/**/*.csv"))],
            "",
            {"train": ["x/2.csv", "x/a/1.csv"]},
        ),
        (["x/a/1.csv", "x/2.csv"], [config("x", ("train", "x/*.csv"))], "", {"train": ["x/2.csv"]}),
        (["x/s.csv", "s.csv"], [config("x", ("train", "s.csv"), data_dir="x")], "", {"train": ["x/s.csv"]}),
        (["x/test.csv", "y.csv"], [{"config_name": "x", "data_dir": "x"}], "", {"test": ["x/test.csv"]}),
        # By names.
        (["data/train-00000-of-00001.parquet", "data/hard-00000-of-00001.parquet"], [], "", None),
        (["train.jsonl", "test.jsonl", "README.md"], [], "", {"test": ["test.jsonl"], "train": ["train.jsonl"]}),
        (
            ["gsm_dev.json", "gsm_training.json"],
            [],
            "",
            {"validation": ["gsm_dev.json"], "train": ["gsm_training.json"]},
        ),
        (["train/a.csv", "train/b.csv", "eval/a.csv"], [], "", None),
        (["alpaca.json"], [], "", {"train": ["alpaca.json"]}),
        (["train.csv", "train.parquet"], [], "", {"train": ["train.parquet"]}),
        ([".cache/train.csv", "_old/train.csv", "dataset_infos.json", "train.csv"], [], "", {"train": ["train.csv"]}),
        (["main/train/0000.parquet", "b/train/0000.parquet"], [], "main", {"train": ["main/train/0000.parquet"]}),
    ],
)
def test_files_of_a_split(names: list[str], configs: list[Any], chosen: str, found: Splits | None) -> None:
    if found is None:
        found = {}
        for name in sorted(names):
            words = {
                "data/train": "train",
                "data/hard": "hard",
                "train/a": "train",
                "train/b": "train",
                "eval/a": "test",
            }
            found.setdefault(next(words[each] for each in words if name.startswith(each)), []).append(name)
    assert split_files(names, {"configs": configs}, chosen) == found


@pytest.mark.parametrize(
    ("names", "configs", "chosen", "message"),
    [
        (
            ["a.zip", "load.py"],
            [],
            "",
            r"no files of rows \(.jsonl, .*\); need some: .* revision @refs/convert/parquet",
        ),
        (OF_TWO, TWO, "", "which has several configs; need one of them: config=main or config=other"),
        (OF_TWO, TWO, "mian", "which has no config 'mian'; need one of them: config=main or config=other"),
        (
            OF_TWO,
            [config("x", ("train", "gone/*"))],
            "",
            "card has files for the split train of the config x that are not",
        ),
        (["main/train/0.parquet", "b/train/0.parquet"], [], "", "has the folders b, main; need one of them: config=b"),
        (
            ["a/train.csv"],
            [],
            "b",
            "no config 'b' in its card, and no such folder of files; need one of its folders, a, or",
        ),
        (["a.csv"], [], "b", "and no such folder of files; need no config"),
        (
            ["a.csv"],
            [{"config_name": "x", "data_dir": "gone"}],
            "",
            "card has the folder gone for the config x, in which no file has a format",
        ),
    ],
)
def test_what_is_not_clear_is_refused(names: list[str], configs: list[Any], chosen: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_files(names, {"configs": configs}, chosen)
