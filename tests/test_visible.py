"""Control characters of texts of others are shown as text, at each place that prints such texts."""

from typing import Any

import pytest
from rich.console import Console

from bough.cli.chat_rollouts import ChatRollouts
from bough.cli.check_env import table
from bough.cli.failure import explained
from bough.env.hosts.workers import to_stderr
from bough.evaluate import EnvCheck, EnvReport
from bough.evaluate.envs import Mark
from bough.tree import Action, BadCall, Message, ToolCall
from bough.view import Live
from bough.view.transcript import show_action, show_instructions, show_observation
from bough.visible import visible

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\r\x08\u202e\ud800\x00\x7f"
SHOWN = r"a\x1b]0;title\x07\x1b[2J\x9b31m\r\x08\u202e\ud800\x00\x7f"


def test_control_characters_are_shown_as_text() -> None:
    assert visible(HOSTILE) == SHOWN
    assert visible("two\nlines\tand é, 中, 🙂") == "two\nlines\tand é, 中, 🙂"


def test_each_place_that_prints_texts_of_others_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    call, bad = ToolCall(name=HOSTILE, arguments={HOSTILE: HOSTILE}), BadCall(text=HOSTILE, problem=HOSTILE)
    message = Message(role="tool", content=HOSTILE)
    parts = (
        *(show_instructions(HOSTILE, ()), show_observation(HOSTILE), show_observation((message,))),
        show_action(Action(text=HOSTILE, calls=(call, bad))),
    )
    failed = EnvCheck(name="contract", mark=Mark.FAIL, figure=HOSTILE, got=HOSTILE, need=HOSTILE, do=HOSTILE)
    for part in (*parts, table(EnvReport(env="env", branching="copy", checks=(failed,), seconds=1.0))):
        Console().print(part)
    unused: Any = None
    ChatRollouts(runner=unused, loop=unused, console=Console(), seed=0).note(HOSTILE)
    with Live("run", 1, terminal=False) as live:
        live.say(HOSTILE)
    to_stderr(HOSTILE)

    def fail() -> None:
        raise ValueError(HOSTILE)

    with pytest.raises(SystemExit):
        explained(fail)()
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert not {*text} & {"\x1b", "\x07", "\x9b", "\r", "\x08", "\u202e", "\x00"}
        assert text.count("title") >= 2
