"""A device: installed apps, their data, and their theme."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from bough.env.splits import content_hash
from bough.worlds.screens.catalogue import KINDS
from bough.worlds.screens.part import Part, Table

Place = tuple[str, str]
"""The name of an app, and the title of a part."""

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "save": ("save", "ok", "apply"),
    "send": ("send", "submit"),
    "new": ("new", "add", "plus"),
    "edit": ("edit", "modify"),
    "delete": ("delete", "remove", "erase"),
    "order": ("order", "checkout", "pay"),
    "put": ("put", "add"),
    "yes": ("yes", "confirm"),
    "no": ("no", "cancel"),
    "back": ("back", "up"),
}
"""The labels that a theme chooses from; the first is the standard one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The labels and layout of a device.

    Attributes:
        words: The label of each standard label.
        tabs: Whether parts of an app are tabs; else its first screen is a menu.
        columns: Number of icons in a row of the home screen.
        margin: Horizontal margin, a share of the width.
        side: Position of buttons: 0 left, 1 centre, 2 right.
        buttons_last: Whether the buttons of a screen are below its other elements.
    """

    words: Mapping[str, str]
    tabs: bool = False
    columns: int = 3
    margin: float = 0.05
    side: int = 0
    buttons_last: bool = False


STANDARD = Theme(words={word: word for word in SYNONYMS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as a value.

    Attributes:
        apps: The parts of each installed app, by the app's name, in the order of the home screen.
        theme: Its labels and layout.
        data: The data at the start.
        seed: Seed that decides which parts load slowly.
        slow: Share of the parts that first show a loading screen, in [0, 1].
    """

    apps: Mapping[str, tuple[Part, ...]]
    theme: Theme
    data: Mapping[Place, Table]
    seed: int = 0
    slow: float = 0.0

    def part(self, app: str, title: str) -> Part:
        """A part of an app."""
        return next(part for part in self.apps[app] if part.title == title)

    def has_tabs(self, app: str) -> bool:
        """Whether an app opens on its first part."""
        return self.theme.tabs or len(self.apps[app]) == 1

    def is_slow(self, app: str, path: tuple[str, ...]) -> bool:
        """Whether a loading screen comes first."""
        if not self.slow or len(path) != 1:
            return False
        return int(content_hash(f"slow {self.seed} {app} {path[0]}"), 16) < self.slow * 2**64

    def word(self, label: str) -> str:
        """The label that the theme shows; `take tea` keeps its good."""
        return self.theme.words.get(label, label)


@lru_cache(maxsize=1024)
def make_device(seed: int, kinds: tuple[str, ...], rows: int, themes: bool, slow: float) -> Device:
    """Generates a device; equal arguments give equal devices.

    Args:
        seed: Seed of the data and the theme.
        kinds: The installed apps.
        rows: Number of entries of a list.
        themes: Whether labels, layout and the order of apps and parts vary.
        slow: Share of the parts that load slowly.
    """
    rng = random.Random(f"device {seed}")
    theme = _theme(rng) if themes else STANDARD
    order = rng.sample(kinds, len(kinds)) if themes else [*kinds]
    apps = {kind: tuple(rng.sample(KINDS[kind], len(KINDS[kind]))) if themes else KINDS[kind] for kind in order}
    data = {(app, part.title): part.fill(rng, rows) for app, parts in apps.items() for part in parts}
    return Device(apps=apps, theme=theme, data=data, seed=seed, slow=slow)


def _theme(rng: random.Random) -> Theme:
    return Theme(
        words={word: rng.choice(others) for word, others in SYNONYMS.items()},
        tabs=rng.random() < 0.5,
        columns=rng.choice((2, 3, 4)),
        margin=rng.choice((0.0, 0.05, 0.1)),
        side=rng.choice((0, 1, 2)),
        buttons_last=rng.random() < 0.5,
    )
