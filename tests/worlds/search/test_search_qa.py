"""The search environment: its tools, its evidence, its keys, its oracle, and what garbage does to it."""

import pickle
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Branching, State, Step
from bough.tree import Action, BadCall, Outcome, Task, ToolCall
from bough.worlds.search import Bm25s, CorpusFiles, KnowledgeGraph, SearchQa
from bough.worlds.search.question import read_question

SHAPES = ("chain", "set", "both", "either", "reverse", "among")
ENV = SearchQa(source=KnowledgeGraph(entities=200, shapes=SHAPES, hops=(1, 3), alias_rate=0.4), max_calls=24)


def search(query: object, call_id: str = "") -> ToolCall:
    return ToolCall(name="search", arguments={"query": query}, call_id=call_id)


def read(doc: object) -> ToolCall:
    return ToolCall(name="read", arguments={"doc": doc})


def do(*calls: ToolCall | BadCall) -> Action:
    return Action(calls=calls)


def texts(step: Step) -> list[str]:
    assert not isinstance(step.state.observation, str)
    return [message.content for message in step.state.observation]


def follow(env: SearchQa, task: Task) -> list[Step]:
    """The oracle's way, planned again before each action."""
    state, steps = env.start(task), list[Step]()
    while not steps or steps[-1].outcome is Outcome.OPEN:
        plan = env.plan(state)
        assert plan
        steps.append(env.step(state, plan[0]))
        state = steps[-1].state
        assert len(steps) <= env.max_calls + 1
    return steps


def first(split: str = "train", env: SearchQa = ENV) -> tuple[Task, State]:
    (task,) = env.tasks(split, 1, 3)  # type: ignore[arg-type]
    return task, env.start(task)


@pytest.mark.parametrize("noise", [0.0, 0.4])
@pytest.mark.parametrize("snippet", [0, 12, 200])
def test_the_oracle_answers_every_question(noise: float, snippet: int) -> None:
    env = replace(ENV, noise=noise, snippet_words=snippet)
    for split in ("train", "dev", "test"):
        for task in env.tasks(split, 8, 0):  # type: ignore[arg-type]
            steps = follow(env, task)
            last = steps[-1]
            assert (last.outcome, last.success, last.reward) == (Outcome.TERMINATED, True, 1.0)
            assert last.info["seen"] == [*range(len(read_question(task).evidence))]
            assert last.info["found"] == last.info["required"]
            assert last.info["calls"] == len(steps) - 1
            assert all(step.valid for step in steps)


def test_the_oracle_with_the_other_index() -> None:
    env = replace(ENV, index=Bm25s())
    assert all(follow(env, task)[-1].success for task in env.tasks("train", 10, 0))


def test_tasks_follow_from_split_count_and_seed_and_travel_as_json() -> None:
    tasks = ENV.tasks("train", 10, 1)
    assert tasks == ENV.tasks("train", 10, 1)
    assert tasks[:4] == ENV.tasks("train", 4, 1)
    assert tasks != ENV.tasks("train", 10, 2)
    assert [Task.read(task.record()) for task in tasks] == tasks
    again = pickle.loads(pickle.dumps(ENV))
    assert again.tasks("train", 10, 1) == tasks
    ids = [{task.id for task in ENV.tasks(split, 20, 0)} for split in ("train", "dev", "test")]  # type: ignore[arg-type]
    assert not ids[0] & ids[1] | ids[0] & ids[2] | ids[1] & ids[2]


def test_a_search_lists_documents_and_a_read_shows_one() -> None:
    env = SearchQa(source=KnowledgeGraph(entities=100), snippet_words=3, top=4)
    task, state = first(env=env)
    question = read_question(task)
    fact = question.evidence[0]
    listed = env.step(state, do(search(fact.query)))
    lines = texts(listed)[0].splitlines()
    assert len(lines) == 4
    shown = next(line for line in lines if line.startswith(f"{fact.document} "))
    document = env.source.documents()[fact.document]
    assert shown == f"{fact.document} {document.title}: {' '.join(document.text.split()[:3])} ..."
    opened = env.step(listed.state, do(read(fact.document)))
    assert texts(opened) == [f"{document.title}\n{document.text}"]
    assert listed.info["seen"] == []
    assert opened.info["seen"] == [0]
    assert texts(env.step(state, do(search("zzzz")))) == ["no results"]
    cut = replace(env, document_characters=10).step(listed.state, do(read(fact.document)))
    assert texts(cut)[0].startswith(f"{document.title}\n{document.text}"[:10] + "\n(page 1 of ")


def test_calls_of_one_action_are_answered_in_order_with_their_ids() -> None:
    task, state = first()
    fact = read_question(task).evidence[0]
    step = ENV.step(state, do(search("Bak", "a"), read(fact.document), search("Lum", "c")))
    assert not isinstance(step.state.observation, str)
    assert [(each.role, each.call_id) for each in step.state.observation] == [
        ("tool", "a"),
        ("tool", ""),
        ("tool", "c"),
    ]
    assert step.info["calls"] == 3
    assert step.info["seen"] == [0]


def test_a_key_has_what_was_shown_and_neither_order_nor_number_of_calls() -> None:
    _, state = first()
    calls = [search("Bak boss"), read(3), search("Lum home"), read(5)]
    keys: set[str] = set()
    for order in permutations(calls):
        here = state
        for call in (*order, order[0]):
            here = ENV.step(here, do(call)).state
        keys.add(here.key)
    assert len(keys) == 1
    assert ENV.step(state, do(search("zzzz"))).state.key == state.key, "nothing was listed"
    assert ENV.step(state, do(search("Bak boss"))).state.key != state.key
    other = ENV.start(ENV.tasks("train", 2, 3)[1])
    assert other.key != state.key


def test_a_state_can_be_stepped_again_and_survives_pickling() -> None:
    assert ENV.branching is Branching.COPY
    _, state = first()
    before = pickle.dumps(state.value)
    one = ENV.step(state, do(search("Bak boss")))
    ENV.step(state, do(read(7)))
    assert ENV.step(state, do(search("Bak boss"))) == one
    assert ENV.step(pickle.loads(pickle.dumps(state)), do(search("Bak boss"))) == one
    assert pickle.dumps(state.value) == before


def test_costs_and_the_reward_of_evidence() -> None:
    env = replace(ENV, search_cost=0.1, read_cost=0.01, evidence_reward=0.5, metric="em")
    for task in env.tasks("train", 5, 0):
        steps = follow(env, task)
        paid = sum(step.reward for step in steps)
        kinds = [step.state.value.calls for step in steps]  # type: ignore[attr-defined]
        assert kinds == sorted(kinds)
        reads = len(steps[-1].state.value.opened)  # type: ignore[attr-defined]
        searches = len(steps) - 1 - reads
        assert paid == pytest.approx(1.5 - 0.1 * searches - 0.01 * reads)
    task, state = first(env=env)
    number = read_question(task).evidence[0].document
    once = env.step(state, do(read(number)))
    again = env.step(once.state, do(read(number)))
    assert once.reward > 0 > again.reward == -0.01


def test_partial_answers() -> None:
    env = SearchQa(source=KnowledgeGraph(entities=100))
    task, state = first(env=env)
    (gold, *_) = read_question(task).answers[0]
    word = gold.split()[0]
    half = env.step(state, Action(text=word))
    assert (half.reward, half.success, half.info["em"]) == (pytest.approx(2 / 3), False, 0.0)
    assert replace(env, metric="em").step(state, Action(text=word)).reward == 0.0
    for text in (f"the {gold.upper()}!", f"<think>Is it Bak?</think> {gold}", f"I think <answer>{gold}</answer>."):
        assert env.step(state, Action(text=text)).success
    assert env.step(state, Action(text="")).valid is False


def test_words_count_once_and_tags_have_their_other_half_as_in_the_release_of_igpo() -> None:
    env = SearchQa(source=KnowledgeGraph(entities=100))
    task, state = first(env=env)
    (gold, *_) = read_question(task).answers[0]
    assert len({*gold.split()}) == 2
    twice = f"<answer>{gold} {gold.split()[0]}</answer>"
    released = replace(env, metric="set_f1", unpaired=-2.0)
    paid = {each: released.step(state, Action(text=each)) for each in (twice, f"<think>{gold}", "", f"{gold}</answer>")}
    assert env.step(state, Action(text=twice)).reward == pytest.approx(0.8)
    assert [each.reward for each in paid.values()] == [1.0, -2.0, -2.0, -2.0]
    assert not paid[twice].success
    assert env.step(state, Action(text=f"{gold}</answer>")).reward < 1, "without the option, the score"


def test_a_step_after_the_end_pays_nothing_and_ends_have_their_own_keys() -> None:
    env = replace(ENV, max_calls=1, evidence_reward=1.0)
    task, state = first(env=env)
    right = ", ".join(each[0] for each in read_question(task).answers)
    wrong, solved = env.step(state, "wrong").state, env.step(state, right).state
    cut = env.step(state, do(search("a"), search("b"))).state
    listed = env.step(state, do(search("a"))).state
    assert len({each.key for each in (state, listed, wrong, solved, cut)}) == 5
    for ended in (wrong, solved, cut):
        assert env.plan(ended) is None
        for action in (right, do(search("a"))):
            step = env.step(ended, action)
            assert (step.reward, step.valid, step.success) == (0.0, False, ended is solved)
            assert step.state == ended
            assert step.outcome is not Outcome.OPEN


def test_limits() -> None:
    env = replace(ENV, max_calls=2, max_errors=0)
    _, state = first()
    over = env.step(state, do(search("a"), search("b"), search("c")))
    assert over.outcome is Outcome.TRUNCATED
    assert texts(over)[2] == "error: not executed, the limit is 2 calls"
    wrong = env.step(state, do(read("x")))
    assert (wrong.outcome, wrong.valid) == (Outcome.TRUNCATED, False)
    two = env.step(state, do(search("a"), search("b")))
    assert two.outcome is Outcome.OPEN
    assert env.step(two.state, Action(text="Bak")).outcome is Outcome.TERMINATED
    assert env.step(two.state, do(search("c"))).outcome is Outcome.TRUNCATED
    assert env.plan(two.state) is None


GARBAGE = [
    *(do(search(value)) for value in ("", " ", "\0", "\ud800", '" OR', "x" * 10**6, None, 3, ["a"], {"a": 1})),
    *(do(read(value)) for value in (-1, 10**9, 10**5000, 1e300, float("nan"), float("inf"), True, "3", None, [1])),
    do(ToolCall(name="drop table", arguments={})),
    do(ToolCall(name="search", arguments={})),
    do(ToolCall(name="search", arguments={"query": "a", "\ud800": 1})),
    do(BadCall(text="[search(", problem="got no list")),
    Action(text="\0\ud800"),
    Action(text="y" * 10**6),
    "a text where calls are taken",
]


@pytest.mark.parametrize("action", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_gives_a_typed_step(action: Action | str) -> None:
    task, state = first()
    step = ENV.step(state, action)
    ended = isinstance(action, str) or not action.calls
    assert step.outcome is (Outcome.TERMINATED if ended else Outcome.OPEN)
    assert not step.success
    if not ended:
        (text,) = texts(step)
        assert len(text) <= 600
        text.encode()
        assert ENV.plan(step.state)
        if not step.valid:
            assert step.state.key == state.key
            assert text.startswith("error: ")
    assert ENV.step(state, action) == step
    assert ENV.start(task) == state


@settings(max_examples=60)
@given(st.lists(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.booleans()), max_size=3))
def test_any_argument_gives_a_typed_step(values: list[object]) -> None:
    _, state = first()
    step = ENV.step(state, do(*(call(value) for value in values for call in (search, read))))
    assert step.outcome in (Outcome.OPEN, Outcome.TERMINATED)
    assert 0 <= step.reward <= 1


@pytest.mark.parametrize("data", [{}, {"question": "Who?"}, {"question": "Who?", "answers": []}, {"answers": ["a"]}])
def test_a_task_without_question_or_answers(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"task x: got the question .*; need a text, and a list of answers"):
        ENV.start(Task(id="x", data=data))


def test_a_question_without_evidence_has_no_plan() -> None:
    state = ENV.start(Task(id="x", data={"question": "Who?", "answers": ["Bak"]}))
    assert ENV.plan(state) is None
    assert ENV.step(state, Action(text="bak")).success


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"top": 0}, "SearchQa.top: got 0; need at least 1"),
        ({"search_cost": -1.0}, "SearchQa.search_cost: got -1.0; need 0 or more"),
        ({"noise": 1.5}, "SearchQa.noise: got 1.5; need a number from 0 to 1"),
        ({"metric": "rouge"}, "SearchQa.metric: got 'rouge'; need 'f1', 'set_f1' or 'em'"),
    ],
)
def test_settings_out_of_range(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchQa(**fields)  # type: ignore[arg-type]


def test_a_state_of_another_environment() -> None:
    with pytest.raises(TypeError, match="SearchQa: got a state with a value of type int"):
        ENV.step(State(observation="", key="", value=3), Action(text="a"))


def test_a_source_that_does_not_exist() -> None:
    with pytest.raises(FileNotFoundError, match=r"CorpusFiles.corpus: got 'nowhere'; need a file that exists"):
        SearchQa(source=CorpusFiles(corpus="nowhere", tasks="nowhere"))
