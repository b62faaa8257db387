"""Families of the tier "line": one expression of a number or of a list."""

from random import Random

from bough.worlds.code.family import Family, Parameters, numbers


def _two(rng: Random) -> Parameters:
    return {"a": rng.randint(2, 20), "b": rng.randint(1, 20)}


def _few(rng: Random) -> Parameters:
    return {"a": rng.randint(2, 6), "b": rng.randint(1, 25)}


def _number(rng: Random, parameters: Parameters) -> tuple[object, ...]:
    del parameters
    return (rng.randint(-60, 60),)


def _list(rng: Random, parameters: Parameters) -> tuple[object, ...]:
    del parameters
    return (numbers(rng, least=1, high=40),)


NUMBERS = {
    "times_plus": ("x times {a} plus {b}", "x * {a} + {b}"),
    "times_minus": ("x times {a} minus {b}", "x * {a} - {b}"),
    "plus_times": ("x plus {b} , times {a}", "(x + {b}) * {a}"),
    "minus_times": ("x minus {b} , times {a}", "(x - {b}) * {a}"),
    "divided_plus": ("x divided by {a} rounded down , plus {b}", "x // {a} + {b}"),
    "rest_plus": ("the rest of x divided by {a} , plus {b}", "x % {a} + {b}"),
    "square_plus": ("the square of x , times {a} plus {b}", "x * x * {a} + {b}"),
    "least": ("the smaller of x and {a} , plus {b}", "min(x, {a}) + {b}"),
    "greatest": ("the larger of x and {a} , plus {b}", "max(x, {a}) + {b}"),
    "distance": ("the distance of x and {a} , plus {b}", "abs(x - {a}) + {b}"),
}

LISTS = {
    "sum_times": ("the sum of xs , times {a} plus {b}", "sum(xs) * {a} + {b}"),
    "count_times": ("the length of xs , times {a} plus {b}", "len(xs) * {a} + {b}"),
    "each_times": ("each of xs times {a} plus {b}", "[x * {a} + {b} for x in xs]"),
    "each_plus": ("each of xs plus {b} , times {a}", "[(x + {b}) * {a} for x in xs]"),
    "spread": ("the largest minus the smallest of xs , times {a} plus {b}", "(max(xs) - min(xs)) * {a} + {b}"),
    "sorted_times": ("xs sorted , each times {a} plus {b}", "[x * {a} + {b} for x in sorted(xs)]"),
}

FILTERS = {
    "above": ("each of xs above {b} , times {a}", "[x * {a} for x in xs if x > {b}]"),
    "divisible": ("each of xs that divides by {a} , plus {b}", "[x + {b} for x in xs if x % {a} == 0]"),
    "count_above": ("the number of xs above {b} , times {a}", "len([x for x in xs if x > {b}]) * {a}"),
}

FAMILIES = (
    *(
        Family(
            name=name,
            tier="line",
            prompt=f"f is {text} .",
            header="def f(x):",
            body=code,
            parameters=_two,
            arguments=_number,
        )
        for name, (text, code) in NUMBERS.items()
    ),
    *(
        Family(name=name, tier="line", prompt=f"f is {text} .", body=code, parameters=_two, arguments=_list)
        for name, (text, code) in LISTS.items()
    ),
    *(
        Family(name=name, tier="line", prompt=f"f is {text} .", body=code, parameters=_few, arguments=_list)
        for name, (text, code) in FILTERS.items()
    ),
)
