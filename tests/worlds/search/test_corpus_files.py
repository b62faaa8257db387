"""A corpus and questions of the user's own."""

import json
from pathlib import Path

import pytest

from bough.env import Branching
from bough.tree import Action, Outcome, Task, ToolCall
from bough.worlds.search import Bm25s, CorpusFiles, Fts5, SearchQa
from bough.worlds.search.document import Document
from bough.worlds.search.index import IndexSettings
from bough.worlds.search.question import read_question
from bough.worlds.search.score import score

NOTES = {
    "people/ann.md": "# Ann\nAnn Lee wrote The Red Door in 1931.",
    "people/bob.txt": "Bob Ray was a painter.",
    "places/port.markdown": "The Red Door is a house in Port Bak.",
    "places/photo.png": "no text",
}
ROWS = [
    {
        "question": "In which town is the house that Ann Lee's book is named after?",
        "answer": "Port Bak",
        "evidence": ["people/ann", "places/port"],
        "queries": ["Ann Lee book", "Red Door"],
    },
    {"question": "Who was a painter?", "answers": ["Bob Ray", "Bob"], "evidence": ["people/bob"], "split": "test"},
    {"question": "Name the two people.", "answers": [["Ann Lee", "Ann"], ["Bob Ray"]], "split": "dev"},
]


def files(folder: Path, rows: list[dict[str, object]] | None = None) -> CorpusFiles:
    for name, text in NOTES.items():
        (folder / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "notes" / name).write_text(text)
    lines = [json.dumps(row) for row in (ROWS if rows is None else rows)]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n\n")
    return CorpusFiles(corpus=str(folder / "notes"), tasks=str(folder / "questions.jsonl"))


def test_a_folder_is_searched_read_and_answered(tmp_path: Path) -> None:
    env = SearchQa(source=files(tmp_path), top=2, snippet_words=0)
    assert env.branching is Branching.COPY
    assert [each.title for each in env.source.documents()] == ["people/ann", "people/bob", "places/port"]
    tasks = [task for split in ("train", "dev", "test") for task in env.tasks(split, 1, 0)]  # type: ignore[arg-type]
    assert {read_question(task).text for task in tasks} == {row["question"] for row in ROWS}
    solved = 0
    for task in tasks:
        state = env.start(task)
        plan = env.plan(state)
        assert (plan is None) == (not read_question(task).evidence)
        for action in plan or ():
            step = env.step(state, action)
            state = step.state
        solved += bool(plan) and step.success and step.outcome is Outcome.TERMINATED
    assert solved == 2


UNSPACED = {
    "tokyo": "東京都の人口は約1400万人である。",
    "kyoto": "京都市は古い都で、寺が多い。",
    "chinese": "北京是中国的首都。港口在天津。",
    "thai": "กรุงเทพเป็นเมืองหลวงของประเทศไทย",
    "latin": "The port of Bak is old. \u00e9t\u00e9",
}


@pytest.mark.parametrize("index", [Fts5(), Bm25s()], ids=["fts5", "bm25s"])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("人口", ["tokyo"]),
        ("東京都の人口はどのくらいですか", ["tokyo", "kyoto"]),
        ("寺が多い", ["kyoto"]),
        ("中国首都", ["chinese"]),
        ("港", ["chinese"]),
        ("เมืองหลวง", ["thai"]),
        ("Bak 港口", ["chinese", "latin"]),
        ("été", ["latin"]),
    ],
)
def test_languages_without_blanks_are_searched(query: str, found: list[str], index: IndexSettings) -> None:
    documents = [Document(title=title, text=text) for title, text in UNSPACED.items()]
    numbers = index.build(documents).search(query, 2)
    assert {documents[number].title for number in numbers} == {*found}
    assert len(found) < 2 or "Bak" in query or documents[numbers[0]].title == found[0]


def test_a_long_document_is_read_page_by_page(tmp_path: Path) -> None:
    source = files(tmp_path)
    (tmp_path / "notes" / "long.md").write_text("本" * 250 + " end")
    env = SearchQa(source=source, document_characters=100)
    (task,) = env.tasks("dev", 1, 0)
    assert env.tools[1].schema["properties"] == {"doc": {"type": "integer"}, "page": {"type": "integer"}}
    number = [each.title for each in source.documents()].index("long")
    state, text, keys = env.start(task), "", set[str]()
    for page in (None, 2, 3):
        arguments = {"doc": number} | ({"page": page} if page else {})
        step = env.step(state, Action(calls=(ToolCall(name="read", arguments=arguments),)))
        shown = step.state.observation[0].content
        assert shown.endswith(f"(page {page or 1} of 3)")
        text, state = text + shown.rpartition("\n(page")[0], step.state
        keys.add(state.key)
    assert text == "long\n" + "本" * 250 + " end"
    assert len(keys) == 3
    wrong = env.step(state, Action(calls=(ToolCall(name="read", arguments={"doc": number, "page": 4}),)))
    assert wrong.state.observation[0].content == "error: got page 4; need a page from 1 to 3"
    listed = env.step(state, Action(calls=(ToolCall(name="search", arguments={"query": "本"}),)))
    assert len(listed.state.observation[0].content) < 300
    assert "page" not in SearchQa(source=source).tools[1].schema["properties"]


def test_a_set_and_spellings(tmp_path: Path) -> None:
    env = SearchQa(source=files(tmp_path))
    (task,) = env.tasks("dev", 1, 0)
    step = env.step(env.start(task), Action(text="Bob Ray, Ann"))
    assert (step.reward, step.success) == (1.0, True)
    (task,) = env.tasks("test", 1, 0)
    assert env.step(env.start(task), Action(text="bob")).success


def test_equal_questions_are_in_one_split_and_the_hash_follows_the_files(tmp_path: Path) -> None:
    rows = [{"question": f"What is {number}?", "answer": number} for number in range(60)]
    source = files(tmp_path, [*rows, *({**row, "question": str(row["question"]).upper()} for row in rows)])
    env = SearchQa(source=source)
    counts = [len(env.tasks(split, count, 0)) for split, count in (("train", 40), ("dev", 1), ("test", 1))]  # type: ignore[arg-type]
    assert counts == [40, 1, 1]
    with pytest.raises(ValueError, match=r"got count=60 for split 'train'; .* of 'train', .* of 'dev'"):
        env.tasks("train", 60, 0)
    before = env.data_hash
    (tmp_path / "questions.jsonl").write_text(json.dumps(rows[0]))
    assert env.data_hash != before


def test_files_that_change_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.worlds.search.files.REFRESH_S", 0.0)
    source = files(tmp_path)
    env = SearchQa(source=source, snippet_words=0)
    search = Action(calls=(ToolCall(name="search", arguments={"query": "lighthouse"}),))

    def result(task: Task) -> str:
        return str(env.step(env.start(task), search).state.observation)

    (task,) = env.tasks("test", 1, 0)
    assert "no results" in result(task)
    (tmp_path / "notes" / "new.md").write_text("A lighthouse stands there.")
    assert "new" in result(task)
    (tmp_path / "notes" / "new.md").unlink()
    assert "no results" in result(task)
    row = {"question": "What stands there?", "answer": "a lighthouse", "split": "test"}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    (task,) = env.tasks("test", 1, 0)
    assert task.data["question"] == "What stands there?"


def test_a_draw_of_tasks_refreshes_the_documents_of_searches(tmp_path: Path) -> None:
    env = SearchQa(source=files(tmp_path), snippet_words=0)
    env.tasks("test", 1, 0)
    (tmp_path / "notes" / "new.md").write_text("A lighthouse stands there.")
    search = Action(calls=(ToolCall(name="search", arguments={"query": "lighthouse"}),))
    assert "new" in str(env.step(env.start(env.tasks("test", 1, 0)[0]), search).state.observation)


def test_a_corpus_of_json_lines(tmp_path: Path) -> None:
    rows = [
        {"title": "Ann", "text": "Ann Lee wrote it."},
        {"id": 7, "contents": '"Bob"\nBob Ray was a painter.'},
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = files(tmp_path, [{"question": "Who?", "answer": "Bob Ray", "evidence": ["Bob"], "split": "train"}])
    source = CorpusFiles(corpus=str(tmp_path / "corpus.jsonl"), tasks=source.tasks)
    assert [(each.title, each.text) for each in source.documents()] == [
        ("Ann", "Ann Lee wrote it."),
        ("Bob", "Bob Ray was a painter."),
    ]
    (task,) = SearchQa(source=source).tasks("train", 1, 0)
    assert read_question(task).evidence[0].document == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "x"}, r"line 1: got \{'answer': 'x'\}; need a JSON object with a text under \"question\""),
        ({"question": "Who?"}, r"need a JSON object with a text under \"question\", and \"answers\""),
        ({"question": "Who?", "answer": "x", "evidence": ["none"]}, "line 1: got the evidence 'none'; need titles"),
        (
            {"question": "Who?", "answer": "x", "evidence": ["people/ann"], "queries": ["a", "b"]},
            "got 2 queries for 1 documents of evidence",
        ),
        ({"question": "Who?", "answer": "x", "split": "all"}, "got the split 'all'; need one of train, dev, test"),
    ],
)
def test_rows_that_are_no_questions(row: dict[str, object], message: str, tmp_path: Path) -> None:
    env = SearchQa(source=files(tmp_path, [row]))
    with pytest.raises(ValueError, match=message):
        env.tasks("train", 1, 0)


def test_files_that_are_none(tmp_path: Path) -> None:
    source = files(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"got no documents; need files of \.txt"):
        CorpusFiles(corpus=str(tmp_path / "empty"), tasks=source.tasks).documents()
    (tmp_path / "bad.jsonl").write_text("[1]\n")
    with pytest.raises(ValueError, match=r"bad.jsonl, line 1: got .* need a JSON object"):
        CorpusFiles(corpus=str(tmp_path / "bad.jsonl"), tasks=source.tasks).documents()
    (tmp_path / "bad.jsonl").write_text("no json\n")
    with pytest.raises(ValueError, match=r"bad.jsonl, line 1: got .*no JSON: Expecting value.* need a JSON object"):
        CorpusFiles(corpus=str(tmp_path / "bad.jsonl"), tasks=source.tasks).documents()
    (tmp_path / "bad.jsonl").write_text('{"name": 1}\n')
    with pytest.raises(ValueError, match=r"got the keys \['name'\]; need a text under \"text\""):
        CorpusFiles(corpus=str(tmp_path / "bad.jsonl"), tasks=source.tasks).documents()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("image.txt", b"\x89PNG\r\n\x1a\n\0\0", r"image\.txt: got no UTF-8 \(invalid start byte 0x89\); need text"),
        ("zeros.txt", b"a\0b", r"zeros\.txt: got bytes of zero; need text: remove the file"),
        ("wide.md", "a port".encode("utf-16"), r"wide\.md: got no UTF-8"),
        ("empty.md", b"", r"empty\.md: got no text; need text: remove the file"),
        ("blank.md", b"\xef\xbb\xbf \n", r"blank\.md: got no text"),
        (
            "people/ann.txt",
            b"Another Ann",
            r"ann\.txt: got the title 'people/ann' of .*ann\.md too; need different names",
        ),
    ],
)
def test_files_that_are_no_documents_are_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    source = files(tmp_path)
    (tmp_path / "notes" / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        source.documents()


def test_evidence_is_the_title_of_one_document(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"title": "Ann", "text": "1"}\n{"title": "Ann", "text": "2"}\n')
    questions = files(tmp_path, [{"question": "Who?", "answer": "1", "evidence": ["Ann"]}]).tasks
    with pytest.raises(
        ValueError, match=r"line 1: got the evidence 'Ann', the title of 2 documents; need titles of one"
    ):
        SearchQa(source=CorpusFiles(corpus=str(tmp_path / "corpus.jsonl"), tasks=questions)).tasks("train", 1, 0)


def test_questions_in_two_splits(tmp_path: Path) -> None:
    rows = [{"question": "Who?", "answer": "x", "split": split} for split in ("train", "test")]
    env = SearchQa(source=files(tmp_path, rows))
    with pytest.raises(ValueError, match=r"got the question 'Who\?' in the splits train and test"):
        env.tasks("train", 1, 0)


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "f1"),
    [
        ("天津。", "天津", 1, 1.0),
        ("「天津」", "天津", 1, 1.0),
        ("在天津", "天津", 0, 0.8),
        ("กรุงเทพฯ", "กรุงเทพ", 0, 14 / 15),
        ("東京 333 m", "東京", 0, 2 / 3),
        ("the Bak\u2013Lum", "Bak\u2013Lum", 1, 1.0),
        ("Bak\u2013Lum", "Bak Lum", 0, 0.0),
    ],
)
def test_answers_in_languages_without_blanks_are_scored_by_letter(
    answer: str, gold: str, exact: float, f1: float
) -> None:
    assert score(answer, [[gold]]) == (exact, pytest.approx(f1))


def test_lists_in_languages_without_blanks_are_separated_by_their_own_marks() -> None:
    assert score("天津、北京。", [["北京"], ["天津"]]) == (1.0, 1.0)
