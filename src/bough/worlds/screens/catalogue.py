"""The kinds of apps: fifteen, made of five kinds of parts."""

from collections.abc import Mapping

from bough.worlds.screens.cart import Cart
from bough.worlds.screens.choice import Choice
from bough.worlds.screens.form import Field
from bough.worlds.screens.outbox import Outbox
from bough.worlds.screens.part import Part
from bough.worlds.screens.records import Records
from bough.worlds.screens.switches import Switches

NAME = Field(name="name", kind="person")
FROM = Field(name="from", kind="person")
TO = Field(name="to", kind="person")
TEXT = Field(name="text")
TIME = Field(name="time", kind="time")
DAY = Field(name="day", kind="day")

COLOURS = ("red", "blue", "green", "black", "white", "pink", "gold", "grey", "brown", "orange", "violet", "silver")
SOUNDS = ("bell", "birds", "waves", "piano", "drum", "flute", "rain", "chime", "horn", "harp", "clock", "wind")
DEVICES = (
    "car",
    "watch",
    "tablet",
    "laptop",
    "printer",
    "speaker",
    "radio",
    "lamp",
    "camera",
    "door",
    "heater",
    "fridge",
)
FEATURES = (
    "sound",
    "badge",
    "preview",
    "vibrate",
    "flash",
    "timer",
    "grid",
    "mirror",
    "lines",
    "margin",
    "zoom",
    "bold",
)
TONGUES = (
    "english",
    "german",
    "french",
    "spanish",
    "dutch",
    "greek",
    "polish",
    "turkish",
    "danish",
    "hindi",
    "thai",
    "latin",
)

KINDS: Mapping[str, tuple[Part, ...]] = {
    "settings": (
        Switches(title="network", names=("wifi", "bluetooth", "hotspot", "roaming", "vpn", "airplane", *DEVICES)),
        Switches(title="display", names=("dark", "rotate", "night", *FEATURES)),
        Choice(title="language", options=TONGUES),
    ),
    "mail": (
        Records(title="inbox", noun="mail", fields=(FROM, TEXT), mark="starred", writable=False),
        Outbox(title="sent", noun="mail", fields=(TO, Field(name="subject"), TEXT)),
        Choice(title="flag", options=COLOURS),
    ),
    "shop": (
        Cart(title="goods", goods=("tea", "milk", "rice", "honey", "salt", "bread")),
        Choice(title="wrapping", options=COLOURS),
    ),
    "calendar": (
        Records(title="events", noun="event", fields=(Field(name="title"), DAY, TIME)),
        Choice(title="colour", options=COLOURS),
    ),
    "contacts": (
        Records(title="people", noun="contact", fields=(NAME, Field(name="phone", kind="number")), mark="favourite"),
        Choice(title="ringtone", options=SOUNDS),
    ),
    "notes": (
        Records(title="notes", noun="note", fields=(Field(name="title"), TEXT), mark="pinned"),
        Switches(title="paper", names=FEATURES),
    ),
    "clock": (
        Records(title="alarms", noun="alarm", fields=(Field(name="label"), TIME), mark="active"),
        Choice(title="sound", options=SOUNDS),
    ),
    "music": (
        Records(title="playlists", noun="playlist", fields=(Field(name="title"),), mark="liked"),
        Switches(title="player", names=("shuffle", "repeat", "lyrics", *DEVICES)),
    ),
    "files": (
        Records(title="documents", noun="file", fields=(Field(name="name"), Field(name="tag")), mark="shared"),
        Choice(title="folder", options=COLOURS),
    ),
    "chat": (
        Outbox(title="messages", noun="message", fields=(TO, TEXT)),
        Switches(title="alerts", names=FEATURES),
    ),
    "bank": (
        Outbox(title="payments", noun="payment", fields=(TO, Field(name="amount", kind="number"))),
        Switches(title="limits", names=("abroad", "online", "cash", *DEVICES)),
        Choice(title="card", options=COLOURS),
    ),
    "maps": (
        Records(title="places", noun="place", fields=(Field(name="name"), Field(name="number", kind="number"))),
        Choice(title="voice", options=TONGUES),
    ),
    "camera": (
        Switches(title="shots", names=FEATURES),
        Choice(title="mode", options=("photo", "video", *COLOURS)),
    ),
    "food": (
        Cart(title="menu", goods=("soup", "pasta", "pizza", "salad", "cake", "juice")),
        Choice(title="language", options=TONGUES),
    ),
    "health": (
        Records(title="walks", noun="walk", fields=(DAY, Field(name="steps", kind="number"))),
        Switches(title="goals", names=("steps", "sleep", "water", *DEVICES)),
    ),
}
"""The parts of each kind of app."""


def templates_of(kind: str) -> tuple[str, ...]:
    """The templates of tasks of a kind of app, sorted."""
    return tuple(sorted({template for part in KINDS[kind] for template in part.templates}))
