"""The screen that is shown, and the effects of clicks on it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bough.worlds.screens.device import Device, Place
from bough.worlds.screens.part import Effect, Element, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Ui:
    """The screen that is shown.

    Attributes:
        app: The open app; "" at home.
        path: Title of the part, then the screens below it; () is the menu of the app.
        page: Page of a list that is longer than the screen, from 0.
        form: The texts in the fields; None without a form.
        focus: The field that receives text; -1 for none.
        ask: The effect that a dialog asks to confirm; () without a dialog.
        loading: Whether the screen is still loading.
    """

    app: str = ""
    path: tuple[str, ...] = ()
    page: int = 0
    form: tuple[str, ...] | None = None
    focus: int = -1
    ask: Effect = ()
    loading: bool = False


HOME = Ui()


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The device in use: its data and the screen that is shown.

    Attributes:
        device: The device.
        data: The data of each part.
        ui: The screen that is shown.
        page_rows: Number of elements that fit on a page of a list.
    """

    device: Device
    data: Mapping[Place, Table]
    ui: Ui
    page_rows: int

    @property
    def place(self) -> Place:
        """The part that is shown; only inside a part."""
        return self.ui.app, self.ui.path[0]

    def pages(self) -> int:
        """Number of pages of the list that is shown, at least 1."""
        return self.shown()[1]

    def elements(self) -> tuple[Element, ...]:
        """The visible elements, in reading order."""
        return self.shown()[0]

    def shown(self) -> tuple[tuple[Element, ...], int]:
        """The visible elements, in reading order, and the number of pages."""
        ui, device = self.ui, self.device
        if ui.loading:
            return (Element(role="text", label="loading"),), 1
        if ui.ask:
            dialog = (
                Element(role="text", label=f"really {device.word(ui.ask[0])}"),
                Element(role="button", label=device.word("yes"), effect=("yes",)),
                Element(role="button", label=device.word("no"), effect=("no",)),
            )
            return dialog, 1
        whole = self._body()
        pages = max(1, -(-len(whole) // self.page_rows))
        body = whole[ui.page * self.page_rows : (ui.page + 1) * self.page_rows]
        if not ui.app:
            return body, pages
        back = Element(role="back", label=device.word("back"), effect=("back",))
        tabs = device.has_tabs(ui.app) and len(ui.path) == 1 and len(device.apps[ui.app]) > 1
        bar = [
            Element(
                role="tab",
                label=part.title,
                effect=("part", part.title),
                value="selected" if part.title == ui.path[0] else "",
            )
            for part in (device.apps[ui.app] if tabs else ())
        ]
        return (back, *body, *bar), pages

    def _body(self) -> tuple[Element, ...]:
        """The elements of all pages, without the bars."""
        ui, device = self.ui, self.device
        if not ui.app:
            return tuple(Element(role="icon", label=app, effect=("open", app)) for app in device.apps)
        if not ui.path:
            return tuple(
                Element(role="item", label=part.title, effect=("part", part.title)) for part in device.apps[ui.app]
            )
        shown = device.part(*self.place).elements(self.data[self.place], ui.path[1:], ui.form)
        if device.theme.buttons_last and ui.form is None:
            shown = tuple(sorted(shown, key=lambda each: each.role == "button"))
        words = device.theme.words
        return tuple(
            replace(each, label=words[each.label]) if each.role == "button" and each.label in words else each
            for each in shown
        )

    def after(self, effect: Effect) -> "tuple[Screen, str]":
        """The screen after an effect, and a message; "" for none."""
        ui, verb = self.ui, effect[0]
        if verb in ("yes", "no"):
            calm = replace(self, ui=replace(ui, ask=()))
            return calm._act(ui.ask) if verb == "yes" else (calm, "")
        moved = self._moved(effect)
        if moved is not None:
            return replace(self, ui=moved), ""
        return self._act(effect)

    def _moved(self, effect: Effect) -> Ui | None:
        """The screen after an effect that changes no data; None for one that does."""
        ui, verb = self.ui, effect[0]
        if verb == "nothing":
            return ui
        if verb == "home":
            return HOME
        if verb == "open":
            return self._at(
                effect[1], (self.device.apps[effect[1]][0].title,) if self.device.has_tabs(effect[1]) else ()
            )
        if verb == "part":
            return self._at(ui.app, effect[1:])
        if verb == "go":
            return self._at(ui.app, (*ui.path[:1], *effect[1:]))
        if verb == "back":
            return self._back()
        if verb == "focus":
            return replace(ui, focus=int(effect[1]))
        if verb == "ask":
            return replace(ui, ask=effect[1:])
        if verb == "page":
            return replace(ui, page=min(max(ui.page + int(effect[1]), 0), self.pages() - 1))
        return None

    def typed(self, text: str) -> "Screen | None":
        """The screen after a text replaces that of the field in focus; None without a field in focus."""
        ui = self.ui
        if ui.form is None or ui.focus < 0 or ui.ask or ui.loading:
            return None
        form = (*ui.form[: ui.focus], text, *ui.form[ui.focus + 1 :])
        return replace(self, ui=replace(ui, form=form))

    def waited(self) -> "Screen":
        """The screen after it has loaded."""
        return replace(self, ui=replace(self.ui, loading=False))

    def _back(self) -> Ui:
        ui = self.ui
        if ui.ask:
            return replace(ui, ask=())
        top = 1 if ui.app and self.device.has_tabs(ui.app) else 0
        return self._at(ui.app, ui.path[:-1]) if len(ui.path) > top else HOME

    def _at(self, app: str, path: tuple[str, ...]) -> Ui:
        """A screen as it opens."""
        if not path:
            return Ui(app=app)
        form = self.device.part(app, path[0]).draft(self.data[app, path[0]], path[1:])
        return Ui(app=app, path=path, form=form, loading=self.device.is_slow(app, path))

    def _act(self, effect: Effect) -> "tuple[Screen, str]":
        ui = self.ui
        change = self.device.part(*self.place).act(self.data[self.place], ui.path[1:], effect, ui.form)
        data = {**self.data, self.place: change.table}
        path = (ui.path[0], *change.path)
        changed = replace(self, data=data)
        return (changed if path == ui.path else replace(changed, ui=changed._at(ui.app, path))), change.note
