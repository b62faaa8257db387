"""Graph, corpus, index, questions: what is asked can be found, and nothing contradicts it."""

import re
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.worlds.search import Bm25s, Fts5, KnowledgeGraph
from bough.worlds.search.chains import chain_is_solvable, chain_question
from bough.worlds.search.degraded import chance, degraded_search
from bough.worlds.search.document import Document
from bough.worlds.search.score import normalise, score, token_f1
from bough.worlds.search.solvable import RetrievableFacts
from bough.worlds.search.source import open_collection

SMALL = KnowledgeGraph(entities=120, distractors=2, alias_rate=0.5, facts_per_document=2)
SENTENCE = re.compile(r"The (\w+) of (\w+ \w+) is (\w+ \w+)\.|(\w+ \w+) has the (\w+) (\w+ \w+)\.")


def stated(document: Document) -> list[tuple[str, str, str]]:
    """The facts in a document as a reader finds them: subject, relation, value."""
    return [(s, r, v) if r else (t, q, w) for r, s, v, t, q, w in SENTENCE.findall(document.text)]


def test_each_fact_is_stated_once_and_nothing_contradicts_it() -> None:
    graph, corpus = SMALL.graph, SMALL.corpus
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for number, document in enumerate(corpus.documents):
        for subject, relation, value in stated(document):
            assert value not in values[subject, relation], "stated twice"
            values[subject, relation].add(value)
            assert document.title == subject, number
    assert all(len(found) == 1 for found in values.values())
    for index, fact in enumerate(graph.facts):
        number, sentence = corpus.locations[index]
        assert sentence in corpus.documents[number].text
        assert values[graph.entities[fact.subject].name, fact.relation] == {fact.mention}
        assert fact.mention in graph.entities[fact.value].spellings
    assert len(values) == 3 * len(graph.facts), "two distractors of each fact"


def test_distractors_share_a_word_and_are_no_entity() -> None:
    graph = SMALL.graph
    names = {spelling for entity in graph.entities for spelling in entity.spellings}
    words = {word for entity in graph.entities for word in entity.name.split()}
    others = [each for document in SMALL.documents() for each in stated(document) if each[0] not in names]
    assert len(others) == 2 * len(graph.facts)
    for subject, _, value in others:
        assert words & {*subject.split()}
        assert value not in names


def test_the_knobs() -> None:
    assert len(SMALL.graph.entities) == 120
    assert 0.3 < sum(bool(entity.alias) for entity in SMALL.graph.entities) / 120 < 0.7
    plain = KnowledgeGraph(entities=60, relations=2, distractors=0, alias_rate=0.0, document_words=0)
    assert not any(entity.alias for entity in plain.graph.entities)
    assert max(len(facts) for facts in plain.graph.by_subject.values()) == 2
    assert len(plain.documents()) == 60
    long = KnowledgeGraph(entities=60, distractors=0, document_words=200)
    assert min(len(document.text.split()) for document in long.documents()) >= 200
    assert KnowledgeGraph(entities=60, seed=1).graph != KnowledgeGraph(entities=60).graph
    assert KnowledgeGraph(entities=60, seed=1).data_hash != KnowledgeGraph(entities=60).data_hash


@pytest.mark.parametrize("shape", ["chain", "set", "both", "either", "reverse", "among"])
def test_questions_of_two_splits_have_no_entity_in_common(shape: str) -> None:
    source = KnowledgeGraph(entities=600, shapes=(shape,), hops=(1, 3))  # type: ignore[arg-type]
    index = open_collection(source, Fts5()).index
    split_of = {entity.name: entity.split for entity in source.graph.entities}
    spellings = {s: entity.name for entity in source.graph.entities for s in entity.spellings}
    for split in ("train", "dev", "test"):
        questions = source.questions(split, 12, 0, index, 5)
        assert len({each.content for each in questions}) == 12
        for question in questions:
            named = re.findall(r"[A-Z]\w+ [A-Z]\w+", re.sub("^(Name|Which of) ", "", question.text))
            found = {spellings[each] for each in named} | {spellings[each[0]] for each in question.answers}
            found |= {each.entity for each in question.evidence if each.entity}
            assert {split_of[each] for each in found} == {split}


def test_a_long_chain_of_people_in_the_order_of_the_search_has_each_relation_once() -> None:
    source = KnowledgeGraph(entities=300, people=True, relations=24, hops=(15, 18), forward=True, distractors=0)
    index = open_collection(source, Fts5()).index
    assert {entity.type for entity in source.graph.entities} == {"person"}
    lengths = set[int]()
    for question in source.questions("train", 20, 0, index, 2):
        found = re.fullmatch(r"Who is reached from (\w+ \w+) by (.+)\?", question.text)
        assert found
        relations = found[2].split(" ")
        assert [each.query.split(" of ")[0] for each in question.evidence] == relations
        assert question.evidence[0].query.endswith(found[1])
        assert len({*relations}) == len(relations)
        lengths.add(len(relations))
    assert lengths == {15, 16, 17, 18}


def test_one_of_a_list_has_the_value_and_no_search_for_the_value_finds_it() -> None:
    source = KnowledgeGraph(entities=400, shapes=("among",), set_size=(6, 9), alias_rate=0.4)
    index = open_collection(source, Fts5()).index
    graph = source.graph
    number_of = {entity.name: entity.number for entity in graph.entities}
    sizes, places = set[int](), set[int]()
    for question in source.questions("train", 40, 0, index, 2):
        found = re.fullmatch(r"Which of (.+) has the (\w+) (\w+ \w+)\?", question.text)
        assert found
        listed, relation, value = found[1].split(", "), found[2], found[3]
        facts = [
            next(fact for at in graph.by_subject[number_of[each]] if (fact := graph.facts[at]).relation == relation)
            for each in listed
        ]
        (answer,) = (place for place, fact in enumerate(facts) if fact.value == number_of[value])
        assert question.answers == (graph.entities[facts[answer].subject].spellings,)
        assert facts[answer].mention == value
        assert [each.entity for each in question.evidence] == listed[: answer + 1]
        assert question.evidence[-1].document not in index.search(f"{relation} {value}", 2)
        sizes.add(len(listed))
        places.add(answer)
    assert sizes == {6, 7, 8, 9}
    assert {0, 5} <= places
    assert source.questions("train", 1, 1, index, 2) != source.questions("train", 1, 0, index, 2)


def test_questions_of_two_splits_can_share_entities_and_are_still_different() -> None:
    source = KnowledgeGraph(entities=100, split_by="questions")
    index = open_collection(source, Fts5()).index
    by_split = [source.questions(split, 30, 0, index, 5) for split in ("train", "dev", "test")]  # type: ignore[arg-type]
    contents = [{question.content for question in each} for each in by_split]
    entities = [{fact.entity for question in each for fact in question.evidence} for each in by_split]
    assert not contents[0] & contents[1] | contents[0] & contents[2] | contents[1] & contents[2]
    assert entities[0] & entities[2]


def test_a_question_is_solvable_only_while_its_documents_are_found() -> None:
    source = SMALL
    index = open_collection(source, Fts5()).index
    found = RetrievableFacts(source.graph, source.corpus, lambda query: index.search(query, 5))
    questions = {each.content: each for each in source.questions("train", 40, 0, index, 5)}
    walks = [
        (one, two)
        for one, fact in enumerate(source.graph.facts)
        for two in source.graph.by_subject.get(fact.value, ())
        if source.graph.facts[two].value != fact.subject
    ]
    walk = next(each for each in walks if chain_question(found, each).content in questions)
    assert chain_is_solvable(found, walk)
    for missing in walk:
        gone = source.corpus.locations[missing][0]
        blind = RetrievableFacts(
            source.graph, source.corpus, lambda query, gone=gone: {*index.search(query, 5)} - {gone}
        )
        assert not chain_is_solvable(blind, walk)


def test_every_drawn_question_is_aligned_with_the_index_though_many_facts_are_not() -> None:
    # Titles alone decide, and second names are in no title: an entity known by its second name is not found.
    source = KnowledgeGraph(entities=300, alias_rate=0.5)
    index = open_collection(source, Fts5(title_weight=100.0)).index
    drawn = source.questions("train", 50, 0, index, 1)
    assert all(index.search(each.query, 1) == [each.document] for question in drawn for each in question.evidence)
    found = RetrievableFacts(source.graph, source.corpus, lambda query: index.search(query, 1))
    facts = [(at, source.graph.entities[fact.subject].alias) for at, fact in enumerate(source.graph.facts)]
    hidden = [at for at, alias in facts if alias and not found.forward(at, alias)]
    assert len(hidden) > 20


def test_a_split_without_enough_questions() -> None:
    source = KnowledgeGraph(entities=60)
    index = open_collection(source, Fts5()).index
    with pytest.raises(ValueError, match=r"got count=5000 for split 'dev', but after \d+ different questions"):
        source.questions("dev", 5000, 0, index, 5)


def indices() -> list[object]:
    return [Fts5(), Fts5(stem=True), Bm25s()]


@pytest.mark.parametrize("settings", indices(), ids=["fts5", "stemmed", "bm25s"])
def test_an_index_ranks_and_is_never_broken_by_a_query(settings: object) -> None:
    documents = [Document(title=f"note {n}", text="fill " * n) for n in range(20)]
    documents.append(Document(title="Bak Lum", text="The boss of Bak Lum is Zed Gor.\ud800\0"))
    index = settings.build(documents)  # type: ignore[attr-defined]
    assert index.search("boss lum", 3) == [20]
    assert index.search("BOSS! of lum?", 3) == [20]
    assert len(index.search("fill note", 7)) == 7
    assert index.search("fill", 7) == index.search("fill fill", 7)
    for query in (
        "",
        " ",
        "zzz",
        "\0",
        "\ud800",
        '" OR 1',
        "NEAR(a b)",
        "a*",
        "title:bak AND",
        "x" * 10**5,
        "b " * 10**5,
    ):
        assert len(index.search(query, 3)) <= 3


def test_both_indices_find_the_same_documents() -> None:
    one, two = (open_collection(SMALL, settings).index for settings in (Fts5(), Bm25s()))
    questions = SMALL.questions("train", 40, 0, one, 5)
    evidence = [each for question in questions for each in question.evidence]
    assert sum(each.document in two.search(each.query, 5) for each in evidence) >= 0.9 * len(evidence)


def test_squad_scores() -> None:
    assert normalise("  The Port, of  Bak!") == "port of bak"
    assert score("the Bak Lum.", [["Zed", "Bak Lum"]]) == (1.0, 1.0)
    assert score("Bak", [["Bak Lum"]]) == (0.0, pytest.approx(2 / 3))
    assert score("", [["Bak Lum"]]) == (0.0, 0.0)
    assert token_f1("Bak Bak Zed", "Bak Lum", once=True) == pytest.approx(0.5)
    assert token_f1("the", "a") == 1.0, "both are empty after normalisation, as in SQuAD"


def test_scores_of_sets() -> None:
    answers = [["Bak Lum", "Zed Gor"], ["Tim Ros"]]
    assert score("Tim Ros; Zed Gor", answers) == (1.0, 1.0)
    assert score("Zed Gor, Bak Lum and Tim Ros", answers) == (1.0, 1.0), "two spellings of one entity count once"
    assert score("Tim Ros", answers) == (0.0, pytest.approx(2 / 3))
    assert score("Tim Ros, Zed Gor, Nun Fam", answers) == (0.0, pytest.approx(0.8))
    assert score("nothing", answers) == (0.0, 0.0)


@settings(max_examples=100)
@given(st.text(), st.lists(st.lists(st.text(), min_size=1, max_size=3), min_size=1, max_size=3))
def test_scores_are_in_range_and_an_exact_match_has_an_f1_of_one(answer: str, answers: list[list[str]]) -> None:
    exact, f1 = score(answer, answers)
    assert exact in (0.0, 1.0)
    assert 0 <= f1 <= 1
    assert f1 == 1 or not exact


def test_degraded_results_lack_the_document_and_grow_with_the_noise() -> None:
    index = open_collection(SMALL, Fts5()).index
    evidence = [each for question in SMALL.questions("train", 60, 0, index, 3) for each in question.evidence]
    degraded: list[set[int]] = []
    for noise in (0.0, 0.3, 0.6, 1.0):
        results = [degraded_search(index, each.query, top=3, noise=noise, seed=7) for each in evidence]
        degraded.append({at for at, each in enumerate(evidence) if each.document not in results[at]})
        assert all(len(each) <= 3 for each in results)
        assert results == [degraded_search(index, each.query, top=3, noise=noise, seed=7) for each in evidence]
    assert not degraded[0]
    assert degraded[0] < degraded[1] < degraded[2] < degraded[3]
    assert len(degraded[3]) == len(evidence)
    assert abs(len(degraded[1]) / len(evidence) - 0.3) < 0.15
    assert chance("Bak boss", 1) == chance(" bak  BOSS ", 1) != chance("Bak boss", 2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"entities": 3}, "KnowledgeGraph.entities: got 3; need at least 10"),
        ({"hops": (3, 2)}, r"KnowledgeGraph.hops: got \(3, 2\); need 1 <= minimum <= maximum"),
        ({"alias_rate": 2.0}, "KnowledgeGraph.alias_rate: got 2.0; need a number from 0 to 1"),
        ({"split_by": "name"}, "KnowledgeGraph.split_by: got 'name'; need 'entities' or 'questions'"),
        ({"sentences": 3}, "KnowledgeGraph.sentences: got 3; need a number from 1 to 2"),
        ({"words": 5}, "KnowledgeGraph.words: got 5 for 1000 entities; need at least 45"),
    ],
)
def test_settings_out_of_range(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KnowledgeGraph(**fields)  # type: ignore[arg-type]


def test_too_many_distractors_for_the_names() -> None:
    with pytest.raises(
        ValueError, match=r"distractors: got 9 for each fact, and .* need fewer distractors, or more words"
    ):
        KnowledgeGraph(entities=120, distractors=9, words=16).documents()
