"""The words of docs and docstrings: the field's terms, plain sentences, one name for one class."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT

SRC = ROOT / "src" / "bough"
FILES = sorted(SRC.rglob("*.py"))

CODE = (
    r"(?:engine|learner|policy|critic|rule|piece|objective|loss|credit|explorer|search|rollout|environment|parser|context|"
    r"runner|batch|tree|node|path|hook|host|worker|server|run|loop|page|docstring|field|config|command|metric|test|reward|"
    r"filter|wrapper|method|world|renderer|template|tokenizer|process|setting|recipe|function|class|report|row|column)s?"
)

WORDS = {
    # Code as a person.
    rf"\b{CODE} (?:says?|said|tells?|asks?|thinks?|thought|knows?|knew|hears?|forgets?|forgot|wants?|believes?)\b": (
        "code is not a person: it returns, stores, computes, requires"
    ),
    r"\b(?:it|they|that|which) (?:says?|said|asks?|thinks?|knows?|knew|hears?|forgets?|wants?|tells?)\b": (
        "code is not a person: it returns, stores, computes, requires"
    ),
    r"\b(?:is|are|was|were|be|been|being) told\b(?! apart| from)": "name the argument, the prompt or the message",
    r"\bwho (?:reads?|writes?|wrote|samples?|sampled|plays?|acts?|asks?|learns?|attends?)\b": "name the piece",
    # A pronoun for a noun.
    r"\b(?:nobody|whoever|whomever|somebody|someone|anybody)\b": "name the piece or the user",
    r"\bwhat (?:is|was|were|has been) (?:read|written|said|told|sampled|asked|seen|known|drawn)\b": (
        "name it: tokens, prompt, action, observation"
    ),
    r"\bwhatever (?:it|they|he|she|is|was)\b": "name it",
    r"\bthose that\b": "name them",
    r"\bone's own\b": "your own",
    # Inverted or old-fashioned order.
    r"\banew\b": "again",
    r"\bin (?:its|their|his) stead\b": "in place of, or the replacement as the subject",
    r"\bdearest\b": "the maximum or worst-case cost",
    # A home-made word for the field's term.
    r"\bslopes?\b": "gradient",
    r"\b(?:forests?)\b": "packed prefix tree",
    r"\b(?:stretch|stretches)\b": "chunk, or run of tokens",
    r"\b(?:advisers?|advisors?)\b": "hook",
    r"\b(?:grove|groves)\b": "rollouts, RolloutRunner",
    r"\bworkshops?\b": "Runtime",
    r"\bledgers?\b": "Budget",
    r"\bthe journal\b": "RunRecorder",
    r"\bat its most\b": "the maximum",
    r"\bthe pen of\b": "what the class writes",
    r"\bsigns? of life\b": "a non-zero advantage",
    r"\bcarr(?:y|ies|ied|ying) (?:\w+ )?out\b": "execute",
    r"\bwhat (?:\w+ )?(?:\w+ )?(?:is|are) worth\b": "value",
    r"\b(?:what|tokens? that|paths? that|turns? that) (?:gains?|loses?)\b": "positive or negative advantage",
    r"\blooked at\b": "evaluated, compared, read",
    r"\blook-?alikes?\b": "similar",
}
"""Patterns that docs and docstrings do not have, each with the reason or the term to use. Case does not matter."""

INLINE = re.compile(r"`[^`\n]*`")
FENCE = re.compile(r"^```(?:console|sh)\n.*?^```$", re.MULTILINE | re.DOTALL)


def _blank(found: re.Match[str]) -> str:
    """As many lines without text, so that line numbers stay."""
    return "\n" * found[0].count("\n") or "`"


def hits(text: str, first_line: int = 1) -> Iterator[str]:
    """`line: words (reason)` for each pattern that occurs; names in backticks do not count.

    Line breaks count as spaces.
    """
    plain = INLINE.sub("`", FENCE.sub(_blank, text))
    for pattern, reason in WORDS.items():
        for found in re.finditer(pattern.replace(" ", r"\s+"), plain, re.IGNORECASE):
            line = first_line + plain.count("\n", 0, found.start())
            yield f"{line}: {' '.join(found[0].split())!r} ({reason})"


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """The docstrings of a module, its classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def test_pages_have_plain_words() -> None:
    found = [f"{page.relative_to(ROOT)}:{each}" for page in PAGES for each in hits(page.read_text(encoding="utf-8"))]
    assert not found, "\n".join(["", *found])


def test_docstrings_have_plain_words() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{each}"
        for file in FILES
        for text in docstrings(ast.parse(file.read_text(encoding="utf-8")))
        for each in hits(str(text.value), text.lineno)
    ]
    assert not found, "\n".join(["", *found])


def _public_classes(room: Path) -> Iterator[tuple[str, str]]:
    """Name and defining module of each class in the `__all__` of a room."""
    tree = ast.parse((room / "__init__.py").read_text(encoding="utf-8"))
    exported = {
        item.value
        for node in tree.body
        if isinstance(node, ast.Assign) and any(isinstance(at, ast.Name) and at.id == "__all__" for at in node.targets)
        for item in ast.walk(node.value)
        if isinstance(item, ast.Constant)
    }
    sources = {
        (name.asname or name.name): (node.module or "", name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for name in exported:
        if name in own:
            yield name, f"bough.{room.name}"
        elif name in sources and _defines(*sources[name]):
            yield name, sources[name][0]


def _defines(module: str, name: str) -> bool:
    path = SRC.parent / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module(body=[], type_ignores=[])
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in tree.body)


def test_no_two_public_classes_have_one_name() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for init in SRC.glob("*/__init__.py"):
        for name, module in _public_classes(init.parent):
            homes[name].add(module)
    assert len(homes) > 200, "need the classes of all rooms"
    twice = {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}
    assert not twice, f"got classes of one name in several modules: {twice}; rename one of each"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Nobody reads the value.", "Nobody"),
        ("The engine\nsays which tokens.", "engine says"),
        ("An objective asks for paths.", "objective asks"),
        ("The text is rendered anew.", "anew"),
        ("Two methods are not told apart.", ""),
        ("The option `nobody` is a name.", ""),
    ],
)
def test_the_patterns_find_words_across_lines_and_spare_names(text: str, words: str) -> None:
    assert [each.split("'")[1] for each in hits(text)] == ([words] if words else [])
