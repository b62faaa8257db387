from datetime import datetime
from pathlib import Path

import folders
import pytest

from bough.policy import Pretrained
from bough.policy.chat import ChatRenderer
from bough.policy.template_date import FILE, with_date
from bough.tree import Message

DATED = (
    "{%- if strftime_now is defined %}<|im_start|>system\nToday is {{ strftime_now('%d %B %Y') }}, "
    "{{ strftime_now('%-d.%m.%y') }}<|im_end|>\n{%- endif %}\n"
)
ASK = (Message(role="user", content="Go %d"),)
DATE = datetime(2026, 3, 4, 5, 6, 7)


def test_a_template_writes_the_date_of_its_run(tmp_path: Path) -> None:
    tokenizer = folders.tokenizer(DATED + folders.CHATML)
    renderer = ChatRenderer(tokenizer, template={}, date=DATE)
    text = renderer.verbatim(renderer.render(ASK))
    assert "Today is 04 March 2026, 4.03.26<|im_end|>" in text
    assert "Go %d" in text
    assert tokenizer.chat_template == DATED + folders.CHATML
    folders.folder(tmp_path / "model", template=DATED + folders.CHATML)
    recipe, assets = Pretrained(path=str(tmp_path / "model"), device="cpu"), tmp_path / "policy"
    first = recipe.build((), assets).renderer.render(ASK)
    began = datetime.fromisoformat((assets / FILE).read_text().strip())
    assert abs((datetime.now() - began).total_seconds()) < 300
    assert recipe.renderer(assets).render(ASK) == first
    (assets / FILE).write_text(f"{DATE}\n")
    assert recipe.renderer(assets).render(ASK) == renderer.render(ASK) != first
    (assets / FILE).write_text("yesterday")
    with pytest.raises(ValueError, match=r"template_date\.txt: got no date .*need one such as 2026-"):
        recipe.renderer(assets)


@pytest.mark.parametrize("begin", ["", "\n", "  ", "  {%- if true %}a{% endif %}\n", "  {% if true %}b\n{% endif %}x"])
def test_the_rest_of_a_template_stays_as_it_is(begin: str) -> None:
    plain = folders.tokenizer(begin + folders.CHATML)
    rows = [{"role": "user", "content": "Go"}]
    dated = with_date(begin + folders.CHATML, DATE)
    assert plain.apply_chat_template(rows, tokenize=False) == plain.apply_chat_template(
        rows, tokenize=False, chat_template=dated
    )


def test_a_template_without_a_date_writes_no_file(tmp_path: Path) -> None:
    folders.folder(tmp_path / "model")
    Pretrained(path=str(tmp_path / "model")).renderer(tmp_path)
    assert not (tmp_path / FILE).exists()
