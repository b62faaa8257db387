"""The spans of the trees of a run, by OpenTelemetry's semantic conventions for generative AI.

    invoke_workflow RUN           a tree: the episodes of a task
      invoke_agent WORLD          an episode
        chat MODEL                a model call
        execute_tool TOOL         a step of the environment

An episode that parts from another one at a turn has a span of its own from there on, branch.
"""

import re
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeAlias

from bough.env import Host
from bough.env.script import Script
from bough.rollout import Agent, Deadlines, RolloutRunner
from bough.tracing.traced_engine import TracedEngine
from bough.tracing.traced_host import TracedHost
from bough.tree import Task, Tree, counted

Attributes: TypeAlias = Mapping[str, bool | int | float | str | Sequence[str]]

PLACE = re.compile(r" (?P<kind>branch|episode) (?P<place>-?\d+(\.-?\d+)*)$")
"""The end of the owner of a wait that names an episode."""
CONTINUES = ("0", "-1")
"""The numbers of a branch that goes on with the same episode: its next turn, or the next piece of an action."""
_owner: ContextVar[str] = ContextVar("owner", default="")


class OwnedDeadlines(Deadlines):
    """Deadlines whose owners are known to spans."""

    @contextmanager
    def during(self, *, owner: str, thing: str, deadline_s: float) -> Generator[None]:
        """See `Deadlines.during`."""
        before = _owner.set(owner)
        try:
            with super().during(owner=owner, thing=thing, deadline_s=deadline_s):
                yield
        finally:
            _owner.reset(before)


class Tracer:
    """Makes the spans of a run."""

    def __init__(self, spans: Any, *, run: str, model: str, agent: str) -> None:
        """Store the names.

        Args:
            spans: A tracer of OpenTelemetry.
            run: The run's name.
            model: The name of the policy's model.
            agent: The name of the agent.
        """
        self._spans, self._run, self._model, self._agent = spans, run, model, agent
        self._trace: Any = import_module("opentelemetry.trace")
        self._tree: ContextVar[_TreeSpans | None] = ContextVar("tree", default=None)

    def runner(self, runner: RolloutRunner) -> RolloutRunner:
        """The runner with spans for its trees, its model calls and its steps."""
        seats = {
            name: seat if isinstance(seat.agent, Script) else replace(seat, agent=self._traced(seat.agent))
            for name, seat in runner.seats.items()
        }
        host: Host = TracedHost(runner.host, self.span, self._agent)
        return replace(runner, agent=self._traced(runner.agent), seats=seats, host=host, watcher=self.tree)

    def _traced(self, agent: Agent) -> Agent:
        models = {
            role: replace(model, engine=TracedEngine(model.engine, self.span, role))
            for role, model in agent.models.items()
        }
        return replace(agent, engine=TracedEngine(agent.engine, self.span, self._model), models=models)

    @contextmanager
    def tree(self, task: Task) -> Generator["_TreeSpans"]:
        """The span of a tree, while it grows in this task of asyncio and its children."""
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": self._run,
            "bough.task": task.id,
        }
        with self._ended(self._spans.start_span(f"invoke_workflow {self._run}", attributes=attributes)) as span:
            tree = _TreeSpans(self._spans, self._trace, span, self._agent, self._model)
            before = self._tree.set(tree)
            try:
                yield tree
            finally:
                self._tree.reset(before)
                tree.end()

    @contextmanager
    def span(self, name: str, attributes: Attributes) -> Generator[Any]:
        """A span below the episode that waits for it."""
        tree, owner = self._tree.get(), _owner.get()
        context = None if tree is None else self._trace.set_span_in_context(tree.parent(owner))
        span = self._spans.start_span(name, context=context, attributes=attributes)
        try:
            with (
                self._ended(span),
                self._trace.use_span(span, record_exception=False, set_status_on_exception=False),
            ):
                yield span
        finally:
            if tree is not None:
                tree.done(owner, dict(span.attributes or {}))

    @contextmanager
    def _ended(self, span: Any) -> Generator[Any]:
        """End a span, with the kind of an error."""
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, str(error)))
            raise
        finally:
            span.end()


class _TreeSpans:
    """The spans of the episodes of a tree, by their branches."""

    def __init__(self, spans: Any, trace: Any, tree: Any, agent: str, model: str) -> None:
        self._spans, self._span, self._agent, self._model = spans, tree, agent, model
        self._context = trace.set_span_in_context(tree)
        self._id = trace.format_span_id(tree.get_span_context().span_id)
        self._episodes, self._ends_ns = dict[str, Any](), dict[str, int]()

    def grown(self, tree: Tree) -> None:
        """Add the result of the tree to its span."""
        leaves = counted(tree)
        self._span.set_attribute("bough.episodes", len(leaves))
        self._span.set_attribute("bough.successes", int(tree.success[leaves].sum()))

    def parent(self, owner: str) -> Any:
        """The span of the episode that waits; that of the tree where it is none, such as the start of the task."""
        key = episode_of(owner)
        if not key:
            return self._span
        if key not in self._episodes:
            attributes: Attributes = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.provider.name": "bough",
                "gen_ai.agent.name": self._agent,
                "gen_ai.request.model": self._model,
                "gen_ai.conversation.id": f"{self._id}-{key}",
                "bough.branch": key,
            }
            name = f"invoke_agent {self._agent}"
            self._episodes[key] = self._spans.start_span(name, context=self._context, attributes=attributes)
        return self._episodes[key]

    def done(self, owner: str, attributes: Mapping[str, Any]) -> None:
        """Note the end of a call, and the outcome of the episode so far."""
        key = episode_of(owner)
        if key:
            self._ends_ns[key] = time.time_ns()
            for name in ("bough.outcome", "bough.success", "error.type"):
                if name in attributes:
                    self._episodes[key].set_attribute(name, attributes[name])

    def end(self) -> None:
        """End the episodes, each at the end of its last call."""
        for key, span in self._episodes.items():
            span.end(self._ends_ns.get(key))


def episode_of(owner: str) -> str:
    """The episode in the owner of a wait, "3" or "0.0.1"; "" for none."""
    found = PLACE.search(owner)
    if found is None or found["kind"] == "episode":
        return found["place"] if found else ""
    first, *later = found["place"].split(".")
    while later and later[-1] in CONTINUES:
        later.pop()
    return ".".join([first, *later])
