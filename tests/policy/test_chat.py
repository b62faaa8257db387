import random
import time
from functools import cache

import folders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers.normalizers import Replace
from tokenizers.pre_tokenizers import ByteLevel

from bough.context import Turn, conversation
from bough.policy.chat import ChatRenderer


@cache
def renderer(template: str, **settings: object) -> ChatRenderer:
    return ChatRenderer(folders.tokenizer(folders.TEMPLATES[template]), template=settings)


TOKENIZER = folders.tokenizer(None)
NAMED = TOKENIZER.convert_tokens_to_ids


def decode(tokens: tuple[int, ...]) -> str:
    return TOKENIZER.decode(tokens)


def turn(observation: str, tokens: tuple[int, ...]) -> Turn:
    return Turn(observation=observation, action="", tokens=tokens)


def letters(text: str) -> tuple[int, ...]:
    """Tokens that the tokenizer would never choose: one for each byte."""
    bytewise = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return tuple(NAMED(list("".join(piece for piece, _ in bytewise))))


WORDS = st.text(alphabet="go left.\nP_é日", max_size=8)
SAMPLED = st.lists(st.integers(9, 339), max_size=6).map(tuple)
TURNS = st.lists(st.tuples(WORDS, st.one_of(SAMPLED, WORDS.map(letters)), st.booleans()), max_size=4)


@pytest.mark.parametrize("template", folders.APPEND_ONLY)
@given(system=WORDS, turns=TURNS, observation=WORDS)
def test_extending_is_rendering(
    template: str, system: str, turns: list[tuple[str, tuple[int, ...], bool]], observation: str
) -> None:
    chat = renderer(template)
    past: list[Turn] = []
    seen = [turn for turn, *_ in turns] + [observation]
    read = chat.render(conversation(system, [], seen[0]))
    for (before, drawn, stopped), after in zip(turns, seen[1:], strict=True):
        sampled = tuple(token for token in drawn if token not in chat.stop_tokens)
        past.append(turn(before, (*sampled, chat.stop_tokens[0]) if stopped else sampled))
        more = chat.extend(conversation(system, past, after))
        assert more is not None
        # Every action ends once: by the policy, or else by what follows it.
        assert (more[0] in chat.stop_tokens) != stopped
        read += past[-1].tokens + more
    assert chat.render(conversation(system, past, observation)) == read


SPOKEN = st.text(alphabet="go left.é日", max_size=8).map(str.strip)


@pytest.mark.parametrize("template", folders.APPEND_ONLY)
@given(system=SPOKEN, turns=st.lists(st.tuples(SPOKEN, SPOKEN), max_size=4), observation=SPOKEN)
def test_it_reads_as_the_template_writes(
    template: str, system: str, turns: list[tuple[str, str]], observation: str
) -> None:
    chat = renderer(template)
    said = [text for pair in turns for text in pair]
    if template == "gemma" and system:
        system_messages = []
        first, *others = [*said, observation]
        contents = [f"{system}\n\n{first}", *others]
    else:
        system_messages = [{"role": "system", "content": system}] if system else []
        contents = [*said, observation]
    messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]
    whole = folders.tokenizer(folders.TEMPLATES[template]).apply_chat_template(
        system_messages + messages, tokenize=False, add_generation_prompt=True
    )
    past = [turn(before, chat.write(action)) for before, action in turns]
    assert decode(chat.render(conversation(system, past, observation))) == whole


def test_the_stop_token_is_what_ends_the_turn() -> None:
    ends = {"chatml": "<|im_end|>", "thinking": "<|im_end|>", "llama3": "<|eot_id|>", "gemma": "<end_of_turn>"}
    for template, end in ends.items():
        assert renderer(template).stop_tokens == (NAMED(end), NAMED("<|endoftext|>"))
        assert renderer(template).write("go left")[-1] == NAMED(end)
    named = ChatRenderer(
        folders.tokenizer(folders.CHATML), template={}, end_tokens=(NAMED("<|eot_id|>"), NAMED("<|im_end|>"))
    )
    assert named.stop_tokens == (NAMED("<|im_end|>"), NAMED("<|endoftext|>"), NAMED("<|eot_id|>"))


def test_an_action_that_ended_otherwise_is_not_ended_again() -> None:
    chat = renderer("chatml")
    other = chat.extend(conversation("", [turn("a", (*letters("go"), NAMED("<|endoftext|>")))], "b"))
    assert other == chat.extend(conversation("", [turn("a", (*letters("go"), NAMED("<|im_end|>")))], "b"))
    assert decode(other) == "\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"


def test_an_action_cut_short_is_ended_first() -> None:
    chat = renderer("llama3")
    more = chat.extend(conversation("", [turn("a", letters("go le"))], "b"))
    assert decode(more).startswith("<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nb<|eot_id|>")


def test_text_is_without_marks() -> None:
    chat = renderer("chatml")
    assert chat.text((*letters("go left"), NAMED("<|im_end|>"))) == "go left"
    assert chat.text((NAMED("<|im_start|>"), *letters("go"), NAMED("<|endoftext|>"))) == "go"
    assert chat.text(()) == ""
    # A model's head may have more rows than the tokenizer has tokens.
    assert chat.text((*letters("go"), 383)) == "go"


def test_a_system_prompt_that_the_template_refuses_begins_the_first_message() -> None:
    whole = decode(renderer("gemma").render(conversation("Walk.", [], "P _ O")))
    assert whole == "<|begin_of_text|><start_of_turn>user\nWalk.\n\nP _ O<end_of_turn>\n<start_of_turn>model\n"


def test_blanks_that_the_template_trims_are_no_rewriting() -> None:
    chat = renderer("llama3")
    past = [turn("a", (*letters("\n go left \n"), NAMED("<|eot_id|>")))]
    more = chat.extend(conversation("", past, "b"))
    assert more is not None
    assert chat.render(conversation("", past, "b")) == chat.render(conversation("", [], "a")) + past[0].tokens + more


THOUGHT = "<think>\nThe hole is near.\n</think>\n\ngo left"


def test_a_template_that_drops_thoughts_can_not_extend() -> None:
    chat = renderer("thinking")
    end = NAMED("<|im_end|>")
    plain, thought = turn("a", (*letters("go left"), end)), turn("b", (*letters(THOUGHT), end))
    assert chat.extend(conversation("", [plain], "b")) is not None
    assert chat.extend(conversation("", [plain, thought], "c")) is None
    anew = chat.render(conversation("", [plain, thought], "c"))
    assert decode(anew) == (
        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\ngo left<|im_end|>\n"
        "<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\ngo left<|im_end|>\n"
        "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n"
    )
    # The action that was left alone is there as sampled; the other is tokenised from the template's text.
    assert anew.count(letters("go left")[0]) == 1
    begin = len(chat.render(conversation("", [], "a")))
    assert anew[begin : begin + len(plain.tokens)] == plain.tokens
    # The next turn extends what was rendered anew.
    after = [plain, thought, turn("c", (*letters("go"), end))]
    assert chat.render(conversation("", after, "d")) == anew + after[-1].tokens + chat.extend(
        conversation("", after, "d")
    )


def test_a_generation_prompt_that_history_lacks_can_not_extend() -> None:
    chat = renderer("thinking", enable_thinking=False)
    assert decode(chat.render(conversation("", [], "a"))).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    past = [turn("a", (*letters("go left"), NAMED("<|im_end|>")))]
    assert chat.extend(conversation("", past, "b")) is None
    assert past[0].tokens == chat.render(conversation("", past, "b"))[5 : 5 + 8] or letters("go left")[
        0
    ] in chat.render(conversation("", past, "b"))


def test_text_that_looks_like_the_renderers_own_marks_is_just_text() -> None:
    chat = renderer("chatml")
    past = [turn("[[0.1]] [[0.3]]", (*letters("[[1.1]]"), NAMED("<|im_end|>"))), turn("[[2.", chat.write("[[0.3]]"))]
    whole = decode(chat.render(conversation("[[0.", past, "b")))
    assert whole.count("[[0.1]] [[0.3]]<|im_end|>") == 1
    assert whole.count("assistant\n[[1.1]]<|im_end|>") == 1
    assert whole.count("assistant\n[[0.3]]<|im_end|>") == 1


def test_a_template_that_forgets_is_rendered_as_it_writes() -> None:
    # Keeps the last two messages alone.
    forgetful = folders.CHATML.replace("in messages -%}", "in messages[-2:] -%}")
    with pytest.raises(ValueError, match="leaves out the assistant's messages"):
        ChatRenderer(folders.tokenizer(forgetful.replace("[-2:]", "[-1:]")), template={})
    chat = ChatRenderer(folders.tokenizer(forgetful), template={})
    past = [turn("a", chat.write("x")), turn("b", chat.write("y"))]
    assert chat.extend(conversation("", past, "c")) is None
    assert decode(chat.render(conversation("", past, "c"))).endswith(
        "<|im_start|>assistant\ny<|im_end|>\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n"
    )


def test_long_episodes_stay_cheap() -> None:
    chat = renderer("chatml")
    past: list[Turn] = []
    draw = random.Random(0)
    took: list[float] = []
    for step in range(64):
        past.append(turn(f"step {step} {draw.random()}", chat.write("go left")))
        begin = time.process_time()
        chat.extend(conversation("", past, f"step {step + 1} "))
        took.append(time.process_time() - begin)
    # A loose bound: an extension of the longest takes about a millisecond.
    assert sorted(took)[32] < 0.05


def test_of_a_text_far_beyond_the_context_a_part_is_encoded() -> None:
    short = ChatRenderer(folders.tokenizer(folders.CHATML), template={}, context_tokens=16)
    whole = ChatRenderer(folders.tokenizer(folders.CHATML), template={})
    long = conversation("", [], 10**4 * "hello ")
    assert 16 < len(short.render(long)) < len(whole.render(long)) // 10
    past = [turn("a", letters("b"))]
    assert 16 < len(short.extend(conversation("", past, 10**4 * "hello ")) or ()) < 2000


def test_a_text_whose_blanks_the_tokenizer_drops_is_encoded_whole() -> None:
    tokenizer = folders.tokenizer(folders.CHATML)
    tokenizer.backend_tokenizer.normalizer = Replace(Regex(" +"), " ")
    short = ChatRenderer(tokenizer, template={}, context_tokens=100)
    text = conversation("", [], f"a{10**5 * ' '}b")
    assert short.render(text) == ChatRenderer(tokenizer, template={}).render(text)
