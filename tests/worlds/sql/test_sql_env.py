"""The episode of text-to-SQL: queries, the answer, rewards, keys, oracle, attacks, and purity."""

import pickle
import sys
from dataclasses import FrozenInstanceError, replace
from itertools import permutations
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Branching, EnvFault, Split, State, Step, check_call
from bough.env.sqlite.query import QueryLimits
from bough.env.sqlite.show import find_sql
from bough.needs import CALLS
from bough.tree import Action, BadCall, Message, Outcome, Task, ToolCall
from bough.worlds.sql import GeneratedQuestions, Sql, syntax
from bough.worlds.sql.match import Match
from bough.worlds.sql.partial_credit import PartialCredit

QUESTIONS = GeneratedQuestions(databases=40)
ENV = Sql(questions=QUESTIONS, max_queries=3)
SPLITS: tuple[Split, ...] = get_args(Split)
TASKS = ENV.tasks("train", 40, 0)
TASK = next(task for task in TASKS if task.data["template"] == "filter_category")
GOLD = str(TASK.data["sql"])


def query(sql: object, call_id: str = "") -> ToolCall:
    return ToolCall(name="query", arguments={"sql": sql}, call_id=call_id)


def answer(sql: object) -> ToolCall:
    return ToolCall(name="answer", arguments={"sql": sql})


def act(env: Sql, *actions: Action | str, task: Task = TASK) -> Step:
    step = Step(state=env.start(task))
    for action in actions:
        step = env.step(step.state, action)
    return step


def do(env: Sql, *calls: ToolCall | BadCall, task: Task = TASK) -> Step:
    """One action for each call."""
    return act(env, *(Action(calls=(call,)) for call in calls), task=task)


def text(step: Step) -> str:
    assert isinstance(step.state.observation, tuple)
    return "\n".join(message.content for message in step.state.observation)


def seen(step: Step) -> tuple[object, ...]:
    return (step.state.observation, step.state.key, step.reward, step.outcome, step.valid, step.success, step.info)


def test_the_first_observation_is_the_schema_and_the_question() -> None:
    state = ENV.start(TASK)
    *schema, question = str(state.observation).split("\n")
    assert question == TASK.data["question"]
    assert len(schema) == 2
    assert " int -> " in schema[0]
    assert [tool.name for tool in state.tools] == ["query", "answer"]
    assert " text" not in str(replace(ENV, show_types=False).start(TASK).observation)
    assert CALLS in ENV.needs
    assert ENV.branching is Branching.COPY


def test_a_query_shows_its_result_and_the_answer_ends_the_episode() -> None:
    step = do(ENV, query("select count(*) as n, 'a' || char(10) || 'b', null, x'00ff', 1.5 from people, people p"))
    assert step.outcome == Outcome.OPEN
    if not step.valid:
        assert "error: no such table" in text(step)
    step = do(ENV, query("select 1 as n, 'a' || char(10) || 'b' as t, null as z, x'00ff' as b, 1.5 as f"))
    assert text(step) == "n | t | z | b | f\n1 | a b | NULL | x'00ff' | 1.5"
    assert (step.reward, step.valid, step.success) == (0.0, True, False)
    step = act(ENV, Action(calls=(query(GOLD),)), Action(calls=(answer(GOLD),)))
    assert (step.reward, step.outcome, step.valid, step.success) == (1.0, Outcome.TERMINATED, True, True)
    wrong = do(ENV, answer("select 1"))
    assert (wrong.reward, wrong.outcome, wrong.valid, wrong.success) == (0.0, Outcome.TERMINATED, True, False)
    again = ENV.step(step.state, Action(calls=(query("select 1"),)))
    assert (again.outcome, again.valid, again.success, again.reward) == (Outcome.TERMINATED, False, True, 0.0)


def test_a_final_text_answers_by_its_sql() -> None:
    assert act(ENV, Action(text=f"so:\n```sql\n{GOLD}\n```")).success
    assert act(ENV, Action(text=GOLD)).success
    nothing = act(ENV, Action(text="no idea"))
    assert (nothing.outcome, nothing.valid, nothing.success) == (Outcome.TERMINATED, False, False)
    assert find_sql("```\nselect 1\n```\nno:\n```sql\nselect 2;\n```") == "select 2;"
    assert find_sql("The query is\n  WITH x AS (SELECT 1)\nSELECT * FROM x") == "WITH x AS (SELECT 1)\nSELECT * FROM x"
    assert find_sql("selection") == ""


def test_single_turn() -> None:
    env = Sql(questions=QUESTIONS, single_turn=True)
    state = env.start(TASK)
    assert state.tools == ()
    assert env.needs == frozenset()
    assert env.plan(state) == (GOLD,)
    assert env.step(state, GOLD).success
    assert env.step(state, Action(text=GOLD)).success
    assert not env.step(state, "select 1").success
    assert pickle.loads(pickle.dumps(env)) == env


def test_calls_of_one_action_are_answered_in_order() -> None:
    bad = BadCall(text="<tool_call>", problem="no JSON")
    calls = (query("select 1", "a"), bad, query("select 2", "b"))
    step = act(ENV, Action(calls=calls))
    assert isinstance(step.state.observation, tuple)
    assert [message.call_id for message in step.state.observation] == ["a", "", "b"]
    assert [message.content for message in step.state.observation] == ["1\n1", "error: no JSON", "2\n2"]
    assert not step.valid
    step = act(ENV, Action(calls=(query(GOLD), answer(GOLD), query("select 3"))))
    assert step.success
    assert text(step).endswith("done\nerror: not executed, the episode is over")


def test_more_calls_than_allowed_truncate() -> None:
    step = do(ENV, *[query(f"select {number}") for number in range(3)])
    assert step.outcome == Outcome.OPEN
    assert ENV.step(step.state, Action(calls=(answer(GOLD),))).success
    over = ENV.step(step.state, Action(calls=(query("select 4"), answer(GOLD))))
    assert (over.outcome, over.success, over.reward, over.valid) == (Outcome.TRUNCATED, False, 0.0, False)
    assert "the limit is 3 queries" in text(over)
    many = act(ENV, Action(calls=tuple(query(f"select {number}") for number in range(50))))
    assert many.outcome == Outcome.TRUNCATED
    assert isinstance(many.state.observation, tuple)
    assert len(many.state.observation) == 50
    assert do(ENV, *[BadCall(text="x", problem="none")] * 4).outcome == Outcome.TRUNCATED, "wrong calls count too"


def test_results_are_cut() -> None:
    env = replace(ENV, rows_shown=2, cell_characters=5, result_characters=90, limits=QueryLimits(rows=20))
    numbers = "with recursive r(x) as (select 1 union all select x + 1 from r limit {}) select x from r"
    assert text(do(env, query(numbers.format(2)))) == "x\n1\n2"
    assert text(do(env, query(numbers.format(5)))) == "x\n1\n2\n(3 more rows)"
    assert text(do(env, query(numbers.format(50)))) == "x\n1\n2\n(18 or more rows)"
    assert text(do(env, query("select 1 where 0"))) == "1\n(no rows)"
    assert text(do(env, query("select 'abcdefgh' as a"))) == "a\nabcde... (cut: 8 characters)"
    assert len(text(do(env, query("select " + ", ".join(["1"] * 60))))) < 130
    assert text(do(env, query(f"select {'x' * 200}"))).startswith("error: no such column: xxx")


ATTACKS = [
    "attach '/tmp/never.db' as other",
    "pragma writable_schema = 1",
    "drop table people",
    "select load_extension('x')",
    "select zeroblob(1000000000)",
    "with recursive r(x) as (select 1 union all select x + 1 from r) select count(*) from r",
    "select count(*) from " + ", ".join(["sqlite_master"] * 40) + ", (values (1), (2))" * 25,
    "select '" + "x" * 100_000 + "'",
    "select '\ud800\udfff'",
    "select 1\0",
    "",
    "'; drop table people; --",
]


@pytest.mark.parametrize("sql", ATTACKS, ids=lambda sql: repr(sql[:25]))
def test_attacks_are_typed_results(sql: str) -> None:
    env = Sql(questions=QUESTIONS, limits=QueryLimits(instructions=200_000, seconds=1))
    step = do(env, query(sql))
    assert (step.outcome, step.valid, step.reward) == (Outcome.OPEN, False, 0.0)
    assert text(step).startswith("error: ")
    text(step).encode()
    assert step.state.key == env.start(TASK).key, "an error changes nothing"
    final = do(env, answer(sql))
    assert (final.outcome, final.valid, final.success, final.reward) == (Outcome.TERMINATED, False, False, 0.0)
    assert final.info["error"]
    pickle.dumps(final)
    assert do(env, answer(GOLD)).success


@settings(max_examples=40)
@given(
    calls=st.lists(
        st.builds(
            ToolCall,
            name=st.sampled_from(["query", "answer", "", "drop"]) | st.text(),
            arguments=st.dictionaries(st.sampled_from(["sql", "x"]), st.none() | st.integers() | st.text(), max_size=2),
            call_id=st.just("c"),
        ),
        max_size=4,
    ),
    said=st.text(),
)
def test_any_action_gives_a_typed_step(calls: list[ToolCall], said: str) -> None:
    state = ENV.start(TASK)
    step = ENV.step(state, Action(text=said, calls=tuple(calls)))
    assert seen(ENV.step(pickle.loads(pickle.dumps(state)), Action(text=said, calls=tuple(calls)))) == seen(step)
    if any(check_call(call, state.tools) for call in calls):
        assert not step.valid
    if calls:
        assert isinstance(step.state.observation, tuple)
        assert [message.call_id for message in step.state.observation] == ["c"] * len(calls)
    for message in step.state.observation:
        assert isinstance(message, Message | str)
        str(message).encode()
    assert not step.success


def test_the_oracle_solves_every_task_from_everywhere() -> None:
    for split in SPLITS:
        for task in ENV.tasks(split, 15, 0):
            for before in ((), (query("select 1"),), (query("nonsense"), query("select 1"), query("select 2"))):
                step = do(ENV, *before, task=task)
                plan = ENV.plan(step.state)
                assert plan is not None
                for action in plan:
                    step = ENV.step(step.state, action)
                assert step.success
                assert ENV.plan(step.state) == ()
    assert ENV.plan(do(ENV, answer("select 1")).state) is None


def test_the_oracle_reads_how_words_are_stored_before_it_answers() -> None:
    env = Sql(questions=QUESTIONS, oracle="lookups")
    (lookup,) = TASK.data["lookups"]  # type: ignore[misc]
    assert env.plan(env.start(TASK)) == (Action(calls=(query(lookup),)), Action(calls=(answer(GOLD),)))
    after = do(env, query(f"  {str(lookup).upper()} ;"))
    assert env.plan(after.state) == (Action(calls=(answer(GOLD),)),), "done already, in other letters"
    assert len(ENV.plan(ENV.start(TASK)) or ()) == 3, "lookup, gold query, answer"


def test_keys_are_sets_of_queries_without_counters() -> None:
    queries = [query("select 1"), query("select 2"), query("SELECT  1")]
    keys = {do(ENV, *order).state.key for order in permutations(queries)}
    assert len(keys) == 1
    assert do(ENV, *queries[:2]).state.key in keys, "the third query equals the first"
    assert do(ENV, queries[0]).state.key not in keys
    assert do(ENV, queries[0], query("nonsense")).state.key == do(ENV, queries[0]).state.key
    starts = {ENV.start(task).key for task in TASKS}
    assert len(starts) == len(TASKS)
    assert do(ENV, answer(GOLD)).state.key != do(ENV, answer("select 1")).state.key


def test_states_are_values() -> None:
    state = do(ENV, query("select 1")).state
    before = pickle.dumps(state)
    steps = [ENV.step(state, Action(calls=(query(sql),))) for sql in ("select 2", "select 3", "select 2")]
    assert seen(steps[0]) == seen(steps[2]) != seen(steps[1])
    assert pickle.dumps(state) == before
    assert len(before) < 3000, "the database is not in the state"
    assert seen(ENV.step(pickle.loads(before), Action(calls=(query("select 2"),)))) == seen(steps[0])


def test_an_answer_must_match_on_the_variants_too() -> None:
    task = next(each for each in TASKS if each.data["template"] == "aggregate")
    result = text(do(ENV, query(task.data["sql"]), task=task)).split("\n")[1]
    assert not do(ENV, answer(f"select {result}"), task=task).success
    lenient = Sql(questions=replace(QUESTIONS, variants=0))
    assert do(lenient, answer(f"select {result}"), task=task).success


def test_the_match_can_be_set() -> None:
    task = next(each for each in TASKS if each.data["template"] == "group_count")
    swapped = str(task.data["sql"]).replace("count(*)", "1 as one").split(" from ")
    column = str(task.data["sql"]).split()[1].strip(",")
    sql = f"select count(*), {column} from {swapped[1]}"
    assert do(ENV, answer(sql), task=task).success
    assert not do(replace(ENV, match=Match(permute_columns=False)), answer(sql), task=task).success


def test_partial_credit_grows_with_what_is_right() -> None:
    env = replace(ENV, partial=PartialCredit())
    table, column = GOLD.split()[3], GOLD.split()[5]
    rewards = [
        do(env, answer(sql)).reward
        for sql in ("nonsense", "select 1", f"select {column} from {table}", f"select name from {table}", GOLD)
    ]
    assert rewards == sorted(rewards)
    assert len({*rewards}) == 5
    assert rewards[0] == 0
    assert rewards[1] == pytest.approx(0.1)
    assert rewards[-1] == 1
    assert do(ENV, answer(f"select name from {table}")).reward == 0
    for wrong in ({"rows": -0.1}, {"rows": 0.9}):
        with pytest.raises(ValueError, match="below 1"):
            PartialCredit(**wrong)


def test_a_task_whose_gold_query_fails_is_a_fault() -> None:
    task = Task(id="broken", data={**TASK.data, "sql": "select nothing from nowhere"})
    with pytest.raises(EnvFault, match="task broken got a gold query without a result"):
        do(ENV, answer("select 1"), task=task)
    for missing in ("question", "sql", "database"):
        with pytest.raises(ValueError, match=f"got {missing}=None"):
            ENV.start(Task(id="broken", data={key: value for key, value in TASK.data.items() if key != missing}))
    with pytest.raises(TypeError, match="need one of its own"):
        ENV.step(State(observation="", key="", value=3), "select 1")


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="max_queries"):
        Sql(max_queries=-1)
    with pytest.raises(ValueError, match="rows_shown"):
        Sql(rows_shown=0)
    with pytest.raises(FrozenInstanceError):
        ENV.max_queries = 3  # type: ignore[misc]


@pytest.mark.parametrize("settings_", [{"oracle": "components"}, {"partial": PartialCredit(progress=0.1)}])
def test_without_sqlglot_the_error_names_the_extra(
    settings_: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setitem(sys.modules, "sqlglot", None)
    syntax.sqlglot.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'bough-rl\[sql\]'"):
        Sql(**settings_)  # type: ignore[arg-type]
    Sql(partial=PartialCredit())
