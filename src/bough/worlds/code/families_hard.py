"""Families of the tier "hard": dynamic programming, graphs, intervals and parsing."""

from random import Random

from bough.worlds.code.family import Family, Parameters, numbers, word


def _steps(rng: Random) -> Parameters:
    return {"steps": tuple(sorted(rng.sample(range(1, 9), rng.randint(2, 4)))), "p": rng.choice([97, 101, 997, 1009])}


def _costs(rng: Random) -> Parameters:
    return {"a": rng.randint(1, 6), "b": rng.randint(1, 6), "c": rng.randint(1, 9)}


def _edges(rng: Random, parameters: Parameters) -> tuple[object, ...]:
    del parameters
    n = rng.randint(2, 7)
    edges = [[rng.randrange(n), rng.randrange(n), rng.randint(1, 9)] for _ in range(rng.randint(1, 12))]
    return (n, edges)


def _intervals(rng: Random, parameters: Parameters) -> tuple[object, ...]:
    del parameters
    starts = [rng.randint(0, 40) for _ in range(rng.randint(0, 7))]
    return ([[start, start + rng.randint(0, 8)] for start in starts],)


def _expression(rng: Random, parameters: Parameters) -> tuple[object, ...]:
    del parameters
    text = str(rng.randint(0, 20))
    for _ in range(rng.randint(0, 5)):
        part = str(rng.randint(0, 20))
        if rng.random() < 0.3:
            part = f"({part}{rng.choice('+*')}{rng.randint(0, 9)})"
        text += rng.choice("+-*") + part
    return (text,)


FAMILIES = (
    Family(
        name="stairs",
        tier="hard",
        prompt="Write f(n): the number of ways to climb n stairs with steps of {steps} stairs, where the order counts, "
        "modulo {p}. There is one way to climb 0 stairs.",
        header="def f(n):",
        body="""
    ways = [1] + [0] * n
    for i in range(1, n + 1):
        ways[i] = sum(ways[i - s] for s in {steps} if s <= i) % {p}
    return ways[n] % {p}
""",
        parameters=_steps,
        arguments=lambda rng, _: (rng.randint(0, 200),),
    ),
    Family(
        name="edits",
        tier="hard",
        prompt="Write f(a, b): the least cost to turn text a into text b, where to insert a character costs {a}, to "
        "delete one costs {b}, and to replace one by another costs {c}.",
        header="def f(a, b):",
        body="""
    row = [j * {a} for j in range(len(b) + 1)]
    for i, x in enumerate(a, 1):
        before, row = row, [i * {b}]
        for j, y in enumerate(b, 1):
            row.append(min(row[-1] + {a}, before[j] + {b}, before[j - 1] + (0 if x == y else {c})))
    return row[-1]
""",
        parameters=_costs,
        arguments=lambda rng, _: (word(rng, "abc", 9), word(rng, "abc", 9)),
    ),
    Family(
        name="growing",
        tier="hard",
        prompt="Write f(xs): the length of the longest subsequence of xs in which each number is larger than the one "
        "before by at least {a} and at most {top}.",
        body="""
    best = []
    for i, x in enumerate(xs):
        best.append(1 + max((best[j] for j in range(i) if {a} <= x - xs[j] <= {top}), default=0))
    return max(best, default=0)
""",
        parameters=lambda rng: {"a": rng.randint(1, 9), "top": rng.randint(10, 30)},
        arguments=lambda rng, _: (numbers(rng, most=14),),
    ),
    Family(
        name="paths",
        tier="hard",
        prompt="Write f(n, edges): a graph has the nodes 0 to n - 1 and directed edges [from, to, length]. Return the "
        "least cost of a path from node 0 to node n - 1, or -1 without one. An edge costs its length times {a} plus "
        "{b}; an edge to a node with an odd number costs {c} more.",
        header="def f(n, edges):",
        body="""
    cost = [0] + [None] * (n - 1)
    for _ in range(n):
        for u, v, length in edges:
            if cost[u] is not None:
                new = cost[u] + length * {a} + {b} + v % 2 * {c}
                if cost[v] is None or new < cost[v]:
                    cost[v] = new
    return -1 if cost[-1] is None else cost[-1]
""",
        parameters=_costs,
        arguments=_edges,
    ),
    Family(
        name="merged",
        tier="hard",
        prompt="Write f(intervals): merge intervals [first, last] whose gap is at most {gap}. Return the merged ones "
        "that are at least {least} long (last - first), sorted.",
        header="def f(intervals):",
        body="""
    found = []
    for first, last in sorted(intervals):
        if found and first - found[-1][1] <= {gap}:
            found[-1][1] = max(found[-1][1], last)
        else:
            found.append([first, last])
    return [each for each in found if each[1] - each[0] >= {least}]
""",
        parameters=lambda rng: {"gap": rng.randint(0, 12), "least": rng.randint(0, 12)},
        arguments=_intervals,
    ),
    Family(
        name="calculator",
        tier="hard",
        prompt="Write f(text): the value of an expression of numbers >= 0, +, -, * and brackets, in which + and - bind "
        "stronger than *, and the result of every * is taken modulo {p}.",
        header="def f(text):",
        body="""
    import re
    words = re.findall(r'\\d+|[-+*()]', text)

    def atom():
        word = words.pop(0)
        if word != '(':
            return int(word)
        value = product()
        words.pop(0)
        return value

    def total():
        value = atom()
        while words and words[0] in '+-':
            sign = 1 if words.pop(0) == '+' else -1
            value += sign * atom()
        return value

    def product():
        value = total()
        while words and words[0] == '*':
            words.pop(0)
            value = value * total() % {p}
        return value

    return product()
""",
        parameters=lambda rng: {"p": rng.randint(50, 500)},
        arguments=_expression,
    ),
    Family(
        name="knapsack",
        tier="hard",
        prompt="Write f(things, capacity): things is a list of [weight, value], each thing can be taken at most {n} "
        "times. Return the largest value whose weight is at most the capacity. The second and later copy of a thing is "
        "worth {loss} less than the first, but not below 0.",
        header="def f(things, capacity):",
        body="""
    best = [0] * (capacity + 1)
    for weight, value in things:
        old = best[:]
        for room in range(capacity + 1):
            total = 0
            for copies in range(1, {n} + 1):
                if copies * weight > room:
                    break
                total += value if copies == 1 else max(0, value - {loss})
                best[room] = max(best[room], old[room - copies * weight] + total)
    return best[capacity]
""",
        parameters=lambda rng: {"n": rng.randint(1, 5), "loss": rng.randint(0, 40)},
        arguments=lambda rng, _: (
            [[rng.randint(1, 9), rng.randint(1, 40)] for _ in range(rng.randint(0, 5))],
            rng.randint(0, 25),
        ),
    ),
)
