"""Families of the tier "medium": loops with a state, grouping, texts and matrices."""

from random import Random

from bough.worlds.code.family import Family, Parameters, numbers, word, words


def _pair(rng: Random) -> Parameters:
    return {"k": rng.randint(2, 9), "p": rng.randint(1, 25)}


def _window(rng: Random) -> Parameters:
    name, code = rng.choice([("sum", "sum"), ("largest number", "max"), ("smallest number", "min")])
    return {"k": rng.randint(2, 4), "s": rng.randint(1, 3), "p": rng.randint(1, 20), "name": name, "code": code}


def _group(rng: Random) -> Parameters:
    key, code = rng.choice([("length", "len(word)"), ("first letter", "word[0]"), ("last letter", "word[-1]")])
    return {"key": key, "code": code, "k": rng.randint(1, 2), "order": rng.choice(["ascending", "descending"])}


def _matrix(rng: Random) -> Parameters:
    return {"turns": rng.randint(1, 3), "a": rng.randint(2, 9), "b": rng.randint(0, 9)}


def _grid(rng: Random, parameters: Parameters) -> tuple[object, ...]:
    del parameters
    columns = rng.randint(1, 4)
    return ([[rng.randint(-9, 9) for _ in range(columns)] for _ in range(rng.randint(1, 4))],)


FAMILIES = (
    Family(
        name="caesar",
        tier="medium",
        prompt="Write f(text): move every letter from a to z by {p} places in the alphabet, after z comes a. Every "
        "{k}th letter (counted from 1) stays as it is. Other characters stay and do not count.",
        header="def f(text):",
        body="""
    found, count = [], 0
    for each in text:
        if 'a' <= each <= 'z':
            count += 1
            if count % {k}:
                each = chr((ord(each) - 97 + {p}) % 26 + 97)
        found.append(each)
    return ''.join(found)
""",
        parameters=_pair,
        arguments=lambda rng, _: (word(rng, "abcxyz -!", 14),),
    ),
    Family(
        name="runs",
        tier="medium",
        prompt="Write f(text): write each run of one letter as the letter and the length of the run; runs shorter than "
        "{k} stay as they are, and a run is at most {p} long, a longer one begins a new run.",
        header="def f(text):",
        body="""
    found, i = [], 0
    while i < len(text):
        n = 1
        while i + n < len(text) and text[i + n] == text[i] and n < {p}:
            n += 1
        found.append(text[i] * n if n < {k} else text[i] + str(n))
        i += n
    return ''.join(found)
""",
        parameters=lambda rng: {"k": rng.randint(2, 3), "p": rng.randint(3, 40)},
        arguments=lambda rng, _: ("".join(rng.choice("abc") * rng.randint(1, 6) for _ in range(rng.randint(0, 5))),),
    ),
    Family(
        name="windows",
        tier="medium",
        prompt="Write f(xs): return the list of the {name} plus {p} of each window of {k} neighbours in xs. A window "
        "begins at every position that divides by {s}.",
        body="    return [{code}(xs[i : i + {k}]) + {p} for i in range(0, len(xs) - {k} + 1, {s})]",
        parameters=_window,
        arguments=lambda rng, _: (numbers(rng, most=12),),
    ),
    Family(
        name="groups",
        tier="medium",
        prompt="Write f(words): return a dictionary from the {key} of words to the list of different words with it, in "
        "{order} order. Leave out lists with fewer than {k} words.",
        header="def f(words):",
        body="""
    found = {{}}
    for word in sorted(set(words), reverse={order!r} == 'descending'):
        found.setdefault({code}, []).append(word)
    return {{key: each for key, each in found.items() if len(each) >= {k}}}
""",
        parameters=_group,
        arguments=lambda rng, _: (words(rng, 12),),
    ),
    Family(
        name="rotated",
        tier="medium",
        prompt="Write f(rows): rows is a matrix as a list of lists. Turn it clockwise {turns} times by a quarter, and "
        "return it with each number times {a} plus {b}.",
        header="def f(rows):",
        body="""
    for _ in range({turns}):
        rows = [list(row) for row in zip(*rows[::-1])]
    return [[x * {a} + {b} for x in row] for row in rows]
""",
        parameters=_matrix,
        arguments=_grid,
    ),
    Family(
        name="digits",
        tier="medium",
        prompt="Write f(n): the digits of the number n >= 0 in base {k}, each times {p}, added up; repeat with the sum "
        "until it is below {k} or has not become smaller. Return the last sum; return n itself when n is below {k}.",
        header="def f(n):",
        body="""
    while n >= {k}:
        total, m = 0, n
        while m:
            total += m % {k} * {p}
            m //= {k}
        if total >= n:
            return total
        n = total
    return n
""",
        parameters=_pair,
        arguments=lambda rng, _: (rng.randint(0, 10 ** rng.randint(1, 7)),),
    ),
    Family(
        name="balance",
        tier="medium",
        prompt="Write f(moves): an account begins with {p}. Each move adds its number to the account, but a move that "
        "would bring the account below {low} is skipped, and every {k}th executed move costs 1 more. Return the final "
        "account and the number of skipped moves as a list.",
        header="def f(moves):",
        body="""
    account, done, skipped = {p}, 0, 0
    for move in moves:
        cost = 1 if (done + 1) % {k} == 0 else 0
        if account + move - cost < {low}:
            skipped += 1
        else:
            account += move - cost
            done += 1
    return [account, skipped]
""",
        parameters=lambda rng: {"p": rng.randint(0, 30), "low": rng.randint(-20, 0), "k": rng.randint(2, 5)},
        arguments=lambda rng, _: (numbers(rng, most=10),),
    ),
)
