"""Documents that state the facts of a graph, among documents that resemble them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from bough.worlds.search.document import Document
from bough.worlds.search.graph import Fact, Graph

SENTENCES = ("{subject} has the {relation} {value}.", "The {relation} of {subject} is {value}.")

FILLER = (
    "The winter of that year was long and mild.",
    "Visitors came by boat in the early morning.",
    "A small garden stood behind the old wall.",
    "Letters from this period are kept in a box.",
    "The road was repaired twice in ten years.",
    "Most of the records were lost in a flood.",
    "Bread and tea were sold at the corner.",
    "Music was played there on summer evenings.",
    "The bridge was closed for several weeks.",
    "A clock tower could be seen from the river.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCorpus:
    """The documents of a graph.

    Attributes:
        documents: In random order.
        locations: By index of a fact, the number of its document and its sentence there.
    """

    documents: tuple[Document, ...]
    locations: tuple[tuple[int, str], ...]


def make_corpus(
    graph: Graph, *, distractors: int, facts_per_document: int, document_words: int, sentences: int, seed: int
) -> GraphCorpus:
    """Writes the documents of a graph; the same arguments give the same ones.

    An entity's facts stand in documents with its name as title. A distractor states the relation of a fact for a name
    that shares a word with the subject; neither it nor its value is an entity, so nothing contradicts a fact.

    Args:
        graph: The graph.
        distractors: Number of distractors of each fact.
        facts_per_document: Maximum number of facts in a document.
        document_words: Shorter documents are filled up to about this many words.
        sentences: Number of different forms of a sentence, 1 or 2.
        seed: Seed of order, forms and distractors.

    Raises:
        ValueError: when the graph has too few other names for distractors.
    """
    rng = Random(f"corpus {seed}")
    drafts: list[tuple[Document, tuple[tuple[int, str], ...]]] = []
    for entity in graph.entities:
        indices = graph.by_subject.get(entity.number, ())
        pages = [indices[at : at + facts_per_document] for at in range(0, len(indices), facts_per_document)] or [()]
        for page in pages:
            written = tuple((index, _sentence(entity.name, graph.facts[index], sentences, rng)) for index in page)
            known = [f"{entity.name} is also known as {entity.alias}."] if entity.alias else []
            text = _filled([*known, *(sentence for _, sentence in written)], document_words, rng)
            drafts.append((Document(title=entity.name, text=text), written))
    if distractors:
        drafts += [(each, ()) for each in _distractors(graph, distractors, document_words, sentences, rng)]
    rng.shuffle(drafts)
    place = {index: (number, text) for number, (_, facts) in enumerate(drafts) for index, text in facts}
    return GraphCorpus(
        documents=tuple(document for document, _ in drafts),
        locations=tuple(place[index] for index in range(len(graph.facts))),
    )


def _distractors(graph: Graph, each: int, words: int, sentences: int, rng: Random) -> list[Document]:
    """Documents about names that no entity has."""
    sharing: dict[str, list[str]] = {}
    for name in graph.other_names:
        for word in name.split():
            sharing.setdefault(word, []).append(name)
    used: set[tuple[str, str]] = set()
    found: list[Document] = []
    for fact in graph.facts:
        subject = graph.entities[fact.subject].name
        near = _near(subject, sharing, fact.relation, used)
        if len(near) < each:
            raise ValueError(
                f"distractors: got {each} for each fact, and {len(near)} free names that share a word with {subject}; "
                "need fewer distractors, or more words for names"
            )
        for name in rng.sample(near, each):
            used.add((name, fact.relation))
            value = rng.choice(graph.other_names)
            other = Fact(subject=-1, relation=fact.relation, value=-1, mention=value)
            text = _filled([_sentence(name, other, sentences, rng)], words, rng)
            found.append(Document(title=name, text=text))
    return found


def _near(
    subject: str, sharing: Mapping[str, Sequence[str]], relation: str, used: set[tuple[str, str]]
) -> Sequence[str]:
    """The names that share a word with a subject and have no value of the relation yet."""
    return [name for word in subject.split() for name in sharing.get(word, ()) if (name, relation) not in used]


def _sentence(subject: str, fact: Fact, forms: int, rng: Random) -> str:
    form = SENTENCES[rng.randrange(forms)]
    return form.format(subject=subject, relation=fact.relation, value=fact.mention)


def _filled(parts: Sequence[str], words: int, rng: Random) -> str:
    """The sentences in order, with filler between them."""
    text = [*parts]
    while sum(len(each.split()) for each in text) < words:
        text.insert(rng.randint(0, len(text)), rng.choice(FILLER))
    return " ".join(text)
