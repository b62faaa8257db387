"""What is computed of a page: an executed action, a script played to its end, where an action points."""

from dataclasses import dataclass, replace

from bough.screen.pointing import Pointing, centre
from bough.worlds.miniwob.command import Command
from bough.worlds.miniwob.element import Ids, Reading
from bough.worlds.miniwob.oracle import QUOTED, next_action
from bough.worlds.miniwob.pages import HEIGHT, WIDTH, Episode, Pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """An executed action.

    Attributes:
        before: What the page showed.
        after: What it shows now; `before` for an impossible action.
        problem: Why the action was impossible; "" where it was executed.
        replayed: Number of actions replayed to reach the state.
    """

    before: Reading
    after: Reading
    problem: str = ""
    replayed: int = 0


def after(episode: Episode, command: Command) -> Episode:
    """The position after an action."""
    return replace(episode, actions=(*episode.actions, command))


def solution(pages: Pages, episode: Episode, most: int) -> list[tuple[Reading, Command]] | None:
    """Plays the script of a page; returns what it read and did where that succeeds within `most` actions."""
    reading, _ = pages.show(episode)
    found: list[tuple[Reading, Command]] = []
    while len(found) < most:
        command = next_action(episode.kind, reading, episode.actions)
        if command is None:
            return None
        found.append((reading, command))
        shown, _ = pages.act(episode, command)
        if isinstance(shown, str):
            return None
        reading, episode = shown, after(episode, command)
        if reading.done:
            return found if reading.reward > 0 else None
    return None


def pointing(episode: Episode, reading: Reading, command: Command | None) -> Pointing:
    """Where an action pointed, and where the scripted solution's next action points."""
    wanted = next_action(episode.kind, reading, episode.actions)
    target = None if wanted is None else reading.element(wanted.ref)
    pointed = None if command is None else reading.element(command.ref)
    points = () if command is None else command.points or (() if pointed is None else (centre(pointed.box),))
    return Pointing(
        kind="" if command is None else command.verb,
        points=points,
        box=None if command is None else command.box,
        target_kind="" if wanted is None else wanted.verb,
        target="" if target is None else str(target.ref),
        target_box=None if target is None else target.box,
        screen=(WIDTH, HEIGHT),
    )


def admissible(reading: Reading, ids: Ids) -> tuple[str, ...]:
    """A click on each element, each option, and the quoted texts of the goal for each field."""
    if reading.done:
        return ()
    found: list[str] = []
    for each in reading.elements:
        name = reading.id_of(each.ref, ids)
        found.append(f"click {name}")
        enabled = "disabled" not in each.flags
        found += [f'select {name} "{option}"' for option in each.options if option.strip() and enabled]
        if each.role in ("field", "textarea") and enabled:
            found += [f'type {name} "{text}"' for text in dict.fromkeys(QUOTED.findall(reading.goal)) if text]
    return tuple(found)
