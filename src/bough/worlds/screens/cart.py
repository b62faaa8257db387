"""A shop with a cart and a check-out."""

import random
from dataclasses import dataclass

from bough.worlds.screens.part import Change, Effect, Element, Request, Subtask, Table

CART = ("cart",)
ORDER: Effect = ("order",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cart:
    """Goods, a cart and orders. A row is ("cart", good, number) or ("order", "2 tea 1 rice"), a placed order.

    An order is final.

    Attributes:
        title: Name of the part.
        goods: The goods for sale.
    """

    title: str
    goods: tuple[str, ...]

    @property
    def templates(self) -> tuple[str, ...]:
        """Order goods, put goods into the cart, take a good out of it."""
        return ("buy", "put", "take")

    def fill(self, rng: random.Random, rows: int) -> Table:  # noqa: ARG002
        """See `Part.fill`: the cart is empty, or has up to two goods."""
        goods = rng.sample(self.goods, rng.choice((0, 0, 1, 2)))
        return tuple(("cart", good, str(rng.randint(1, 3))) for good in goods)

    def draft(self, table: Table, path: tuple[str, ...]) -> None:  # noqa: ARG002
        """See `Part.draft`: no forms."""
        return

    def elements(self, table: Table, path: tuple[str, ...], form: tuple[str, ...] | None) -> tuple[Element, ...]:  # noqa: ARG002
        """See `Part.elements`."""
        cart = _cart(table)
        if path == CART:
            taken = [
                Element(role="button", label=f"take {good}", effect=("take", good), value=str(number))
                for good, number in cart.items()
            ]
            return (*taken, Element(role="button", label="order", effect=("ask", *ORDER)))
        if path:
            number = str(cart.get(path[0], 0))
            return (
                Element(role="text", label=f"{path[0]} in cart", value=number),
                Element(role="button", label="put", effect=("put", path[0])),
            )
        items = [Element(role="item", label=good, effect=("go", good)) for good in self.goods]
        total = Element(role="button", label="cart", effect=("go", *CART), value=str(sum(cart.values())))
        orders = [Element(role="text", label=f"ordered {row[1]}") for row in table if row[0] == "order"]
        return (total, *orders, *items)

    def act(self, table: Table, path: tuple[str, ...], effect: Effect, form: tuple[str, ...] | None) -> Change:  # noqa: ARG002
        """See `Part.act`."""
        cart = _cart(table)
        if effect == ORDER:
            if not cart:
                return Change(table=table, path=path, note="the cart is empty")
            return Change(table=(*_orders(table), ("order", _listed(cart))), path=())
        verb, good = effect
        if verb == "put":
            cart[good] = min(cart.get(good, 0) + 1, 99)
        else:
            cart.pop(good, None)
        return Change(table=_table(table, cart), path=path)

    def propose(self, template: str, table: Table, rng: random.Random) -> Request | None:
        """See `Part.propose`."""
        cart = _cart(table)
        if template == "take":
            return (template, rng.choice([*cart])) if cart else None
        if template == "buy" and cart:
            return None
        goods = [good for good in self.goods if good not in cart]
        wanted = rng.sample(goods, rng.choice((1, 1, 2)))
        return (template, *(f"{rng.randint(1, 2)} {good}" for good in wanted))

    def fulfil(self, table: Table, request: Request) -> Table:
        """See `Part.fulfil`."""
        cart = _cart(table)
        if request[0] == "take":
            del cart[request[1]]
            return _table(table, cart)
        if request[0] == "buy" and cart:
            raise LookupError("no empty cart")
        for entry in request[1:]:
            number, _, good = entry.partition(" ")
            cart[good] = int(number)
        if request[0] == "buy":
            return (*_orders(table), ("order", _listed(cart)))
        return _table(table, cart)

    def text(self, request: Request) -> str:
        """See `Part.text`."""
        wanted = " and ".join(request[1:])
        where = {"put": "into cart", "take": "out of cart"}.get(request[0], "")
        return f"{request[0]} {wanted} {where}".strip()

    def subtasks(self, table: Table, target: Table) -> tuple[Subtask, ...] | None:
        """See `Part.subtasks`: None when an order was placed that is not in the target."""
        placed, wanted = list(_orders(table)), list(_orders(target))
        if placed != wanted[: len(placed)]:
            return None
        subtasks: list[Subtask] = []
        cart = _cart(table)
        for _, listed in wanted[len(placed) :]:
            words = listed.split()
            subtasks += _stock(cart, {good: int(number) for number, good in zip(words[::2], words[1::2], strict=True)})
            subtasks.append(Subtask(path=CART, clicks=(("ask", *ORDER), ("yes",))))
            cart = {}
        return (*subtasks, *_stock(cart, _cart(target)))


def _stock(cart: dict[str, int], wanted: dict[str, int]) -> list[Subtask]:
    """The subtasks that change one cart into another."""
    taken = [good for good, number in cart.items() if number > wanted.get(good, 0)]
    subtasks = [Subtask(path=CART, clicks=tuple(("take", good) for good in taken))] if taken else []
    for good, number in wanted.items():
        missing = number - (0 if good in taken else cart.get(good, 0))
        if missing:
            subtasks.append(Subtask(path=(good,), clicks=(("put", good),) * missing))
    return subtasks


def _cart(table: Table) -> dict[str, int]:
    return {row[1]: int(row[2]) for row in table if row[0] == "cart"}


def _orders(table: Table) -> Table:
    return tuple(row for row in table if row[0] == "order")


def _table(table: Table, cart: dict[str, int]) -> Table:
    return (*_orders(table), *(("cart", good, str(number)) for good, number in cart.items()))


def _listed(cart: dict[str, int]) -> str:
    """The goods of an order, sorted, so that the order of clicks does not matter."""
    return " ".join(f"{number} {good}" for good, number in sorted(cart.items()))
