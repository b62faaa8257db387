"""The live panel of a run on a terminal."""

from typing import TYPE_CHECKING

from bough.view.numbers import duration, percent, short
from bough.view.progress import PLAIN, SHARES, Told, interval

if TYPE_CHECKING:
    import rich.panel
    import rich.table
    import rich.text
    from rich.console import RenderableType

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "red")
BAR_CELLS = 40


def panel(title: str, steps: int, told: Told, now_s: float) -> "rich.panel.Panel":
    """Draw the panel for a point in time."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    parts: list[RenderableType] = [_head(steps, told, now_s)]
    if told.newest:
        parts += [Text(), _figures(told)]
    if sum(told.spent_s.values()) > 0:
        parts += [Text(), _stages(told)]
    if told.messages:
        parts += [
            Text(),
            *(Text(f"  {text}", style="dim", overflow="ellipsis", no_wrap=True) for text in told.messages),
        ]
    return Panel(Group(*parts), title=Text(title, style="bold"), title_align="left", border_style="dim", width=84)


def _head(steps: int, told: Told, now_s: float) -> "rich.table.Table":
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    done, steps = (told.last.step, told.last.steps) if told.last else (0, steps)
    left_s = told.left_s(now_s)
    ends = f"eta {duration(left_s)}" if left_s is not None else f"{duration(now_s - told.at_s)} so far"
    head = Table.grid(padding=(0, 2), expand=True)
    head.add_column()
    head.add_column(ratio=1)
    head.add_column(justify="right")
    head.add_row(
        Text(told.last.counted if told.last else f"step 0/{steps}", style="bold"),
        ProgressBar(total=max(steps, 1), completed=done, complete_style="cyan"),
        ends,
    )
    return head


def _figures(told: Told) -> "rich.table.Table":
    from rich.table import Table
    from rich.text import Text

    figures: list[tuple[str, str]] = []
    if (train := told.value("train/success")) is not None:
        figures.append(("train success", percent(train)))
    if (held := told.value("heldout/success")) is not None:
        figures.append(("held-out success", f"{percent(held)}{interval(told)} at {told.newest['heldout/success'][1]}"))
    if (held := told.value("heldout/reward")) is not None and held != told.value("heldout/success"):
        figures.append(("held-out reward", f"{short(held)} at {told.newest['heldout/reward'][1]}"))
    figures += [(label, short(value)) for name, label in PLAIN.items() if (value := told.value(name)) is not None]
    figures += [
        (label, percent(share))
        for name, label, usual in SHARES
        if (share := told.value(name)) is not None and share != usual
    ]
    clipped = [told.value("policy/clip_high"), told.value("policy/clip_low")]
    if None not in clipped:
        figures.append(("clipped", percent(sum(value for value in clipped if value is not None))))
    figures += [
        (label, short(value))
        for name, label in (
            ("groups/dropped", "groups dropped"),
            ("paths/failed", "paths failed"),
            ("paths/truncated_context", "paths cut by the context"),
            ("calls/foreign", "calls of other families"),
        )
        if (value := told.value(name))
    ]
    table = Table.grid(padding=(0, 2))
    half = (len(figures) + 1) // 2
    for row in range(half):
        cells = [figures[at] for at in (row, row + half) if at < len(figures)]
        table.add_row(*(text for name, value in cells for text in (Text(name, style="dim"), Text(value, style="bold"))))
    return table


def _stages(told: Told) -> "rich.text.Text":
    from rich.text import Text

    total_s = sum(told.spent_s.values())
    bar, names = Text(), Text()
    for (stage, spent_s), colour in zip(told.spent_s.items(), COLOURS * 4, strict=False):
        share = spent_s / total_s
        bar.append("█" * round(share * BAR_CELLS), style=colour)
        names.append("  ■ ", style=colour).append(f"{stage} {share:.0%}", style="dim")
    return Text.assemble(bar, "\n", names)
