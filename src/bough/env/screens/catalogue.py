"""The kinds of apps: fifteen, made of five kinds of parts."""

from collections.abc import Mapping

from bough.env.screens.cart import Cart
from bough.env.screens.choice import Choice
from bough.env.screens.form import Field
from bough.env.screens.outbox import Outbox
from bough.env.screens.part import Part
from bough.env.screens.records import Records
from bough.env.screens.switches import Switches

NAME = Field(name="name", kind="person")
FROM = Field(name="from", kind="person")
TO = Field(name="to", kind="person")
TEXT = Field(name="text")
TIME = Field(name="time", kind="time")
DAY = Field(name="day", kind="day")

KINDS: Mapping[str, tuple[Part, ...]] = {
    "settings": (
        Switches(title="network", names=("wifi", "bluetooth", "hotspot", "roaming", "vpn", "airplane")),
        Switches(title="display", names=("dark", "rotate", "zoom", "night", "bold")),
        Choice(title="language", options=("english", "german", "french", "spanish")),
    ),
    "mail": (
        Records(title="inbox", noun="mail", fields=(FROM, TEXT), mark="starred", writable=False),
        Outbox(title="sent", noun="mail", fields=(TO, Field(name="subject"), TEXT)),
        Choice(title="sorting", options=("newest", "oldest", "unread")),
    ),
    "shop": (
        Cart(title="goods", goods=("tea", "milk", "rice", "honey", "salt", "bread")),
        Choice(title="delivery", options=("standard", "express", "pickup")),
    ),
    "calendar": (
        Records(title="events", noun="event", fields=(Field(name="title"), DAY, TIME)),
        Choice(title="view", options=("daily", "weekly", "monthly")),
    ),
    "contacts": (
        Records(title="people", noun="contact", fields=(NAME, Field(name="phone", kind="number")), mark="favourite"),
        Choice(title="order", options=("first", "last", "recent")),
    ),
    "notes": (
        Records(title="notes", noun="note", fields=(Field(name="title"), TEXT), mark="pinned"),
        Switches(title="paper", names=("lines", "grid", "margin", "dark")),
    ),
    "clock": (
        Records(title="alarms", noun="alarm", fields=(Field(name="label"), TIME), mark="active"),
        Choice(title="sound", options=("bell", "birds", "waves", "piano")),
    ),
    "music": (
        Records(title="playlists", noun="playlist", fields=(Field(name="title"),), mark="liked"),
        Switches(title="player", names=("shuffle", "repeat", "crossfade", "lyrics")),
    ),
    "files": (
        Records(title="documents", noun="file", fields=(Field(name="name"), Field(name="tag")), mark="shared"),
        Choice(title="layout", options=("rows", "tiles", "tree")),
    ),
    "chat": (
        Outbox(title="messages", noun="message", fields=(TO, TEXT)),
        Switches(title="alerts", names=("sound", "badge", "preview", "vibrate")),
    ),
    "bank": (
        Outbox(title="payments", noun="payment", fields=(TO, Field(name="amount", kind="number"))),
        Switches(title="limits", names=("abroad", "online", "cash", "contactless")),
        Choice(title="card", options=("debit", "credit", "gold")),
    ),
    "maps": (
        Records(title="places", noun="place", fields=(Field(name="name"), Field(name="number", kind="number"))),
        Choice(title="route", options=("car", "walk", "bus", "bike")),
    ),
    "camera": (
        Switches(title="shots", names=("flash", "timer", "grid", "sound", "mirror")),
        Choice(title="mode", options=("photo", "video", "night", "portrait")),
    ),
    "food": (
        Cart(title="menu", goods=("soup", "pasta", "pizza", "salad", "cake", "juice")),
        Choice(title="pay", options=("cash", "card", "points")),
    ),
    "health": (
        Records(title="walks", noun="walk", fields=(DAY, Field(name="steps", kind="number"))),
        Switches(title="goals", names=("steps", "sleep", "water", "stand")),
    ),
}
"""The parts of each kind of app."""


def templates_of(kind: str) -> tuple[str, ...]:
    """The templates of tasks of a kind of app, sorted."""
    return tuple(sorted({template for part in KINDS[kind] for template in part.templates}))
