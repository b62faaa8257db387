"""Programming tasks of a user, from a file of JSON lines with the fields of MBPP or HumanEval."""

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bough.env.splits import split_of
from bough.usercode.json_file import read_objects, shown
from bough.worlds.code.problem import Problem
from bough.worlds.code.program_test import ProgramTest, assert_test, call_test, input_test

PROMPTS = ("prompt", "text", "question")
ANSWERS = ("reference", "code", "solution", "canonical_solution")
NEED = (
    '{"prompt": ..., "tests": [...], "reference": ...}, where a test is an assert statement, '
    '{"call": ..., "value": ...} or {"input": ..., "output": ...}'
)
TESTS = ("tests", "test_list", "test")


def read_rows(file: str, visible: int) -> tuple[str, ...]:
    """Returns the tasks of a file as lines of JSON, for `bough.env.rows.RowTasks`.

    Args:
        file: Its path.
        visible: Number of tests in the observation, where a row has no "visible".

    Raises:
        ValueError: when a row has no task or no tests.
        OSError: when the file cannot be read.
    """
    return tuple(_line(row, where, visible) for where, row in read_objects(Path(file).expanduser(), NEED))


def _line(row: Mapping[str, Any], where: str, visible: int) -> str:
    try:
        return json.dumps(_row(row, visible))
    # Python's parser of tests fails in several ways.
    except (ValueError, TypeError, LookupError, AttributeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{where}: got {shown(json.dumps(row, ensure_ascii=False))} ({error!s:.300}); need {NEED}"
        ) from error


def _row(row: Mapping[str, Any], visible: int) -> Mapping[str, object]:
    """A row's task, with its id and its split. The prompt decides the split where the row does not."""
    prompt, answer = str(_first(row, PROMPTS)), str(_first(row, ANSWERS, ""))
    name = str(row.get("entry_point") or "")
    tests = _tests(_first(row, TESTS), name)
    shown = row.get("visible", visible)
    given = [*map(_test, cast("list[object]", shown))] if isinstance(shown, list) else tests[: int(shown)]
    hidden = tests if isinstance(shown, list) else tests[len(given) :] or tests
    setup = [str(row.get("test_setup_code") or ""), *map(str, row.get("test_imports") or ())]
    problem = Problem(
        prompt=prompt,
        name=name,
        prefix=prompt if name else "\n".join(filter(None, setup)),
        continues=bool(name),
        visible=tuple(given),
        hidden=tuple(hidden),
        answer=answer,
    )
    found: dict[str, object] = {**problem.record(), "split": row.get("split") or split_of(prompt)}
    identity = row.get("id", row.get("task_id"))
    return found if identity is None else {**found, "id": str(identity)}


def _first(row: Mapping[str, Any], names: Sequence[str], default: object = None) -> Any:
    found = next((row[name] for name in names if row.get(name) is not None), default)
    if found is None:
        raise LookupError(f"no field {' or '.join(names)}")
    return found


def _tests(given: object, name: str) -> list[ProgramTest]:
    found = _function_tests(given, name) if isinstance(given, str) else [*map(_test, cast("list[object]", given))]
    if not found:
        raise ValueError("no tests")
    return found


def _test(given: object) -> ProgramTest:
    if isinstance(given, str):
        return assert_test(given)
    test = cast("Mapping[str, Any]", given)
    return call_test(test["call"], test["value"]) if "call" in test else input_test(test["input"], test["output"])


def _function_tests(source: str, name: str) -> list[ProgramTest]:
    """The tests of a function `check(candidate)`: one for each assert, or one in all when it does more than assert."""
    whole = ProgramTest(kind="check", code=f"{source}\ncheck({name})")
    body = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    if not body:
        return [assert_test(source)]
    asserts = [node for node in body[0].body if isinstance(node, ast.Assert)]
    if len(asserts) < len([node for node in body[0].body if not _is_text(node)]):
        return [whole]
    parameter = body[0].args.args[0].arg
    return [assert_test(ast.unparse(_Renamed(parameter, name).visit(node))) for node in asserts]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Renamed(ast.NodeTransformer):
    """Renames a variable."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self.new, ctx=node.ctx) if node.id == self.old else node
