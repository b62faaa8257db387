"""Make the pack of TextWorld games that ships with Bough: small houses with a hidden thing to take.

Every game is drawn from one small vocabulary (12 rooms, 10 things, 10 containers, 4 keys), so a held-out game
is a new combination of words that occur in training, never a new word. The levels:

1. fetch: the thing lies in one of 5 rooms.
2. open: the thing is in one of three closed containers.
3. unlock: the thing is in a locked container; the key lies in another room.
4. search: as 3, in 6 rooms, and the key is in a closed container that the task does not name.

Taking a wrong thing loses the game; keys are never wrong. A room shows only its exits, so the agent must explore. A
game is named by the hash of its content (map, contents, start, task), and the content decides its split, so none is in
two of them. Each game is compiled by TextWorld's own Inform 7, and then solved by playing it.

    python scripts/make_textworld_games.py --work build/games --out src/bough/worlds/textworld/games

can be stopped and started again (what `--work` holds is not compiled again), and makes the same games from the same
seed, byte for byte but for the date that Inform writes into each story.
"""

import argparse
import hashlib
import io
import itertools
import json
import lzma
import random
import tarfile
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import textworld
from textworld import GameMaker
from textworld.generator.game import Event, Game, GameOptions, GameProgression, Quest
from textworld.generator.inform7 import Inform7Game
from textworld.logic import Action

from bough.env import Split
from bough.env.splits import content_hash, split_of

ROOMS = (
    "kitchen",
    "bedroom",
    "garage",
    "attic",
    "cellar",
    "garden",
    "library",
    "study",
    "hall",
    "porch",
    "bathroom",
    "office",
)
THINGS = ("coin", "lamp", "book", "ring", "cup", "apple", "rope", "map", "bell", "doll")
CLOSED = ("box", "crate", "cabinet", "basket", "drawer", "barrel")
LOCKED = {"chest": "brass key", "safe": "iron key", "trunk": "gold key", "locker": "steel key"}
"""Container -> the key that opens it, the same in all games."""
STEPS = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}
RULES = "Taking a thing that you were not asked for loses the game; keys may be taken."
SPLITS: Mapping[Split, int] = {"train": 200, "dev": 25, "test": 75}
"""Games of each split and level."""


@dataclass(frozen=True, kw_only=True)
class House:
    """A game before it is compiled, by the names the player reads.

    Attributes:
        level: 1 to 4.
        exits: room -> direction -> room.
        inside: thing, key or container -> the room or container it is in.
        locks: locked container -> its key.
        start: The room the player starts in.
        target: The thing to take.
    """

    level: int
    exits: Mapping[str, Mapping[str, str]]
    inside: Mapping[str, str]
    locks: Mapping[str, str]
    start: str
    target: str

    @cached_property
    def content(self) -> str:
        """What makes the game what it is; the same for games that differ by a turn or a mirror image of the map."""
        turns = [dict(zip(STEPS, ways, strict=True)) for ways in itertools.permutations(STEPS) if _is_turn(ways)]
        maps = [{room: {turn[d]: to for d, to in ways.items()} for room, ways in self.exits.items()} for turn in turns]
        exits = min(maps, key=lambda turned: json.dumps(turned, sort_keys=True))
        return json.dumps(asdict(self) | {"exits": exits}, sort_keys=True)

    @cached_property
    def hash(self) -> str:
        """The content's name."""
        return content_hash(self.content)

    @cached_property
    def split(self) -> Split:
        """Decided by the content alone."""
        return split_of(self.content)

    @property
    def containers(self) -> list[str]:
        """Full, empty or locked, in the order of their names."""
        return sorted(name for name in self.inside if name in CLOSED or name in LOCKED)


def _is_turn(ways: tuple[str, ...]) -> bool:
    """Whether this order of the four directions is a rotation or mirror image of `STEPS`: opposites stay opposites."""
    return BACK[ways[0]] == ways[1] and BACK[ways[2]] == ways[3]


def house(level: int, rng: random.Random) -> House:
    """Draw a game of a level."""
    rooms = rng.sample(ROOMS, 6 if level == 4 else 5)
    exits = _map(rooms, rng)
    start = rng.choice(rooms)
    far = [room for room in rooms if len(_route(exits, start, room)) >= 2] or [r for r in rooms if r != start]
    target, *wrong = rng.sample(THINGS, 3)
    goal = rng.choice(far)
    inside: dict[str, str] = {}
    locks: dict[str, str] = {}
    if level == 1:
        inside[target] = goal
        inside[wrong[0]] = goal if rng.random() < 0.5 else rng.choice(rooms)
    elif level == 2:
        box, *others = rng.sample(CLOSED, 3)
        inside |= {box: goal, others[0]: rng.choice(rooms), others[1]: rng.choice(rooms)}
        inside |= {target: box, wrong[0]: others[0]}
    else:
        chest, other = rng.sample(list(LOCKED), 2)
        box = rng.choice(CLOSED)
        locks |= {chest: LOCKED[chest], other: LOCKED[other]}
        elsewhere = [room for room in rooms if room != goal]
        inside |= {chest: goal, other: rng.choice(rooms), box: rng.choice(elsewhere)}
        inside |= {target: chest, wrong[0]: other, LOCKED[other]: rng.choice(rooms)}
        inside |= {LOCKED[chest]: box if level == 4 else rng.choice(elsewhere)}
    inside[wrong[1]] = rng.choice(rooms)
    return House(level=level, exits=exits, inside=inside, locks=locks, start=start, target=target)


def _map(rooms: list[str], rng: random.Random) -> dict[str, dict[str, str]]:
    """A connected map on a grid: each room grows out of an earlier one, and one in four other neighbours is joined."""
    at = {(0, 0): rooms[0]}
    joined: set[tuple[tuple[int, int], str]] = set()
    for room in rooms[1:]:
        free = [(x, y, d) for x, y in at for d, (i, j) in STEPS.items() if (x + i, y + j) not in at]
        x, y, direction = rng.choice(free)
        at[x + STEPS[direction][0], y + STEPS[direction][1]] = room
        joined.add(((x, y), direction))
    for x, y in at:
        for direction in ("north", "east"):
            if (x + STEPS[direction][0], y + STEPS[direction][1]) in at and rng.random() < 0.25:
                joined.add(((x, y), direction))
    exits: dict[str, dict[str, str]] = {room: {} for room in sorted(rooms)}
    for (x, y), direction in joined:
        here, there = at[x, y], at[x + STEPS[direction][0], y + STEPS[direction][1]]
        exits[here][direction] = there
        exits[there][BACK[direction]] = here
    return {room: dict(sorted(ways.items())) for room, ways in exits.items()}


def _route(exits: Mapping[str, Mapping[str, str]], start: str, goal: str) -> list[str]:
    """The shortest way, as commands."""
    ways: dict[str, list[str]] = {start: []}
    queue = deque([start])
    while goal not in ways:
        room = queue.popleft()
        for direction, there in exits[room].items():
            if there not in ways:
                ways[there] = [*ways[room], f"go {direction}"]
                queue.append(there)
    return ways[goal]


def walkthrough(game: House) -> list[str]:
    """The commands that solve a game, with the fewest steps between one thing needed and the next."""
    commands: list[str] = []
    here = game.start

    def fetch(thing: str) -> None:
        nonlocal here
        place = game.inside[thing]
        if place in game.locks:
            fetch(game.locks[place])
        room = game.inside.get(place, place)
        commands.extend(_route(game.exits, here, room))
        here = room
        if place == room:
            commands.append(f"take {thing}")
            return
        if place in game.locks:
            commands.append(f"unlock {place} with {game.locks[place]}")
        commands.extend([f"open {place}", f"take {thing} from {place}"])

    fetch(game.target)
    return commands


def objective(game: House) -> str:
    """What the game asks for."""
    place = game.inside[game.target]
    return f"Take the {game.target}." if place in game.exits else f"Take the {game.target} from the {place}."


def build(game: House) -> Game:
    """The game in TextWorld's terms."""
    options = GameOptions()
    options.seeds = 0
    make = GameMaker(options)
    entity = {name: make.new_room(name) for name in game.exits}
    for name, room in entity.items():
        ways = ", ".join(game.exits[name])
        boxes = "[if a container is in the location] You see [a list of containers in the location].[end if]"
        room.infos.desc = f"Exits: {ways}.{boxes}"
    for name, ways in game.exits.items():
        for direction, there in ways.items():
            if direction in ("north", "east"):
                make.connect(entity[name].exits[direction], entity[there].exits[BACK[direction]])
    for name in [*game.containers, *sorted(set(game.inside) - set(game.containers))]:
        kind = "c" if name in game.containers else "k" if name.endswith(" key") else "o"
        entity[name] = make.new(type=kind, name=name, desc=f"The {name}.")
        if kind == "c":
            entity[name].add_property("locked" if name in game.locks else "closed")
    for name, place in sorted(game.inside.items()):
        entity[place].add(entity[name])
    for box, key in sorted(game.locks.items()):
        make.add_fact("match", entity[key], entity[box])
    make.set_player(entity[game.start])
    carried = {name: make.new_fact("in", entity[name], make.inventory) for name in game.inside if name in THINGS}
    win = Event(conditions={carried[game.target]})
    lose = [Event(conditions={fact}) for name, fact in sorted(carried.items()) if name != game.target]
    make.quests = [Quest(win_events=[win], fail_events=lose, desc=objective(game))]
    win.actions = _actions(make.build(), walkthrough(game))
    built = make.build()
    # Set last: `build` writes an objective that gives the way away.
    built.objective = objective(game)
    return built


def _actions(game: Game, commands: list[str]) -> list[Action]:
    """The commands as actions of TextWorld's logic, from which its expert plans."""
    progress, wording = GameProgression(game, track_quests=False), Inform7Game(game)
    actions: list[Action] = []
    for command in commands:
        index = wording.gen_commands_from_actions(progress.valid_actions).index(command)
        actions.append(progress.valid_actions[index])
        progress.update(actions[-1])
    return actions


def solve(path: Path) -> int:
    """Play a compiled game by its own expert; the number of steps to the win."""
    infos = textworld.EnvInfos(policy_commands=True, won=True)
    env = textworld.start(str(path), infos)
    state, steps = env.reset(), 0
    while not state.won:
        if not state.policy_commands or steps == 100:
            raise RuntimeError(f"{path}: TextWorld's expert does not win this game")
        state, _, _ = env.step(state.policy_commands[0])
        steps += 1
    env.close()
    return steps


def compile_game(game: House, work: Path) -> dict[str, object]:
    """Compile and solve one game, unless `work` has it; its entry in the index."""
    note = work / f"{game.hash}.index.json"
    if not note.exists():
        with tempfile.TemporaryDirectory(dir=work) as folder:
            options = GameOptions()
            options.path = f"{folder}/{game.hash}.z8"
            path = Path(textworld.generator.compile_game(build(game), options))
            steps = solve(path)
            for suffix in (".z8", ".json"):
                path.with_suffix(suffix).replace(work / f"{game.hash}{suffix}")
        entry = {"split": game.split, "level": game.level, "rooms": len(game.exits), "steps": steps}
        note.write_text(json.dumps(entry))
    return json.loads(note.read_text())


def draw(seed: int, scale: float) -> Iterator[House]:
    """Different games until each split of each level is full."""
    for level in (1, 2, 3, 4):
        rng, seen = random.Random(f"{seed}/{level}"), set[str]()
        left: dict[Split, int] = {split: max(1, round(size * scale)) for split, size in SPLITS.items()}
        while any(left.values()):
            game = house(level, rng)
            if len(walkthrough(game)) >= level + 2 and left[game.split] and game.hash not in seen:
                seen.add(game.hash)
                left[game.split] -= 1
                yield game


def pack(entries: Mapping[str, dict[str, object]], work: Path, out: Path) -> None:
    """Write `index.json` and one solid archive per level and split: games of one level share nearly all their bytes."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("*.tar.xz"), *out.glob("index.json")]:
        old.unlink()
    index: dict[str, dict[str, object]] = {}
    for level, split in sorted({(entry["level"], entry["split"]) for entry in entries.values()}):
        archive = f"{split}-{level}.tar.xz"
        with (
            lzma.open(out / archive, "wb", preset=9 | lzma.PRESET_EXTREME) as raw,
            tarfile.open(fileobj=raw, mode="w") as tar,
        ):
            for name in sorted(name for name, entry in entries.items() if entry["archive"] == archive):
                files = {f"{name}{suffix}": (work / f"{name}{suffix}").read_bytes() for suffix in (".z8", ".json")}
                for file, data in files.items():
                    info = tarfile.TarInfo(file)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
                index[name] = entries[name] | {"sha256": hashlib.sha256(b"".join(files.values())).hexdigest()}
    (out / "index.json").write_text(json.dumps({"rules": RULES, "games": dict(sorted(index.items()))}, indent=0) + "\n")


def main() -> None:
    """Draw, compile, solve and pack."""
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--work", type=Path, required=True, help="keeps the compiled games")
    parse.add_argument("--out", type=Path, required=True, help="where the pack goes")
    parse.add_argument("--seed", type=int, default=0)
    parse.add_argument("--scale", type=float, default=1.0, help="the share of the full number of games")
    parse.add_argument("--processes", type=int, default=2)
    args = parse.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    games = list(draw(args.seed, args.scale))
    with ProcessPoolExecutor(args.processes) as pool:
        entries: dict[str, dict[str, object]] = {}
        for game, entry in zip(games, pool.map(compile_game, games, itertools.repeat(args.work)), strict=True):
            entries[game.hash] = entry | {"archive": f"{game.split}-{game.level}.tar.xz"}
            if len(entries) % 50 == 0:
                print(f"{len(entries)} of {len(games)} games", flush=True)
    pack(entries, args.work, args.out)
    print(f"{len(entries)} games, {sum(path.stat().st_size for path in args.out.iterdir())} bytes in {args.out}")


if __name__ == "__main__":
    main()
