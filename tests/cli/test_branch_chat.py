"""`bough chat --at`: from a turn of a stored tree, with branches and rows as the viewer keeps them."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from tests.cli.test_chat_command import lines
from tests.small import run as small
from tests.talk import Bough

from bough.cli.branch_chat import chat_at
from bough.cli.branch_player import BranchPlayer
from bough.config import ConfigError
from bough.env import Branching
from bough.store import StoreError, read_conversations, read_trees
from bough.train import Warmup, start
from bough.tree import Credited, Kind, Source, Tree, counted, leaves, messages_in, path, turns
from bough.worlds.frozenlake import FrozenLake


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = small().replace(steps=1, warmup=Warmup(demonstrations=8, epochs=2, learning_rate=1e-2, batch_tokens=256))
    return start(run, tmp_path_factory.mktemp("runs"), terminal=False).path


@pytest.fixture
def step(trained: Path) -> int:
    return max(int(file.stem.removeprefix("step_")) for file in (trained / "trees").glob("*.safetensors"))


def first_tree(trained: Path, step: int) -> Tree:
    return read_trees(trained / "trees" / f"step_{step:06d}.safetensors", Credited)[0].tree


def digest(folder: Path) -> str:
    files = sorted(each for each in folder.rglob("*") if each.is_file() and each.name != "run.lock")
    return sha256(b"".join(str(each).encode() + each.read_bytes() for each in files)).hexdigest()


def branch_files(branches: Path) -> list[Path]:
    return sorted(branches.glob("*/*/*.safetensors"))


def test_actions_and_samples_go_on_from_a_turn(
    trained: Path, step: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two typed actions, a step back, and three samples; the run stays as it was."""
    before = digest(trained)
    given = ("right", "down", "/undo", "/sample 3", "/sample", "/save", "/help", "/go b0:99999", "/sample x", "/wrong")
    chat_at(f"{trained}:{step}.0:0", tmp_path, read=lines(*given))
    said = capsys.readouterr().out
    assert digest(trained) == before
    first, second, sampled, one = (read_trees(each)[0].tree for each in branch_files(tmp_path))  # type: ignore[union-attr]
    assert [int(turns(each)[leaves(each)].max()) for each in (first, second)] == [1, 2]
    assert (first.source[first.kind == Kind.ACTION] == Source.TEACHER).all()
    assert (len(leaves(sampled)), len(leaves(one))) == (3, 1)
    begun = path(sampled, int(leaves(sampled)[0]))
    assert sampled.source[begun[sampled.kind[begun] == Kind.ACTION]].tolist()[:2] == [Source.TEACHER, Source.SAMPLED]
    assert "you: right" in said
    assert said.count("turn 1") == 1, "a move shows what is new alone"
    assert "  b2:" in said
    assert "/go with one of these shows it" in said
    assert "got node b0:99999; the tree has the nodes 0 to" in said
    assert "got /sample x; need /sample, /sample N, or /sample N STEP" in said
    assert said.count("TEXT             an action at the present turn") == 2
    kept = json.loads((branch_files(tmp_path)[1]).with_suffix(".json").read_text())
    assert kept["at"].startswith("b0:")


def test_paths_are_saved_for_a_warm_up(
    trained: Path, step: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After two moves from the stored turn both actions are examples; the turn of the run before them is not."""
    tree = first_tree(trained, step)
    at = next(int(end) for end in counted(tree) if turns(tree)[end] > 1)
    early = next(int(node) for node in path(tree, at)[::-1] if turns(tree)[node] == 1)
    chat_at(
        f"{trained}:{step}.0:{early}",
        tmp_path,
        read=lines("right", "right", "/save", "/save all", f"/prefer {at}", "/save x"),
    )
    said = capsys.readouterr().out
    (folder,) = tmp_path.glob("*")
    only_new, whole = map(json.loads, (folder / "demonstrations.jsonl").read_text().splitlines())
    weights = [each.get("weight") for each in only_new["messages"] if each["role"] == "assistant"]
    assert weights == [0, None, None]
    assert all("weight" not in each for each in whole["messages"])
    (preferred,) = map(json.loads, (folder / "preferences.jsonl").read_text().splitlines())
    assert preferred["chosen"][0]["content"] == "right"
    assert len(read_conversations(folder / "demonstrations.jsonl")) == 2
    assert f"warmup.file={folder / 'demonstrations.jsonl'}" in said
    assert "got /save x; need /save, or /save all" in said


def test_an_episode_that_is_over_takes_no_action(
    trained: Path, step: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first step to the left leads into a hole."""
    assert "O P" in str(messages_in(first_tree(trained, step).info[0]))
    chat_at(f"{trained}:{step}.0:0", tmp_path, read=lines("left", "left", "/undo", "/undo"))
    said = capsys.readouterr().out
    assert "not solved (terminated" in said
    assert "where the episode is over" in said
    assert "there is nothing to undo" in said
    assert len(branch_files(tmp_path)) == 1


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("{run}", "need RUN:TREE:NODE, such as runs/a:12.3:5"),
        ("{run}:3", "need RUN:TREE:NODE"),
        ("nowhere:1.0:0", "got 'nowhere', which is no run directory"),
        ("{run}:x:0", "got the tree 'x'; need STEP.INDEX"),
        ("{run}:{step}.0:x", "got the node 'x'; need a number"),
        ("{run}:{step}.99:0", "has 3 trees, the first is"),
        ("{run}:77.0:0", "got step 77, which has no stored trees; need one of"),
        ("{run}:{step}.0:9999", "got node 9999; the tree has the nodes 0 to"),
        ("{run}:{step}.0:b4:1", "got branch 4; need one of []"),
    ],
)
def test_places_that_do_not_exist(trained: Path, step: int, tmp_path: Path, at: str, words: str) -> None:
    with pytest.raises((ConfigError, StoreError)) as refused:
        chat_at(at.format(run=trained, step=step), tmp_path, read=lines())
    assert words in str(refused.value)


def test_the_command_takes_no_other_target(bough: Bough, trained: Path, step: int, tmp_path: Path) -> None:
    told = ("chat", "--at", f"{trained}:{step}.0:0", "--task", "2")
    assert "got --task too; need --step, --seed and --branches alone" in bough(*told, folder=tmp_path).error(2)


def test_a_world_that_cannot_go_back_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = small().replace(steps=0, warmup=Warmup(), name="once")
    directory = start(once, tmp_path, terminal=False).path
    monkeypatch.setattr(FrozenLake, "branching", Branching.NONE)
    player = BranchPlayer()
    with pytest.raises(ConfigError, match=r"the world 'small', which can't go back to an earlier state"):
        player.check(directory, None)
    player.close()
