import io
import json
import re
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

from bough.env import Step
from bough.env.splits import split_of
from bough.tree import Task
from bough.usercode import load_module
from bough.worlds.textworld import TextWorld
from bough.worlds.textworld.env import load
from bough.worlds.textworld.pack import SHIPPED, open_pack

LEVELS = (1, 2, 3, 4)


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_module(Path(__file__).parents[3] / "scripts" / "make_textworld_games.py")


def one_task(level: int, seed: int = 0) -> Task:
    return TextWorld(levels=(level,)).tasks("dev", 1, seed)[0]


def walk(env: TextWorld, task: Task, commands: list[str]) -> list[Step]:
    state, steps = env.start(task), list[Step]()
    for command in commands:
        steps.append(env.step(state, command))
        state = steps[-1].state
    return steps


def test_the_pack_is_what_the_script_draws_and_no_game_is_in_two_splits(script: ModuleType) -> None:
    drawn = list(script.draw(0, 1.0))
    games = open_pack(SHIPPED).games
    assert {house.hash: (split_of(house.content), house.level) for house in drawn} == {
        name: (entry["split"], entry["level"]) for name, entry in games.items()
    }
    assert len({house.content for house in drawn}) == len(games)
    sizes = Counter((entry["split"], entry["level"]) for entry in games.values())
    assert sizes == {(split, level): size for split, size in script.SPLITS.items() for level in LEVELS}
    assert sum(path.stat().st_size for path in SHIPPED.iterdir() if path.is_file()) < 7_000_000


def test_a_turned_or_mirrored_house_is_the_same_game(script: ModuleType) -> None:
    house = next(script.draw(0, 0.01))
    turn = {"north": "east", "east": "south", "south": "west", "west": "north"}
    mirror = {"north": "north", "south": "south", "east": "west", "west": "east"}
    for way in (turn, mirror):
        turned = replace(house, exits={r: {way[d]: t for d, t in ways.items()} for r, ways in house.exits.items()})
        assert turned != house
        assert turned.hash == house.hash
    other = next(room for room in house.exits if room != house.start)
    assert replace(house, start=other).hash != house.hash


def test_a_game_is_the_house_its_name_says(script: ModuleType) -> None:
    houses = {house.hash: house for house in script.draw(0, 1.0)}
    env = TextWorld(max_steps=60)
    for level in LEVELS:
        task = one_task(level)
        house = houses[task.data["game"]]
        start = env.start(task)
        exits = ", ".join(house.exits[house.start])
        assert start.observation.startswith(f"{script.objective(house)}\n{house.start.capitalize()}. Exits: {exits}.")
        steps = walk(env, task, script.walkthrough(house))
        assert steps[-1].success


def test_held_out_games_bring_no_new_words() -> None:
    env = TextWorld(max_steps=60)

    def words(split: str, count: int) -> set[str]:
        found = set[str]()
        for task in env.tasks(split, count, 0):  # type: ignore
            start = env.start(task)
            found |= set(re.findall(r"\w+", start.observation))
            for step in walk(env, task, list(env.plan(start) or ())):
                found |= set(re.findall(r"\w+", step.state.observation))
        return found

    assert words("test", 12) <= words("train", 60)


def test_any_folder_of_games_is_a_pack(tmp_path: Path) -> None:
    names = [str(task.data["game"]) for task in TextWorld(levels=(1,)).tasks("dev", 12, 0)]
    for name in names:
        story = open_pack(SHIPPED).story(name)
        for suffix in (".z8", ".json"):
            shutil.copy(story.with_suffix(suffix), tmp_path)
    env = TextWorld(games=str(tmp_path))
    sizes = Counter(entry["split"] for entry in open_pack(tmp_path).games.values())
    assert sum(sizes.values()) == 12
    task = env.tasks("train", sizes["train"], 0)[0]
    assert walk(env, task, list(env.plan(env.start(task)) or ()))[-1].success
    assert env.data_hash != TextWorld().data_hash
    assert len(env.data_hash) == 64


def test_many_may_unpack_at_once_and_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pack = open_pack(SHIPPED)
    names = [name for name, entry in pack.games.items() if entry["archive"] == "dev-1.tar.xz"][:4]
    with ThreadPoolExecutor(4) as pool:
        stories = list(pool.map(pack.story, names))
    assert [story.stem for story in stories] == names
    assert [path.name for path in stories[0].parents[1].iterdir()] == ["dev-1"]


# Bad packs.


def test_a_changed_game_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pack = open_pack(SHIPPED)
    name = str(one_task(1).data["game"])
    story = pack.story(name)
    story.write_bytes(story.read_bytes()[:-1] + b"?")
    with pytest.raises(ValueError, match=rf"the files of game {name} in .* have SHA-256 .*; need .*Delete that folder"):
        pack.story(name)


def test_what_cannot_be_unpacked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load.cache_clear()
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"cannot unpack .*dev-1\.tar\.xz into .*; need 40 MB there, or XDG_CACHE_HOME"):
        TextWorld().start(one_task(1, seed=5))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copy(SHIPPED / "index.json", tmp_path)
    (tmp_path / "dev-1.tar.xz").write_bytes((SHIPPED / "dev-1.tar.xz").read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"got a damaged archive, .*dev-1\.tar\.xz .*; restore the pack"):
        TextWorld(games=str(tmp_path)).start(one_task(1))
    assert not list(tmp_path.glob("cache/bough/textworld/*/*"))


def pack_of(folder: Path, archive: str, files: dict[str, bytes], name: str = "g") -> Path:
    """A pack with one game, whose index has the hash of the files g.z8 and g.json."""
    folder.mkdir(exist_ok=True)
    with tarfile.open(folder / Path(archive).name, "w:xz") as tar:
        for file, data in files.items():
            member = tarfile.TarInfo(file)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    known = sha256(files.get("g.z8", b"") + files.get("g.json", b"")).hexdigest()
    entry = {"split": "train", "level": 1, "rooms": 1, "steps": 1, "archive": archive, "sha256": known}
    (folder / "index.json").write_text(json.dumps({"rules": "", "games": {name: entry}}))
    return folder


@pytest.mark.parametrize("archive", ["../a.tar.xz", "sub/a.tar.xz", "/a.tar.xz", "..", "a\0.tar.xz", "a.zip"])
def test_an_archive_with_the_name_of_another_place_is_refused(archive: str, tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "pack", "a.tar.xz", {"g.z8": b"a", "g.json": b"b"})
    index = pack / "index.json"
    index.write_text(index.read_text().replace("a.tar.xz", json.dumps(archive)[1:-1]))
    with pytest.raises(ValueError, match=r"got an index that cannot be read, .*index\.json \(game 'g' has the"):
        TextWorld(games=str(pack))


def test_a_game_with_the_name_of_another_place_is_refused(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "pack", "a.tar.xz", {"g.z8": b"a", "g.json": b"b"}, name="../../g")
    with pytest.raises(ValueError, match=r"game '../../g' has the file '../../g'; need a name without a directory"):
        TextWorld(games=str(pack))


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "[]", "{}", '{"rules": "", "games": []}', '{"rules": "", "games": {"a": 1}}']
)
def test_an_index_of_something_else_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(ValueError, match=r"got an index that cannot be read, .*index\.json"):
        TextWorld(games=str(tmp_path))


def test_only_games_with_their_hash_are_written_and_only_below_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = {
        "../../g.z8": b"x",
        "g.z8": b"a",
        "g.json": b"b",
        "../../../evil": b"c",
        "/tmp/evil": b"d",
        "other.z8": b"e",
    }
    story = open_pack(pack_of(tmp_path / "pack", "a.tar.xz", files)).story("g")
    assert sorted(each.name for each in story.parent.iterdir()) == ["g.json", "g.z8"]
    assert story.read_bytes() == b"a"
    index = tmp_path / "pack" / "index.json"
    index.write_text(index.read_text().replace('"sha256": "', '"sha256": "0'))
    open_pack.cache_clear()
    with pytest.raises(ValueError, match=r"a\.tar\.xz: the files of game g are missing or have SHA-256"):
        open_pack(tmp_path / "pack").story("g")
    assert [each for each in tmp_path.rglob("*") if each.is_file() and "evil" in each.name] == []
    assert len(list((tmp_path / "cache" / "bough" / "textworld").rglob("g.z8"))) == 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        # What an interpreter reads beyond the end of a story is undefined.
        ("cut", "(the process died|its own plan does not win it|it did not end)"),
        ("zeros", "its own plan does not win it"),
        ("description", "KeyError"),
    ],
)
def test_a_story_that_crashes_its_interpreter_is_refused(damage: str, reason: str, tmp_path: Path) -> None:
    name = str(one_task(1).data["game"])
    story = open_pack(SHIPPED).story(name)
    raw, text = story.read_bytes(), story.with_suffix(".json").read_bytes()
    damaged = {"cut": raw[:9000], "zeros": raw[:2000] + bytes(len(raw) - 2000)}.get(damage, raw)
    (tmp_path / f"{name}.z8").write_bytes(damaged)
    (tmp_path / f"{name}.json").write_bytes(b"{}" if damage == "description" else text)
    with pytest.raises(ValueError, match=rf"the game .*{name}\.z8, which cannot be played \(.*{reason}.*\); remove it"):
        load(tmp_path, name)
