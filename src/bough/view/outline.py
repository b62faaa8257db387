"""A group as HTML: the prompt once, then each branch as a line that unfolds into its turns."""

from collections.abc import Iterator
from html import escape

from bough.tree import BadCall, Message, ToolCall
from bough.view.branch import Branch, Turn, branches, instructions, text_of, tools
from bough.view.calls import call_line
from bough.view.choose import Group, returns, successes
from bough.view.numbers import short, signed, typeset

CHIP_LETTERS, CHIPS, TEXT_LETTERS = 24, 40, 4000
"""Maximum length of an action on a chip, number of chips on a line, length of a text in a report."""


def outline(name: str, why: str, group: Group) -> str:
    """A group, under a name, with the reason it is shown."""
    values, solved = returns(group), successes(group)
    grown = [branch for credited in group for branch in branches(credited)]
    strongest = max((abs(turn.advantage) for branch in grown for turn in _all_turns(branch)), default=0.0)
    shown = dict.fromkeys((instructions(credited), tools(credited), text_of(credited, 0)) for credited in group)
    roles = ("system", "tools", "user")
    prompt = "".join(_message(*message) for texts in shown for message in zip(roles, texts, strict=True))
    facts = f"{sum(solved)} of {len(values)} paths solved · mean return {typeset(short(sum(values) / len(values)))}"
    return (
        f'<article class="group"><header><h3>{escape(name)}</h3><p>{escape(group[0].tree.task.id)} · {facts}'
        f'{f" · {why}" if why else ""}</p><button type="button" class="unfold">unfold all</button></header>'
        f'<details class="prompt" open><summary>prompt</summary>{prompt}</details>'
        f"{''.join(_branch(branch, strongest or 1.0) for branch in grown)}</article>"
    )


def _message(role: str, text: str) -> str:
    """A message of the conversation under its role; "" without text."""
    return f'<p class="role">{role}</p><pre>{_text(text)}</pre>' if text else ""


def _all_turns(branch: Branch) -> Iterator[Turn]:
    yield from branch.turns
    for inner in branch.branches:
        yield from _all_turns(inner)


def _branch(branch: Branch, strongest: float, done: int = 0) -> str:
    """A branch that begins after `done` turns."""
    ends = list(branch.ends())
    if branch.end:
        tone = "solved" if branch.end.success else "unsolved"
        value = typeset(short(branch.end.value))
        mark = f'<span class="end {tone}">{escape(branch.end.outcome)}</span><span class="return">return {value}</span>'
    else:
        mark = f'<span class="end">{len(ends)} paths, {sum(end.success for end in ends)} solved</span>'
    chips = [_chip(turn, strongest) for turn in branch.turns if turn.action is not None]
    more = f'<span class="more">and {len(chips) - CHIPS} more</span>' if len(chips) > CHIPS else ""
    inner = "".join(_branch(each, strongest, done + len(branch.turns)) for each in branch.branches)
    return (
        f'<details class="branch"><summary><span class="chips">{"".join(chips[:CHIPS])}{more}</span>{mark}</summary>'
        f"{_table(branch.turns, done, strongest)}{inner}</details>"
    )


def _tint(turn: Turn, strongest: float) -> str:
    """The class and style that colour a turn by its advantage."""
    tone = "gain" if turn.advantage > 0 else "lose" if turn.advantage < 0 else "none"
    return f'"tint {tone}" style="--a:{100 * abs(turn.advantage) / strongest:.0f}%"'


def _chip(turn: Turn, strongest: float) -> str:
    action = turn.label
    clipped = action if len(action) <= CHIP_LETTERS else f"{action[: CHIP_LETTERS - 1]}\u2026"
    return f"<code class={_tint(turn, strongest)}>{escape(clipped)}</code>"


def _table(turns: tuple[Turn, ...], done: int, strongest: float) -> str:
    rows = "".join(_row(at, turn, strongest) for at, turn in enumerate(turns, start=done + 1))
    return (
        '<div class="scroll"><table class="turns"><thead><tr><th>turn</th>'
        '<th title="sampled by the policy">assistant</th><th title="from the environment">user</th>'
        '<th>reward</th><th>advantage</th><th title="log-probability of the action, nats">log p</th>'
        '<th title="mean over the tokens of the action, nats">entropy</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(at: int, turn: Turn, strongest: float) -> str:
    tags = [] if turn.valid else ["invalid"]
    tags += [] if turn.source == "sampled" or turn.action is None else [turn.source]
    parsed = turn.calls or turn.written.strip() == (turn.action or "")
    tags += [] if parsed else [f"action: {turn.action or '(empty)'}"]
    marks = "".join(f'<span class="tag">{_text(tag)}</span>' for tag in tags)
    action = "" if turn.action is None else f"{_action(turn)}{marks}"
    rebuilt = f'<p class="tag">context rebuilt</p><pre>{_text(turn.rebuilt)}</pre>' if turn.rebuilt else ""
    answer = "".join(map(_answer, turn.messages)) or (f"<pre>{_text(turn.answer)}</pre>" if turn.answer else "")
    paid = "".join(f"<div>{escape(name)} {typeset(signed(value))}</div>" for name, value in turn.rewards.items())
    # Opposite advantages at shared tokens are shown separately: their mean may be 0.
    sides = (
        f"<small>{typeset(f'{signed(turn.positive)} / {signed(turn.negative)}')}</small>"
        if turn.positive and turn.negative
        else ""
    )
    mean = typeset(signed(turn.advantage))
    advantage = "" if turn.action is None else f"<span class={_tint(turn, strongest)}>{mean}</span>"
    return (
        f"<tr><td>{at}</td><td>{action}</td><td>{answer}{rebuilt}</td><td>{paid}</td><td>{advantage}{sides}</td>"
        f"<td>{_nats(turn.logprob)}</td><td>{_nats(turn.entropy)}</td></tr>"
    )


def _action(turn: Turn) -> str:
    """The text of an action and its calls; with calls the model's own text is folded."""
    if not turn.calls:
        return f'<pre class="said">{_text(turn.written)}</pre>'
    said = f'<pre class="said">{_text(turn.said)}</pre>' if turn.said else ""
    raw = f'<details class="raw"><summary>as written</summary><pre>{_text(turn.written)}</pre></details>'
    return f"{said}{''.join(map(_call, turn.calls))}{raw}"


def _call(call: ToolCall | BadCall) -> str:
    if isinstance(call, BadCall):
        problem = f'<span class="tag">malformed call: {_text(call.problem)}</span>'
        return f'<pre class="call bad">{_text(call.text)}</pre>{problem}'
    return f'<pre class="call">{_text(call_line(call))}</pre>'


def _answer(message: Message) -> str:
    """A message of the response; a label shows a role other than the user's."""
    role = {"tool": "result", "user": ""}.get(message.role, message.role)
    label = f'<p class="role">{escape(role)}</p>' if role else ""
    calls = "".join(map(_call, message.tool_calls))
    return (
        f'{label}<pre class="{escape(message.role)}">{_text(message.content)}</pre>{calls}'
        if message.content or calls
        else ""
    )


def _nats(value: float | None) -> str:
    return "" if value is None else typeset(f"{value:.2f}")


def _text(text: str) -> str:
    """Escaped, and cut when it is very long."""
    cut = len(text) - TEXT_LETTERS
    return escape(text[:TEXT_LETTERS]) + (f'<span class="more"> \u2026 {cut:,} more letters</span>' if cut > 0 else "")
