"""Question answering with a search engine: search a corpus, read documents, answer."""

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, cast

from bough.env.check_call import check_call
from bough.env.env import Branching, Split, State, Step
from bough.env.last_tagged import last_tagged
from bough.env.state_value import value_of
from bough.needs import CALLS, Need
from bough.piece import AtLeast, Between, piece
from bough.tree import Action, BadCall, Message, Observation, Outcome, Task, Tool, ToolCall
from bough.usercode.origin import shorten
from bough.worlds.search.degraded import degraded_search
from bough.worlds.search.draw import draw_tasks
from bough.worlds.search.index import Fts5, IndexSettings
from bough.worlds.search.knowledge import KnowledgeGraph
from bough.worlds.search.question import Evidence, read_question
from bough.worlds.search.score import Metric, final_answer, score, tags_paired
from bough.worlds.search.source import Collection, QuestionSource, open_collection

LONGEST_ERROR = 500
"""Characters of the message about a call that does not fit."""

SNIPPET_LETTERS = 20
"""Most characters of a snippet for each of its words; some languages write no blanks."""

SEARCH = Tool(
    name="search",
    description="Lists documents that match words.",
    schema={
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
READ = Tool(
    name="read",
    description="Shows a document by its number.",
    schema={
        "type": "object",
        "properties": {"doc": {"type": "integer"}},
        "required": ["doc"],
        "additionalProperties": False,
    },
)
READ_PAGES = Tool(
    name="read",
    description="Shows a document by its number. A long one has pages; the first is page 1.",
    schema={
        "type": "object",
        "properties": {"doc": {"type": "integer"}, "page": {"type": "integer"}},
        "required": ["doc"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """The value of a state of `SearchQa`.

    Attributes:
        task: The task.
        evidence: The evidence of its question.
        listed: Numbers of the documents in search results so far, ascending.
        opened: Numbers of the documents that were read, ascending.
        pages: Document and page, of pages after the first that were read, ascending.
        seen: Indices of the evidence that was shown, ascending.
        calls: Number of executed calls.
        errors: Number of calls that were not executed.
        outcome: `OPEN` until the episode ends.
        solved: Whether the answer was right.
    """

    task: Task
    evidence: tuple[Evidence, ...] = field(repr=False)
    listed: tuple[int, ...] = ()
    opened: tuple[int, ...] = ()
    pages: tuple[tuple[int, int], ...] = ()
    seen: tuple[int, ...] = ()
    calls: int = 0
    errors: int = 0
    outcome: Outcome = Outcome.OPEN
    solved: bool = False


@piece
class SearchQa:
    """Questions that need several documents of a corpus, as in Search-R1 (arXiv 2503.09516).

    The tools are `search(query)` and `read(doc)`, or `read(doc, page)` where a document has several pages; a turn
    without a call is the answer and ends the episode. Its reward is its score after SQuAD's normalisation, and success
    is exact match. Of a longer text the answer is the part between `<answer>` tags, or after `</think>`. A text with a
    `<search>` block and no answer in tags searches, as the policies of `SelfSearch` write it; the results stand in an
    `<information>` block. The corpus and its index are built once in each process and shared.

    The key of a state holds the question, the documents in results, the documents read, and the end of the episode. The
    order and number of calls are not part of it, so a search that lists nothing new returns to the same state.

    `Step.info` has the evidence: "seen", the indices of the facts shown so far, of "facts" in all; "found", the number
    of required entities whose facts were shown, of "required" in all; "calls"; and "em" and "f1" at the end.

    Attributes:
        source: The corpus and its questions: `KnowledgeGraph` or `CorpusFiles`.
        index: The index: `Fts5` or `Bm25s`.
        top: Number of documents in a search's results, >= 1.
        snippet_words: Number of words of each document in results; 0 for titles alone.
        metric: The reward of an answer: "f1"; "set_f1", where repeated words count once; or "em".
        unpaired: The reward of an empty answer, and of one whose turn has a tag `<answer>`, `<think>`, `<tool_call>` or
            `<code>` without its counterpart; None for the score. IGPO's release pays -2 (arXiv 2510.14967), there for
            the tags of all turns, and for an answer without tags.
        search_cost: Subtracted at each search, >= 0.
        read_cost: Subtracted at each read, >= 0.
        evidence_reward: Paid in equal parts when a fact is first shown, >= 0.
        max_calls: Maximum number of calls, >= 1; one more truncates the episode.
        max_errors: Maximum number of calls that are not executed; one more truncates it. None sets no limit.
        noise: Probability that a search returns documents without the facts, in [0, 1]; see `degraded_search`. A task's
            "noise", which `SearchNoise` sets, overrides it.
        document_characters: Maximum length of a document in an observation; a longer one has pages of this length.

    Raises:
        ValueError: when a field is out of its range.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS})

    source: QuestionSource = field(default_factory=KnowledgeGraph)
    index: IndexSettings = field(default_factory=Fts5)
    top: Annotated[int, AtLeast(1)] = 5
    snippet_words: Annotated[int, AtLeast(0)] = 12
    metric: Metric = "f1"
    unpaired: float | None = None
    search_cost: Annotated[float, AtLeast(0, "0 or more")] = 0.0
    read_cost: Annotated[float, AtLeast(0, "0 or more")] = 0.0
    evidence_reward: Annotated[float, AtLeast(0, "0 or more")] = 0.0
    max_calls: Annotated[int, AtLeast(1)] = 16
    max_errors: int | None = None
    noise: Annotated[float, Between(0, 1)] = 0.0
    document_characters: Annotated[int, AtLeast(1)] = 4000
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The rules."""
        return "Search the corpus and read documents. Then answer the question with the answer alone."

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools."""
        return SEARCH, self.read_tool

    @property
    def read_tool(self) -> Tool:
        """The tool that reads; with pages where a document is longer than one."""
        return READ_PAGES if self._collection.longest > self.document_characters else READ

    @property
    def data_hash(self) -> str:
        """SHA-256 of the corpus, or of the settings that generate it."""
        return self.source.data_hash

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        return draw_tasks(self.source, self.index, self.top, split=split, count=count, seed=seed)

    def start(self, task: Task) -> State:
        """Returns the state with the question.

        Raises:
            ValueError: when the task has no question or no answers.
        """
        question = read_question(task)
        current = SearchState(task=task, evidence=question.evidence)
        return self._state(current, (Message(role="user", content=question.text),))

    def step(self, state: State, action: Action | str) -> Step:
        """Executes the calls of an action in their order, or ends the episode with its text."""
        before = value_of(state, SearchState, "SearchQa")
        if before.outcome is not Outcome.OPEN:
            return Step(state=state, outcome=before.outcome, valid=False, success=before.solved)
        given = action if isinstance(action, Action) else Action(text=action)
        calls = given.calls or _written_search(given.text)
        if not calls:
            return self._end(before, given.text)
        left = self.max_calls - before.calls
        after, messages, cost = before, list[Message](), 0.0
        for number, call in enumerate(calls):
            text = f"error: not executed, the limit is {self.max_calls} calls"
            if number < left:
                after, text, paid = self._call(after, call)
                cost += paid
            call_id = "" if isinstance(call, BadCall) else call.call_id
            messages.append(
                Message(role="tool", content=text, call_id=call_id)
                if given.calls
                else Message(role="user", content=f"<information>{text}</information>")
            )
        over = len(calls) > left or (self.max_errors is not None and after.errors > self.max_errors)
        fresh = len(after.seen) - len(before.seen)
        after = replace(after, outcome=Outcome.TRUNCATED if over else Outcome.OPEN)
        return Step(
            state=self._state(after, tuple(messages)),
            reward=(self.evidence_reward * fresh / len(after.evidence) if fresh else 0.0) - cost,
            outcome=after.outcome,
            valid=after.errors == before.errors,
            info=_info(after),
        )

    def plan(self, state: State) -> tuple[Action, ...] | None:
        """Returns searches and reads up to the last missing fact, then the answer.

        None for a question without known evidence, where too few calls are left, or after the end.
        """
        current = value_of(state, SearchState, "SearchQa")
        question = read_question(current.task)
        if not current.evidence or current.outcome is not Outcome.OPEN:
            return None
        plan: list[Action] = []
        while (call := self._next_call(current)) is not None:
            if current.calls >= self.max_calls:
                return None
            current, _, _ = self._execute(current, call)
            plan.append(Action(calls=(call,)))
        return *plan, Action(text=", ".join(each[0] for each in question.answers))

    @property
    def _collection(self) -> Collection:
        return open_collection(self.source, self.index)

    def _next_call(self, current: SearchState) -> ToolCall | None:
        """The oracle's call for the first missing fact; None when no fact is missing."""
        missing = [index for index in range(len(current.evidence)) if index not in current.seen]
        if not missing:
            return None
        ready = [index for index in missing if {*current.evidence[index].after} <= {*current.seen}]
        fact = current.evidence[(ready or missing)[0]]
        call = self.search_call(fact)
        if fact.document not in current.listed and fact.document in self.search(current.task, call):
            return call
        return ToolCall(name="read", arguments={"doc": fact.document})

    def search_call(self, fact: Evidence) -> ToolCall:
        """The oracle's search for a fact."""
        return ToolCall(name="search", arguments={"query": fact.query})

    def search(self, task: Task, call: ToolCall) -> list[int]:
        """The numbers of the documents that a search finds."""
        return self.ranked(task, str(call.arguments["query"]), self.top)

    def ranked(self, task: Task, query: str, top: int) -> list[int]:
        """The first documents of the index for a query, degraded by the noise."""
        given = task.data.get("noise", self.noise)
        noise = float(given) if isinstance(given, int | float) else self.noise
        return degraded_search(self._collection.index, query, top=top, noise=noise, seed=task.seed)

    def _call(self, current: SearchState, call: ToolCall | BadCall) -> tuple[SearchState, str, float]:
        """The state after a call, the text of its result, and its cost."""
        problem = check_call(call, self.tools)
        return self._refused(current, problem) if problem or isinstance(call, BadCall) else self._execute(current, call)

    def _execute(self, current: SearchState, call: ToolCall) -> tuple[SearchState, str, float]:
        """The same, of a call that fits its schema."""
        documents = self._collection.documents
        if call.name == "search":
            found = self.search(current.task, call)
            lines = [f"{number} {documents[number].title}{self._snippet(number)}" for number in found]
            after = replace(current, calls=current.calls + 1, listed=_with(current.listed, found))
            text = "\n".join(lines) or "no results"
            return _shown(after, dict(zip(found, lines, strict=True))), text, self.search_cost
        number = int(cast("float", call.arguments["doc"]))
        if not 0 <= number < len(documents):
            return self._refused(current, "got no document of this number; need one in the results of a search")
        whole = f"{documents[number].title}\n{documents[number].text}"
        page, pages = int(cast("float", call.arguments.get("page", 1))), -(-len(whole) // self.document_characters)
        if not 1 <= page <= pages:
            return self._refused(current, f"got page {page}; need a page from 1 to {pages}")
        text = whole[(page - 1) * self.document_characters :][: self.document_characters]
        text += f"\n(page {page} of {pages})" if pages > 1 else ""
        read = current.pages if page == 1 else tuple(sorted({*current.pages, (number, page)}))
        after = replace(current, calls=current.calls + 1, opened=_with(current.opened, [number]), pages=read)
        return _shown(after, {number: text}, whole=True), text, self.read_cost

    def _refused(self, current: SearchState, problem: str) -> tuple[SearchState, str, float]:
        """The state after a call that is not executed."""
        text = shorten(f"error: {problem}".encode(errors="replace").decode(), LONGEST_ERROR)
        return replace(current, calls=current.calls + 1, errors=current.errors + 1), text, 0.0

    def _snippet(self, number: int) -> str:
        """The beginning of a document's text."""
        words = self._collection.documents[number].text.split()
        begin = " ".join(words[: self.snippet_words])
        shown = begin[: SNIPPET_LETTERS * self.snippet_words]
        cut = len(words) > self.snippet_words or shown != begin
        return f": {shown}{' ...' if cut else ''}" if shown else ""

    def _end(self, current: SearchState, text: str) -> Step:
        answer = final_answer(text)
        exact, f1 = score(answer, read_question(current.task).answers, once=self.metric == "set_f1")
        reward = exact if self.metric == "em" else f1
        if self.unpaired is not None and not (answer and tags_paired(text)):
            reward = self.unpaired
        return Step(
            state=self._state(replace(current, outcome=Outcome.TERMINATED, solved=exact == 1), ""),
            reward=reward,
            outcome=Outcome.TERMINATED,
            valid=bool(answer),
            success=exact == 1,
            info={**_info(current), "em": exact, "f1": f1},
        )

    def _state(self, current: SearchState, observation: Observation) -> State:
        listed, opened = (",".join(map(str, each)) for each in (current.listed, current.opened))
        ending = "" if current.outcome is Outcome.OPEN else f" {current.outcome.name.lower()} {current.solved}"
        pages = f" pages {','.join(f'{each}.{page}' for each, page in current.pages)}" if current.pages else ""
        key = f"{current.task.id} listed {listed} read {opened}{pages}{ending}"
        return State(observation=observation, key=key, value=current, tools=self.tools)


def _written_search(text: str) -> tuple[ToolCall, ...]:
    """The search in the last block of a text that has no answer in tags."""
    query = last_tagged(text, "search") if last_tagged(text, "answer") is None else None
    return () if query is None else (ToolCall(name="search", arguments={"query": query.strip()}),)


def _with(numbers: tuple[int, ...], more: list[int]) -> tuple[int, ...]:
    return tuple(sorted({*numbers, *more}))


def _shown(current: SearchState, texts: dict[int, str], *, whole: bool = False) -> SearchState:
    """The state after texts of documents were shown; `whole` where evidence without a sentence is shown too."""
    seen = [*current.seen]
    for index, fact in enumerate(current.evidence):
        text = texts.get(fact.document)
        if text is not None and (fact.text in text if fact.text else whole):
            seen.append(index)
    return replace(current, seen=_with((), seen))


def _info(current: SearchState) -> dict[str, object]:
    """The evidence for `Step.info`."""
    entities = dict.fromkeys(each.entity for each in current.evidence if each.entity)
    missing = {each.entity for index, each in enumerate(current.evidence) if index not in current.seen}
    found = sum(entity not in missing for entity in entities)
    return {
        "seen": [*current.seen],
        "facts": len(current.evidence),
        "found": found,
        "required": len(entities),
        "calls": current.calls,
    }
