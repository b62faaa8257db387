"""Values as Python writes them."""

import ast
import warnings

from bough.policy.calls.objects import check_value


def python_value(text: str) -> object:
    """The value of a literal.

    Raises:
        ValueError: when it is none, has a key twice, or `check_value` refuses it.
        SyntaxError: when it is no expression.
        TypeError: see `check_value`.
        MemoryError: when it has too many levels, as `RecursionError`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        parsed = ast.parse(text, mode="eval")
    for each in ast.walk(parsed):
        keys = [ast.dump(key) for key in each.keys if key] if isinstance(each, ast.Dict) else []
        if len(set(keys)) < len(keys):
            raise ValueError("a key twice")
    value = ast.literal_eval(parsed)
    check_value(value)
    return value
