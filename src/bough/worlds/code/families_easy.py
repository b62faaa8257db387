"""Families of the tier "easy": filter, map and reduce over lists, words and dictionaries."""

from random import Random

from bough.worlds.code.family import Family, Parameters, numbers, word, words

FILTERS = {
    "are even": "x % 2 == 0",
    "are odd": "x % 2 == 1",
    "are above {a}": "x > {a}",
    "are below {a}": "x < {a}",
    "divide by {b}": "x % {b} == 0",
    "leave the rest 1 when divided by {b}": "x % {b} == 1",
    "are at an even position (counted from 0)": "i % 2 == 0",
    "are at a position that divides by {b} (counted from 0)": "i % {b} == 0",
}
MAPS = {
    "": "x",
    "each times {c}": "x * {c}",
    "each plus {c}": "x + {c}",
    "each squared": "x * x",
    "each as its distance to {c}": "abs(x - {c})",
    "each divided by {b} and rounded down": "x // {b}",
}
REDUCTIONS = {
    "list": "found",
    "sum": "sum(found)",
    "number": "len(found)",
    "largest, or 0 if there is none,": "max(found, default=0)",
    "smallest, or 0 if there is none,": "min(found, default=0)",
    "list in descending order": "sorted(found, reverse=True)",
    "number of different values": "len(set(found))",
    "last, or None if there is none,": "found[-1] if found else None",
}


def _pipeline(rng: Random) -> Parameters:
    values = {"a": rng.randint(-8, 8), "b": rng.randint(2, 6), "c": rng.randint(2, 9)}
    where, change, reduce = (rng.choice([*table]) for table in (FILTERS, MAPS, REDUCTIONS))
    texts = {"where": where, "change": change and f", {change}", "reduce": reduce}
    codes = {"keep": FILTERS[where], "value": MAPS[change], "result": REDUCTIONS[reduce]}
    return {name: text.format(**values) for name, text in {**texts, **codes}.items()}


def _affix(rng: Random) -> Parameters:
    return {"k": rng.randint(1, 4), "mark": rng.choice(["-", "_", "+", "*", "ab", "xy"]), "n": rng.randint(1, 5)}


def _letters(rng: Random) -> Parameters:
    return {"old": "".join(rng.sample("abcde", 2)), "new": "".join(rng.sample("xyzuvw", 2)), "k": rng.randint(2, 5)}


def _counted(rng: Random) -> Parameters:
    return {"k": rng.randint(1, 4), "p": rng.randint(2, 9), "q": rng.randint(1, 9)}


FAMILIES = (
    Family(
        name="pipeline",
        tier="easy",
        prompt="Write f(xs): of the numbers in the list xs that {where}{change}, return the {reduce}.",
        body="""
    found = [{value} for i, x in enumerate(xs) if {keep}]
    return {result}
""",
        parameters=_pipeline,
        arguments=lambda rng, _: (numbers(rng),),
    ),
    Family(
        name="affix",
        tier="easy",
        prompt=(
            "Write f(text): return the text with {mark!r} after every {k} characters, but not at the end, and with its "
            "last {n} characters removed before that."
        ),
        header="def f(text):",
        body="""
    text = text[:-{n}]
    return {mark!r}.join(text[i : i + {k}] for i in range(0, len(text), {k}))
""",
        parameters=_affix,
        arguments=lambda rng, _: (word(rng, most=14),),
    ),
    Family(
        name="letters",
        tier="easy",
        prompt="Write f(text): replace the letters {old[0]!r} and {old[1]!r} by {new[0]!r} and {new[1]!r}, then repeat "
        "the first {k} letters at the end.",
        header="def f(text):",
        body="""
    text = text.translate(str.maketrans({old!r}, {new!r}))
    return text + text[:{k}]
""",
        parameters=_letters,
        arguments=lambda rng, _: (word(rng, most=10),),
    ),
    Family(
        name="count_words",
        tier="easy",
        prompt="Write f(words): return a dictionary from each word that occurs at least {k} times to {p} times its "
        "number of occurrences plus {q}.",
        header="def f(words):",
        body="""
    counts = {{}}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return {{word: {p} * n + {q} for word, n in counts.items() if n >= {k}}}
""",
        parameters=_counted,
        arguments=lambda rng, _: (words(rng),),
    ),
    Family(
        name="prices",
        tier="easy",
        prompt="Write f(prices, basket): prices maps goods to prices, basket is a list of goods. Return the sum of the "
        "prices, where goods without a price cost {p}; from a sum of {q}0 on subtract {k}.",
        header="def f(prices, basket):",
        body="""
    total = sum(prices.get(good, {p}) for good in basket)
    return total - {k} if total >= {q}0 else total
""",
        parameters=_counted,
        arguments=lambda rng, _: ({name: rng.randint(1, 30) for name in words(rng)}, words(rng)),
    ),
)
