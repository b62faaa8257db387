"""The oracle: the subtasks that are left, and the moves that complete them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

from bough.worlds.screens.device import Place
from bough.worlds.screens.part import Effect, Element, Subtask, Table, same
from bough.worlds.screens.ui import Screen, Ui

ORDERS = 3
"""Maximum number of changed parts for which every order is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An action of the oracle.

    Attributes:
        verb: "click", "type", "scroll", "open", "back", "home" or "wait".
        text: The text to type, the direction, or the name of the app.
        effect: The effect of the element to click; () for an action without an element.
    """

    verb: str
    text: str = ""
    effect: Effect = ()


Moved: TypeAlias = tuple[Move, Screen]


def solve(screen: Screen, target: Mapping[Place, Table], *, links: bool) -> tuple[Move, ...] | None:
    """Returns moves that lead from a screen to the target data; None where nothing does.

    Breadth-first search finds the fewest moves to each screen. Where at most `ORDERS` parts need changes, the plan is
    the shortest over the orders of the parts; among equals the one in the order of the target.

    Args:
        screen: The first screen.
        target: The data to reach, by part.
        links: Whether the action `open` is available.
    """
    left: list[list[tuple[Place, Subtask]]] = []
    for place, table in target.items():
        if same(screen.data[place], table):
            continue
        subtasks = screen.device.part(*place).subtasks(screen.data[place], table)
        if subtasks is None:
            return None
        left.append([(place, subtask) for subtask in subtasks])
    orders = permutations(left) if len(left) <= ORDERS else iter([tuple(left)])
    plans = (_plan(screen, [subtask for subtasks in order for subtask in subtasks], links=links) for order in orders)
    return min(plans, key=len)


def _plan(screen: Screen, subtasks: list[tuple[Place, Subtask]], *, links: bool) -> tuple[Move, ...]:
    plan: list[Move] = []
    for place, subtask in subtasks:
        moves, screen = _moves_to(screen, place, subtask, links=links)
        plan += moves
        wanted = subtask.form or ()
        # The field in focus comes first, which saves a click.
        for number in sorted(range(len(wanted)), key=lambda number: number != screen.ui.focus):
            if screen.ui.form is None or screen.ui.form[number] == wanted[number]:
                continue
            if screen.ui.focus != number:
                moves, screen = _click(screen, ("focus", str(number)))
                plan += moves
            plan.append(Move(verb="type", text=wanted[number]))
            screen = screen.typed(wanted[number]) or screen
        for effect in subtask.clicks:
            if screen.ui.ask and effect == ("ask", *screen.ui.ask):
                continue
            moves, screen = _click(screen, effect)
            plan += moves
    return tuple(plan)


def _moves_to(screen: Screen, place: Place, subtask: Subtask, *, links: bool) -> tuple[list[Move], Screen]:
    """The fewest moves to the screen of a subtask; a dialog that the subtask needs may be open there."""
    app, path = place[0], (place[1], *subtask.path)

    def reached(at: Screen) -> bool:
        ui = at.ui
        asked = not ui.ask or ("ask", *ui.ask) == subtask.clicks[0]
        return asked and not ui.loading and (ui.app, ui.path) == (app, path)

    def leads(effect: Effect) -> bool:
        verb, *rest = effect
        steps = (path[0], *rest) if verb == "go" else tuple(rest)
        return (
            (verb == "open" and rest[0] == app)
            or verb == "no"
            or (verb in ("part", "go") and steps == path[: len(steps)])
        )

    def moves(at: Screen) -> Iterator[Moved]:
        yield from _waits(at)
        if links:
            yield Move(verb="open", text=app), at.after(("open", app))[0]
        elements, pages = at.shown()
        yield from _clicks(at, elements, leads)
        if pages > 1:
            yield from _scrolls(at)
        yield Move(verb="back"), at.after(("back",))[0]
        yield Move(verb="home"), at.after(("home",))[0]

    return _search(screen, moves, reached)


def _click(screen: Screen, effect: Effect) -> tuple[list[Move], Screen]:
    """Clicks an element of the screen, after as many scrolls as it needs."""

    def shown(at: Screen) -> bool:
        return any(each.effect == effect for each in at.elements())

    moves, screen = _search(screen, _scrolls, shown)
    return [*moves, Move(verb="click", effect=effect)], screen.after(effect)[0]


def _waits(screen: Screen) -> Iterator[Moved]:
    if screen.ui.loading:
        yield Move(verb="wait"), screen.waited()


def _scrolls(screen: Screen) -> Iterator[Moved]:
    yield Move(verb="scroll", text="down"), screen.after(("page", "1"))[0]
    yield Move(verb="scroll", text="up"), screen.after(("page", "-1"))[0]


def _clicks(screen: Screen, elements: Iterable[Element], fits: Callable[[Effect], bool]) -> Iterator[Moved]:
    for each in elements:
        if fits(each.effect):
            yield Move(verb="click", effect=each.effect), screen.after(each.effect)[0]


def _search(
    screen: Screen, moves: Callable[[Screen], Iterable[Moved]], reached: Callable[[Screen], bool]
) -> tuple[list[Move], Screen]:
    """Breadth-first search over screens; the data stay the same.

    Raises:
        LookupError: when no screen is reached.
    """
    if reached(screen):
        return [], screen
    ways: dict[Ui, list[Move]] = {screen.ui: []}
    queue = deque([screen])
    while queue:
        at = queue.popleft()
        for move, after in moves(at):
            if after.ui not in ways:
                ways[after.ui] = [*ways[at.ui], move]
                if reached(after):
                    return ways[after.ui], after
                queue.append(after)
    raise LookupError(f"got no moves from {screen.ui} to the target screen; need some")
