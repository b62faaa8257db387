"""Pages without a server: what they hold, that they load nothing else, and that no text becomes markup."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.viewer.marked import marked_copy

from bough.store import RunDirectory, StoreError
from bough.train.run_parts import RunParts
from bough.viewer.branches import Place, RunBranches
from bough.viewer.one_script import WEB, one_script
from bough.viewer.runs import Runs
from bough.viewer.stored_answers import Selection, about_run, about_trees
from bough.viewer.stored_pages import write_folder, write_report
from bough.viewer.stored_trees import TreeName
from bough.viewer.tree_answers import TreeAnswers
from bough.viewer.turn_changes import turn_changes

NASTY = "</script><script>alert('x')</script><b>&amp;\"'"


class Page(HTMLParser):
    """The tags of a page, their attributes, and its data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.scripts: list[str] = []
        self.open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open = tag
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        del tag
        self.open = ""

    def handle_data(self, data: str) -> None:
        if self.open == "script":
            self.scripts.append(data)

    def data(self, at: int) -> Any:
        return json.loads(self.scripts[at])


@pytest.fixture(scope="module")
def pages(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "site"
    said: list[str] = []
    assert write_folder(folder, Runs([run.parent]), RunParts(), trees=None, said=said.append) == 1
    assert said == ["soko: 6 trees"], "all of a small run"
    return folder


def test_a_folder_of_pages_has_all_answers_of_the_server(pages: Path, run: Path) -> None:
    page = Page((pages / "index.html").read_text())
    answers, files = page.data(0), page.data(1)
    runs = Runs([run.parent])
    for path, answer in about_run(runs, "soko").items():
        assert answers[path] == json.loads(json.dumps(answer)), path
    assert answers["/api/run/soko/trees"]["notes"] == []
    assert answers["/api/run/soko/trees"]["rules"] == [], "a rule needs the server"
    (step, _) = answers["/api/run/soko/trees"]["steps"][-1], None
    live = TreeAnswers(RunParts())
    for index in range(3):
        name = TreeName(step=step, index=index)
        path = f"/api/run/soko/tree/{name}"
        text = (pages / files[path]).read_text()
        found = json.loads(text.removeprefix("boughAnswers(").removesuffix(");\n"))
        whole = live.tree(run, name)
        assert found[path] == json.loads(json.dumps(whole))
        nodes = found[f"{path}/nodes"]
        assert nodes["last"] == whole["columns"]["last"]  # type: ignore[index]
        branches = RunBranches(folder=run / "none")
        for at in {0, len(nodes["last"]) // 2, len(nodes["last"]) - 1}:
            place = Place(branch=None, node=nodes["last"][at])
            expected = json.loads(json.dumps(live.node(run, name, place, branches)))
            assert restored(nodes, at) == expected
        assert nodes["pictures"][0].startswith("<svg"), "the environment's own view"


def restored(nodes: dict[str, Any], at: int) -> dict[str, Any]:
    """As `web/tree/restored.js`."""
    before = restored(nodes, nodes["parent"][at]) if nodes["parent"][at] >= 0 else {}
    own, on = nodes["turns"][at]["own"], nodes["turns"][at]["on"]
    return before | own | {name: before[name][:same] + rest for name, (same, rest) in on.items()}


def test_turns_are_stored_as_what_differs() -> None:
    records = [{"a": [1, 2], "b": 1}, {"a": [1, 2, 3], "b": 1}, {"a": [1, 5], "b": 2}]
    changes = turn_changes(records, [-1, 0, 1])
    assert changes[1] == {"own": {}, "on": {"a": [2, [3]]}}
    assert changes[2] == {"own": {"b": 2}, "on": {"a": [1, [5]]}}


def test_a_few_trees_a_step_are_said_and_their_links_lead_to_each_other(run: Path) -> None:
    found: dict[str, Any] = {}
    for some in about_trees(run, "soko", TreeAnswers(RunParts()), Selection(trees=1, whole="more are there")):
        found |= some
    about = found["/api/run/soko/trees"]
    assert len(about["notes"]) == len(about["steps"]) == 2
    assert about["notes"][-1] == f"1 of 3 trees of step {about['steps'][-1]} are in these pages; more are there."
    for step in about["steps"]:
        rows = found[f"/api/run/soko/step/{step}"]
        assert len({*rows["paths"]["tree"]}) == len(rows["trees"]) == 1
        tree = found[f"/api/run/soko/tree/{rows['trees'][0]['name']}"]
        assert (tree["previous"], tree["next"], tree["of_step"]) == (None, None, 3)
    last: dict[str, Any] = {}
    for some in about_trees(run, "soko", TreeAnswers(RunParts()), Selection(steps=1, most_bytes=0)):
        last |= some
    assert last["/api/run/soko/trees"]["steps"] == about["steps"][-1:]
    assert sum(path.endswith("/nodes") for path in last) == 1, "no tree begins above the bound"


def test_a_damaged_step_is_a_note(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "soko")
    file = max((tmp_path / "soko" / "trees").glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:100])
    (some,) = [
        each
        for each in about_trees(tmp_path / "soko", "soko", TreeAnswers(RunParts()), Selection())
        if "/api/run/soko/trees" in each
    ]
    assert len(some["/api/run/soko/trees"]["steps"]) == 1  # type: ignore[arg-type]
    assert str(file.name) in str(some["/api/run/soko/trees"]["notes"])


def test_other_files_are_not_written_over(pages: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(StoreError, match="got a folder with other files; need an empty one"):
        write_folder(tmp_path, Runs([run.parent]), RunParts(), trees=None)
    before = len([*(pages / "answers").iterdir()])
    write_folder(pages, Runs([run.parent]), RunParts(), trees=None)
    assert len([*(pages / "answers").iterdir()]) == before


def test_a_report_loads_nothing_and_allows_its_own_script_alone(run: Path) -> None:
    html = (run / "report.html").read_text()
    page = Page(html)
    assert page.tags.count("script") == 3
    assert not {"src", "srcset"} & {name for name, _ in page.attributes}
    assert all(value.startswith("data:") for name, value in page.attributes if name == "href" and value[0] != "#")
    (policy,) = (value for name, value in page.attributes if name == "content" and value.startswith("default-src"))
    assert re.search(r"script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+';", policy)
    assert "unsafe" not in policy
    assert "connect-src" not in policy, "the default forbids it"
    assert len(html) < 2_000_000
    assert page.data(0)["/api/run/soko"]["headline"].startswith("Held-out success ")


def test_no_text_of_a_run_becomes_markup(run: Path, tmp_path: Path) -> None:
    marked_copy(run, tmp_path / "soko", NASTY)
    write_report(tmp_path / "report.html", RunDirectory.open(tmp_path / "soko"), RunParts())
    html = (tmp_path / "report.html").read_text()
    plain, nasty = Page((run / "report.html").read_text()), Page(html)
    assert nasty.tags == plain.tags
    assert nasty.data(0)["/api/run/soko"]["why"] == NASTY
    turns = str([answer for path, answer in nasty.data(0).items() if path.endswith("/nodes")])
    assert "<script>alert(" in turns


def test_long_settings_metrics_and_results_are_bounded(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "soko")
    config = json.loads((tmp_path / "soko" / "config.json").read_text())
    config["rows"] = [f"p{at}" for at in range(30_000)]
    config["code"] = "x" * 30_000
    (tmp_path / "soko" / "config.json").write_text(json.dumps(config))
    row = {"phase": "rl", **{f"n/{at}": 0.5 for at in range(100)}}
    lines = (json.dumps({"step": step, **row}) + "\n" for step in range(1, 3000))
    (tmp_path / "soko" / "metrics.jsonl").write_text("".join(lines))
    found = about_run(Runs([tmp_path]), "soko")
    settings: Any = found["/api/run/soko"]["settings"]
    assert re.search(r'"p99"\] \.\.\. \(cut: 30,000 items, checksum [0-9a-f]{8}\)$', settings["rows"])
    assert "(cut: 30,002 characters" in settings["code"]
    metrics: Any = found["/api/run/soko/metrics"]
    assert len(metrics["rows"]) <= 610
    assert metrics["rows"][-1]["step"] == 2999
    assert "One of 6 steps is shown" in metrics["note"]


def test_the_front_end_becomes_one_script() -> None:
    script = one_script()
    names = {file.relative_to(WEB).as_posix() for file in WEB.rglob("*.js")} - {"api.js"}
    assert {name for name in names if f"{json.dumps(name)}: () =>" in script} == names
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert 'module$("stored_api.js")' in script
    assert 'module$("api.js")' not in script
    assert "</script" not in script
