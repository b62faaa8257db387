"""The pages of MiniWoB++ that the element list can solve, in subsets; those whose document can be used again."""

from collections.abc import Mapping, Sequence

from bough.env.env import Split
from bough.env.splits import content_hash

EASY = ("click-button", "click-collapsible", "click-dialog-2", "click-tab", "unicode-test")
"""Pages whose actions have few different texts, so that a small model learns them soon."""
CLICK = (
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-soft",
    "click-checkboxes-transfer",
    "click-collapsible",
    "click-collapsible-2",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-option",
    "click-scroll-list",
    "click-tab",
    "click-tab-2",
    "click-tab-2-easy",
    "click-tab-2-hard",
    "click-tab-2-medium",
    "click-test",
    "click-test-2",
    "click-widget",
    "focus-text",
    "focus-text-2",
    "navigate-tree",
    "sign-agreement",
    "unicode-test",
)
FORMS = (
    "choose-list",
    "copy-paste",
    "copy-paste-2",
    "enter-date",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "enter-text-dynamic",
    "enter-time",
    "find-word",
    "form-sequence-2",
    "form-sequence-3",
    "login-user",
    "login-user-popup",
    "multi-layouts",
    "multi-orderings",
    "odd-or-even",
    "read-table",
    "read-table-2",
    "simple-algebra",
    "simple-arithmetic",
)
SEARCHES = (
    "book-flight-nodelay",
    "buy-ticket",
    "choose-date-easy",
    "choose-date-medium",
    "choose-date-nodelay",
    "click-menu",
    "click-menu-2",
    "daily-calendar",
    "guess-number",
    "order-food",
    "phone-book",
    "search-engine",
    "use-autocomplete-nodelay",
    "use-spinner",
)
SOCIAL = (
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-forward-nl",
    "email-inbox-forward-nl-turk",
    "email-inbox-important",
    "email-inbox-nl-turk",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
    "social-media",
    "social-media-all",
    "social-media-some",
)

SUBSETS: Mapping[str, tuple[str, ...]] = {
    "easy": EASY,
    "click": CLICK,
    "forms": FORMS,
    "searches": SEARCHES,
    "social": SOCIAL,
    "all": tuple(sorted({*CLICK, *FORMS, *SEARCHES, *SOCIAL})),
}
"""By name. Pages about drawing, dragging, colours, shapes and time are left out: a list of elements lacks these."""

REUSED = frozenset({*CLICK, *FORMS, "buy-ticket", "click-menu", "daily-calendar", "guess-number", "phone-book"}) | {
    "social-media",
    "social-media-all",
    "social-media-some",
}
"""Pages whose reset leaves nothing of earlier episodes; any other page is loaded again for each episode."""


HIDDEN = frozenset({"click-button-sequence", "guess-number", "login-user-popup"})
"""Pages whose scripts remember what the document does not show; the actions are part of the keys of their states."""


def kinds_of(names: Sequence[str]) -> tuple[str, ...]:
    """The pages of subsets and single pages, sorted.

    Raises:
        ValueError: for an unknown name, or without names.
    """
    found = {kind for name in names for kind in SUBSETS.get(name, (name,))}
    unknown = sorted(found - {*SUBSETS["all"]})
    if unknown or not found:
        raise ValueError(
            f"MiniWob.kinds: got {unknown or 'no name'}; need subsets ({', '.join(SUBSETS)}) or pages of the "
            "subset 'all', such as 'click-button'"
        )
    return tuple(sorted(found))


def kinds_in(kinds: Sequence[str], split: Split) -> tuple[str, ...]:
    """The pages of a split when splits share no page: a tenth, and at least one, in dev and in test.

    Raises:
        ValueError: for fewer than three pages.
    """
    if len(kinds) < 3:
        raise ValueError(f"MiniWob.kinds: got {len(kinds)} pages; need 3 or more with level='kind'")
    ranked = sorted(kinds, key=content_hash)
    share = max(1, len(ranked) // 10)
    parts: Mapping[Split, list[str]] = {
        "dev": ranked[:share],
        "test": ranked[share : 2 * share],
        "train": ranked[2 * share :],
    }
    return tuple(sorted(parts[split]))
