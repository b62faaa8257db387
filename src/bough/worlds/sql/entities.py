"""The words of generated databases: kinds of things, their properties, and the links between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A kind of thing: one table.

    Attributes:
        one: The thing, singular.
        names: The names of things.
        categories: The text columns, each with its values.
        numbers: The number columns, each with its least and greatest value.
        parents: The tables that it may link to, by the name of the linking column.
    """

    one: str
    names: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, tuple[int, int]]
    parents: Mapping[str, str] = field(default_factory=dict[str, str])


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PEOPLE = _words("ada amy ann ben bob cid dan eva fay gil hal ida jan kim lee max ned ona pam ron sam ted uma val")
PETS = _words("ace bix dot elf fig gus hex ivy jet koa lux moe nix oz pip quin rex sox taz umi vex wiz yam zed")
TITLES = _words(
    "amber anchor arrow autumn beacon birch canyon cedar cloud comet coral dawn delta echo ember fable forest harbor "
    "island lantern meadow mirror orbit river"
)
PLACES = _words(
    "alton barrow calder denby elgin farley gorton hexham ilford jarrow kendal luton marlow norton oakham preston "
    "radley selby thirsk upton walton yarm zeal ashby"
)
CITIES = ("berlin", "cairo", "lima", "oslo", "paris", "rome")
COUNTRIES = ("chile", "egypt", "france", "ghana", "india", "japan")

ENTITIES: Mapping[str, Entity] = {
    "people": Entity(
        one="person",
        names=PEOPLE,
        categories={"city": CITIES, "job": ("baker", "clerk", "driver", "farmer", "nurse"), "country": COUNTRIES},
        numbers={"age": (18, 80), "salary": (20, 99), "score": (1, 60)},
    ),
    "teams": Entity(
        one="team",
        names=PLACES,
        categories={"city": CITIES, "league": ("first", "second", "third"), "shirt": ("blue", "green", "red", "white")},
        numbers={"wins": (0, 50), "budget": (10, 99), "fans": (5, 90)},
    ),
    "shops": Entity(
        one="shop",
        names=PLACES,
        categories={"city": CITIES, "size": ("large", "medium", "small"), "owner": ("bank", "family", "state")},
        numbers={"rent": (10, 90), "staff": (2, 60), "sales": (20, 99)},
    ),
    "pets": Entity(
        one="pet",
        names=PETS,
        categories={
            "kind": ("bird", "cat", "dog", "fish", "horse"),
            "color": ("black", "brown", "gold", "grey", "white"),
            "mood": ("calm", "lively", "shy"),
        },
        numbers={"age": (1, 40), "weight": (1, 60), "visits": (0, 50)},
        parents={"keeper": "people", "shop": "shops"},
    ),
    "players": Entity(
        one="player",
        names=PEOPLE,
        categories={
            "position": ("attack", "defence", "goal", "middle"),
            "country": COUNTRIES,
            "foot": ("both", "left", "right"),
        },
        numbers={"goals": (0, 60), "age": (17, 60), "height": (160, 210)},
        parents={"team": "teams", "club": "teams"},
    ),
    "books": Entity(
        one="book",
        names=TITLES,
        categories={
            "topic": ("art", "history", "law", "music", "travel"),
            "language": ("french", "german", "greek", "spanish"),
            "cover": ("cloth", "leather", "paper"),
        },
        numbers={"pages": (80, 900), "year": (1900, 2020), "price": (5, 80)},
        parents={"author": "people", "shop": "shops"},
    ),
    "songs": Entity(
        one="song",
        names=TITLES,
        categories={
            "genre": ("blues", "folk", "jazz", "pop", "rock"),
            "language": ("french", "german", "greek", "spanish"),
            "mood": ("calm", "lively", "sad"),
        },
        numbers={"length": (90, 400), "year": (1950, 2020), "plays": (1, 99)},
        parents={"singer": "people", "writer": "people"},
    ),
    "cars": Entity(
        one="car",
        names=TITLES,
        categories={
            "make": ("fiat", "ford", "honda", "opel", "seat"),
            "fuel": ("diesel", "electric", "petrol"),
            "color": ("blue", "green", "red", "silver", "white"),
        },
        numbers={"price": (5, 90), "speed": (120, 260), "seats": (2, 60)},
        parents={"driver": "people", "dealer": "shops"},
    ),
    "courses": Entity(
        one="course",
        names=TITLES,
        categories={
            "subject": ("art", "biology", "history", "law", "music"),
            "level": ("high", "low", "middle"),
            "room": ("attic", "hall", "lab", "library"),
        },
        numbers={"hours": (10, 90), "credits": (1, 60), "students": (5, 99)},
        parents={"teacher": "people", "tutor": "people"},
    ),
}
"""The tables by name. A table without parents can be linked to."""
