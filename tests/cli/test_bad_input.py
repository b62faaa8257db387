"""Everything a user can get wrong: each message says what, where and what to do, and nothing written is lost."""

import re
from pathlib import Path

import pytest
from tests.policy import folders
from tests.talk import ONE_STEP, SMALL, Bough

USAGE, FAILED = 2, 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("stepz=3", "stepz: unknown name 'stepz'; did you mean 'steps'? in Run"),
        (
            "optimizer.learning_rat=1",
            "optimizer.learning_rat: unknown name 'learning_rat'; did you mean 'learning_rate'?",
        ),
        ("credit=Grpo(stdd=none)", "credit.stdd: unknown name 'stdd'; did you mean 'std'? in Grpo"),
        ("credit=Gpro", "credit: unknown name 'Gpro'; did you mean 'Grpo'?"),
        ("credit=Grbo", "credit: unknown name 'Grbo'; did you mean 'Grpo'?"),
        ("credit=grpo", "credit: unknown name 'grpo'; did you mean 'Grpo'?"),
        ("steps=many", "steps: got 'many'; need a valid integer"),
        ("steps=true", "steps: got True; need a number"),
        ("steps=2.5", "steps: got 2.5; need a valid integer"),
        ("steps=-1", "Schedule.steps: got -1; need 0 or more"),
        ("credit.std=sometimes", "credit.std: got 'sometimes'; need 'group', 'batch' or 'none'"),
        ("env=3", "env: got 3; need a piece, written as Name or Name(field=value)"),
        ("rewards.4=Success", "rewards.4: got '4'; need a number from 0 to 0"),
        ("name.first=x", "name.first: name is 'small', which has no fields; need name=VALUE"),
        ("steps", "got 'steps'; need field=value, as in optimizer.learning_rate=3e-4"),
        ("sampling.temperature=0", "World.sampling.temperature: got 0; need more than 0"),
        ("evaluation.every=-1", "Evaluation: got every=-1"),
        ("limits.engine_deadline_s=0", "Limits.engine_deadline_s: got 0.0; need more than 0 seconds"),
        ("name=a/b", "Run.name: got 'a/b'; need a name that can be a folder's"),
        ("name=a\nb", "Run.name: got 'a\\nb'; need a name that can be a folder's: without '/', line breaks"),
        ("name=a\x1b[2Jb", "Run.name: got 'a\\x1b[2Jb'; need a name that can be a folder's"),
        (f"name={128 * 'é'}", "Run.name: got 256 bytes, 'éééééééééééééééééééé'...; need at most 255"),
    ],
)
def test_fields(bough: Bough, tmp_path: Path, change: str, told: str) -> None:
    assert told in bough("train", f"{SMALL}:run", change, folder=tmp_path).error(USAGE)
    assert not list(tmp_path.iterdir())


def test_an_unknown_recipe(bough: Bough, tmp_path: Path) -> None:
    error = bough("train", "grpo_frozenlak", folder=tmp_path).error(USAGE)
    assert "unknown name 'grpo_frozenlak'; did you mean 'grpo_frozenlake'?" in error
    assert "`bough list methods` shows all, path/to/file.py:run is one of your own" in error


def test_a_recipe_of_ones_own(bough: Bough, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from bough.credit import Grpo\ndef make():\n    return 3\n")
    assert "unknown name 'mak'; did you mean 'make'?" in bough("train", "mine.py:mak", folder=tmp_path).error(USAGE)
    error = bough("train", "mine.py", folder=tmp_path).error(USAGE)
    assert "unknown name 'run'; need one of make" in error
    assert f"in {file}" in error
    error = bough("train", "mine.py:make", folder=tmp_path).error(USAGE)
    assert "method 'mine.py:make': make() returned int; need a bough.train.Run" in error
    error = bough("train", "yours.py:run", folder=tmp_path).error(USAGE)
    assert "there is no file yours.py; need path/to/file.py:name" in error
    for text, told in (("import nothing_of_the_kind", "No module named"), ("def run(:", "mine.py, line 1")):
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / "other" / "mine.py").write_text(text)
        error = bough("train", "other/mine.py", folder=tmp_path).error(USAGE)
        assert "method 'other/mine.py': other/mine.py cannot be imported: " in error
        assert told in error


@pytest.mark.parametrize(
    ("arguments", "module", "told"),
    [
        (("grpo_textworld", *ONE_STEP), "textworld", "pip install 'bough-rl[textworld]'"),
        (
            (f"{SMALL}:run", *ONE_STEP, "policy=Pretrained(path={model},lora=Lora)"),
            "peft",
            "pip install 'bough-rl[lora]'",
        ),
    ],
)
def test_a_missing_extra(bough: Bough, tmp_path: Path, arguments: tuple[str, ...], module: str, told: str) -> None:
    model = folders.folder(tmp_path / "model")
    arguments = tuple(argument.replace("{model}", str(model)) for argument in arguments)
    error = bough("train", *arguments, folder=tmp_path, missing=[module]).error(USAGE)
    assert told in error
    assert not list((tmp_path / "runs").iterdir())


def pretrained(tmp_path: Path, path: Path) -> str:
    recipe = tmp_path / "mine.py"
    recipe.write_text(
        "from dataclasses import replace\nfrom bough.policy import Pretrained\nfrom tests.small import run as small\n"
        f"def run():\n    return small().replace(policy=Pretrained(path={str(path)!r}))\n"
    )
    return "mine.py:run"


def test_a_model_that_cannot_be_read(bough: Bough, tmp_path: Path) -> None:
    recipe = pretrained(tmp_path, tmp_path / "model")
    error = bough("train", recipe, folder=tmp_path).error(USAGE)
    assert (
        f"Pretrained.path: got '{tmp_path}/model', which is no folder and no file; need a folder with a model" in error
    )
    (tmp_path / "model").mkdir()
    assert "got no config in" in bough("train", recipe, folder=tmp_path).error(USAGE)
    folders.folder(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert f"can't read the model at '{tmp_path}/model'" in bough("train", recipe, folder=tmp_path).error(USAGE)


def test_a_tokenizer_without_the_token_that_ends_a_turn(bough: Bough, tmp_path: Path) -> None:
    folders.folder(tmp_path / "model")
    plain = [mark for mark in folders.SPECIAL if mark not in ("<|im_end|>", "<|im_start|>")]
    folders.tokenizer(folders.CHATML, special=plain).save_pretrained(tmp_path / "model")
    error = bough("train", pretrained(tmp_path, tmp_path / "model"), folder=tmp_path).error(USAGE)
    assert (
        f"Pretrained '{tmp_path}/model': got a chat template that ends an assistant's message with '<|im_end|>" in error
    )
    assert "need one that ends the turn" in error


def test_a_task_file(bough: Bough, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    good = '{"id": "one", "data": {"rows": ["SF", "FG"]}}\n'
    ask = ("train", f"{SMALL}:run", *ONE_STEP, "tasks.file=tasks.jsonl", "warmup.demonstrations=0", "batch_tasks=1")
    tasks.write_text(good + '{"id": "two", "data": {"rows": \n')
    error = bough(*ask, "tasks.count=1", folder=tmp_path).error(USAGE)
    assert "tasks.jsonl, line 2: got" in error
    assert "no JSON" in error
    assert 'need one task, such as {"id": "lake-1"' in error
    tasks.write_text(good)
    assert "tasks.jsonl: got 1 tasks; need 5" in bough(*ask, "tasks.count=5", folder=tmp_path).error(USAGE)
    tasks.write_text('{"id": "one", "data": {"rows": ["SF", "FX"]}}\n')
    error = bough(*ask, "tasks.count=1", folder=tmp_path).error(USAGE)
    assert "one" in error
    assert "FX" in error or "S, F, H, G" in error
    assert "gone.jsonl" in bough(*ask, "tasks.file=gone.jsonl", folder=tmp_path).error(USAGE)
    tasks.write_text(good)
    bough(*ask, "tasks.count=1", folder=tmp_path).fine()


def test_training_tasks_that_are_held_out(bough: Bough, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    rows = '"data": {"rows": ["SF", "FG"]}'
    tasks.write_text(f'{{"id": "one", {rows}, "seed": 1}}\n{{"id": "two", {rows}, "seed": 2}}\n')
    file = ("tasks.file=tasks.jsonl", "tasks.count=2", "evaluation.tasks.file=tasks.jsonl", "warmup.demonstrations=0")
    file += ("batch_tasks=2",)
    told = "evaluation.tasks: got 2 of 2 tasks that are trained on, such as 'one'; need tasks that are not"
    for steps in (0, 1):
        changes = (*ONE_STEP, *file, "batch_tasks=2", f"steps={steps}")
        assert told in bough("train", f"{SMALL}:run", *changes, folder=tmp_path).error(USAGE)
    error = bough("train", f"{SMALL}:run", *ONE_STEP, "evaluation.tasks.split=train", folder=tmp_path).error(USAGE)
    assert "evaluation.tasks: got 2 of 2 tasks that are trained on" in error
    assert not list((tmp_path / "runs").iterdir())


def test_files_that_cannot_be_used(bough: Bough, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks.jsonl").write_bytes(b'{"id": "on\xff"}\n')
    (tmp_path / "file").write_text("")
    ask = ("train", f"{SMALL}:run")
    error = bough(*ask, "tasks.file=gone.jsonl", folder=tmp_path).error(USAGE)
    assert "error: tasks.file: cannot read gone.jsonl: no such file or directory; need a file of tasks" in error
    error = bough(*ask, "evaluation.tasks.file=tasks", folder=tmp_path).error(USAGE)
    assert "error: evaluation.tasks.file: cannot read tasks: is a directory; need a file of tasks" in error
    error = bough(*ask, "tasks.file=tasks.jsonl", folder=tmp_path).error(USAGE)
    assert "error: tasks.file: tasks.jsonl, line 1: got no UTF-8 (invalid start byte 0xff); need text in UTF-8" in error
    error = bough(*ask, "--out", "file", folder=tmp_path).error(FAILED)
    assert "error: cannot write file/small: not a directory; need a folder that exists and can be written to" in error
    error = bough("resume", 300 * "x", folder=tmp_path).error(USAGE)
    assert f"error: cannot use {300 * 'x'}/config.json: file name too long; check the path" in error


def test_a_run_that_is_there(bough: Bough, tmp_path: Path) -> None:
    bough("train", f"{SMALL}:run", *ONE_STEP, folder=tmp_path).fine()
    before = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    error = bough("train", f"{SMALL}:run", *ONE_STEP, folder=tmp_path).error(FAILED)
    assert "run directory runs/small exists and holds a run at step 2" in error
    assert "choose another name=..., or continue it with `bough resume runs/small`" in error
    assert {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()} == before


def test_no_run(bough: Bough, tmp_path: Path) -> None:
    for command in ("resume", "eval"):
        error = bough(command, "runs/nothing", folder=tmp_path).error(FAILED)
        assert "runs/nothing: got a folder that does not exist; need one that `bough train` made" in error


def test_too_few_tasks(bough: Bough, tmp_path: Path) -> None:
    error = bough("train", f"{SMALL}:run", "env.size=2", "tasks.count=500", folder=tmp_path).error(USAGE)
    assert "error: tasks: FrozenLake.tasks: got count=500 for split 'train'" in error
    assert "need a smaller count" in error
    few = ("env.size=2", "tasks.count=1", "batch_tasks=1", "warmup.demonstrations=0", "evaluation.tasks.count=500")
    error = bough("train", f"{SMALL}:run", *few, folder=tmp_path).error(USAGE)
    assert "error: evaluation.tasks: FrozenLake.tasks: got count=500 for split 'test'" in error
    assert not list((tmp_path / "runs").iterdir()), "the name must be free for the next attempt"
    error = bough("train", f"{SMALL}:run", *ONE_STEP, "warmup.demonstrations=13", folder=tmp_path).error(USAGE)
    assert "warmup.demonstrations: got 13; need at most tasks.count, which is 12" in error


def test_a_prompt_longer_than_the_context(bough: Bough, tmp_path: Path) -> None:
    error = bough("train", f"{SMALL}:run", *ONE_STEP, "policy.context_tokens=24", folder=tmp_path).error(USAGE)
    assert re.search(r"task frozenlake-\w+: got a first prompt of \d+ tokens; need fewer than the 24", error)
    assert "Shorten the instructions or observation, or use a longer context" in error
    small = ("engine.context_tokens=24", "name=other")
    assert "need fewer than the 24" in bough("train", f"{SMALL}:run", *ONE_STEP, *small, folder=tmp_path).error(USAGE)


WORLD = """
from dataclasses import dataclass, replace
from bough.env import Branching, State, Step
from bough.tree import Outcome, Task
from tests.small import run as small

@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    broken: str = ""
    branching: Branching = Branching.COPY
    instructions: str = "Count."

    def tasks(self, split, count, seed):
        tasks = [Task(id=f"{split}-{index}") for index in range(count)]
        return {"tasks": None, "no task": ["x"], "twins": [Task(id="x")] * count}.get(self.broken, tasks)

    def start(self, task):
        return "0" if self.broken == "start" else State(observation="0", key="0", value=0, admissible=("one", "two"))

    def step(self, state, action):
        if self.broken == "step":
            return "one more"
        if self.broken == "reward":
            return Step(state=state, reward="much")
        if self.broken == "later" and state.value:
            return None
        count = state.value + 1
        after = State(observation=str(count), key=str(count), value=count, admissible=("one", "two"))
        outcome = Outcome.TERMINATED if count == 2 and self.broken != "endless" else Outcome.OPEN
        return Step(state=after, outcome=outcome, success=True, reward=float(len(action) % 2))


def make(broken=""):
    warmup = replace(small().world.warmup, demonstrations=0)
    return small().replace(env=Count(broken=broken), warmup=warmup)


def run():
    return make()


def half():
    return make().replace(env=3)
"""


@pytest.mark.parametrize(
    ("broken", "status", "told"),
    [
        ("start", FAILED, "Count.start: got '0' of type str; need a State"),
        ("step", FAILED, "Count.step: got 'one more' of type str; need a Step"),
        ("reward", FAILED, "Count.step: got Step.reward = 'much' of type str; need a finite float"),
        ("later", FAILED, "Count.step: got None of type NoneType; need a Step"),
        ("tasks", USAGE, "Count.tasks('train', 12, ...): got None of type NoneType; need a list of Task"),
        ("no task", USAGE, "Count.tasks('train', 12, ...): got 'x' of type str; need a list of Task"),
        (
            "twins",
            USAGE,
            "got 12 tasks with 1 different ids; need 12 of each; for fewer set tasks.count=1 (evaluation.tasks.count",
        ),
    ],
)
def test_an_environment_of_the_wrong_type(bough: Bough, tmp_path: Path, broken: str, status: int, told: str) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    assert told in bough("train", "world.py", *ONE_STEP, f"env.broken={broken}", folder=tmp_path).error(status)


def test_no_environment_at_all(bough: Bough, tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    error = bough("train", "world.py:half", folder=tmp_path).error(USAGE)
    assert "World.env: got int, which lacks branching, instructions, start, step, tasks; need an Env" in error


def test_a_warmup_without_an_oracle(bough: Bough, tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    error = bough("train", "world.py", *ONE_STEP, "warmup.demonstrations=2", folder=tmp_path).error(USAGE)
    assert "warmup=Warmup: needs an environment with an oracle; got env=Count" in error
    assert "give the environment a method `plan(state)`, or warmup.demonstrations=0" in error
    bough("train", "world.py", *ONE_STEP, "health.dead_batches=9", folder=tmp_path).fine()
