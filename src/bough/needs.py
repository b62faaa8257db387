"""Needs and gives: typed values that the pieces of a run declare, and that are compared before the run is built."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Protocol, TypeVar, cast, runtime_checkable


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a piece can need and another can give. Equal by class, text and name.

    Attributes:
        text: What it is, as an error names it after "needs".
        remedy: What the user changes where it is missing.
        sources: The fields of the run that give it, such as "parser" or "sampling.entropies"; empty when any may.
        name: Of the head, estimate, annotation or channel; "" for other needs.
    """

    text: str
    remedy: str = field(default="", compare=False)
    sources: tuple[str, ...] = field(default=(), compare=False)
    name: str = ""

    def or_else(self, alternative: str) -> "Need":
        """The same need, with a second remedy that only the declaring piece has."""
        return replace(self, remedy=f"{self.remedy}, or {alternative}")


class NeedsError(TypeError):
    """Raised when a piece declares anything but a set of `Need`, or a need names a field that no run has."""


class Head(Need):
    """A head of a critic."""

    __slots__ = ()


class Estimate(Need):
    """An estimate that a hook adds to trees."""

    __slots__ = ()


class Annotation(Need):
    """An annotation of turns by a parser."""

    __slots__ = ()


class Appraised(Need):
    """A column of an appraiser."""

    __slots__ = ()


class Role(Need):
    """A model that a run may ask."""

    __slots__ = ()


class Channel(Need):
    """A channel of rewards."""

    __slots__ = ()


class TaskField(Need):
    """A field of the tasks' data."""

    __slots__ = ()


STATE_KEYS = Need(
    "states with keys",
    "set State.key in the environment (`key=` of `tools_env`), or take a piece that compares no states",
    sources=("env",),
)
FORKS = Need(
    "an environment that steps a state more than once",
    "set env=Replay(env=...), or explorer=Chains()",
    sources=("env",),
)
ORACLE = Need("an environment with an oracle", "give the environment a method `plan(state)`", sources=("env",))
CALLS = Need("calls of tools in the agent's turns", "set parser=ToolCalls()", sources=("parser",))
WHOLE_TEXT = Need(
    "answers of several lines as actions",
    "set parser=WholeText(), Tagged(tag='answer') or TaggedThinking()",
    sources=("parser",),
)
CALLS_TAKEN = Need(
    "an environment that takes calls of tools", "take an environment with tools, or another parser", sources=("env",)
)
SELF_ITERATION = Need(
    "an environment that asks for another answer after a history",
    "set env=SelfIteration(env=...)",
    sources=("env",),
)
SEATS = Need("an environment for several agents", "take one for a single agent", sources=("env",))
ENTROPIES = Need("entropies of the sampled tokens", "set sampling.entropies=true", sources=("sampling.entropies",))
MEAN_TURN_ENTROPY = Need(
    "mean entropies of earlier steps at the same turn", "set sampling.entropies=true", sources=("sampling.entropies",)
)
CRITIC = Need("a critic", "set critic=ValueHead() and an objective with ValueClip", sources=("critic",))
FINAL_VALUES = Need("a critic's values of the final states of truncated paths", "set critic=ValueHead()", ("critic",))
CANDIDATE_SCORES = Need(
    "scores of actions before they are executed", "set explorer=Slate(quality=...)", sources=("explorer",)
)
BATCH_INVARIANCE = Need(
    "completions that do not depend on how requests are batched", "set engine=Local(deterministic=true)", ("engine",)
)
GRAMMARS = Need(
    "an engine that follows grammars",
    "set engine=Local(), or a parser without a grammar, such as ToolCalls(grammar=false)",
    sources=("engine",),
)
ON_POLICY = Need("rollouts of the current weights", "set staleness=0", sources=("staleness",))
IDLE_UPDATES = Need(
    "updates during which no trees grow, to sleep", "set staleness=0, or engine.sleeps=false", sources=("staleness",)
)
PROGRAM = Need(
    "an agent program that plays the tasks", "set explorer=Program(agent='agent.py:agent')", sources=("explorer",)
)
DEMONSTRATIONS = Need(
    "demonstrations beside samples",
    "set demonstrations.count, demonstrations.revise, or with a teacher in the explorer demonstrations.from_trees",
    sources=("demonstrations.count",),
)
SEPARATE_DEMONSTRATIONS = Need(
    "an objective that separates demonstrations from samples, for demonstrations.count",
    "set objective=Chord(...) or SftMix(...), or warmup.demonstrations",
    sources=("objective", "regularizers"),
)
TEACHER_TURNS = Need(
    "an objective that learns from a teacher's turns, for demonstrations.from_trees",
    "set objective=Dpo() or Imitation(), or one that separates demonstrations (Chord, SftMix)",
    sources=("objective", "regularizers"),
)
REVISED_PATHS = Need(
    "an objective that learns from revised paths, for demonstrations.revise",
    "set objective=Imitation(), or one that separates demonstrations (Chord, SftMix)",
    sources=("objective", "regularizers"),
)
KL_IN_REWARD = Need(
    "a KL in the reward, which gives each token its own advantage",
    "put the KL into the loss (regularizers=(Kl(...),))",
    sources=("credit",),
)
PATHS = Need("the path view")
ENTROPY = Need("the policy's entropy at each token")
REFERENCE = Need("log-probabilities of a reference policy")
GREEDY = Need("log-probabilities of the tokens that a reference policy finds most probable")
OLD_LOGPROBS = Need("log-probabilities of the weights before the update")
CLIPPED_NORM = Need("the norm of the gradient that clipping removes")
HIDDEN_STATES = Need("hidden states of the trained policy")
TURN_BY_TURN = Need(
    "optimizer steps for one turn at a time", "set optimizer.momentum='adam'", sources=("optimizer.momentum",)
)

COPIES = "copies"
"""Name of the estimate of how often a tree's group is in the batch, at every token."""

OF_EVERY_RUN = frozenset({PATHS, ENTROPY, REFERENCE, GREEDY, OLD_LOGPROBS, CLIPPED_NORM, HIDDEN_STATES})
"""Computed for any piece that needs them."""


def value_head(name: str) -> Head:
    """A head of the critic."""
    remedy = f"set critic=ValueHead(heads=(..., {name!r})) and an objective with ValueClip"
    return Head(f"the head {name!r} of a critic", remedy, ("critic",), name)


def annotation(name: str) -> Annotation:
    """An annotation that a parser finds in a turn: a key of `Parsed.marks` and `Parsed.spans`."""
    return Annotation(f"turns annotated with {name!r}", "set a parser that finds it", ("parser",), name)


def estimate(name: str) -> Estimate:
    """An estimate that a hook adds to `Rewarded.estimates`."""
    return Estimate(f"the estimate {name!r} of a hook", "add a hook that gives it to hooks=(...)", ("hooks",), name)


POLICY = "policy"
"""The role of the policy: the default of every piece with a field `role`."""


def appraised(name: str) -> Appraised:
    """A column that an appraiser adds to `Tree.appraisals`."""
    remedy = f"add an appraiser with column={name!r} to appraisers=(...) (`bough list appraise`), or another column"
    return Appraised(f"the column {name!r} of an appraiser", remedy, ("appraisers",), name)


def role(name: str) -> Role:
    """A model of `Run.models`."""
    own = name if name.isidentifier() else "judge"
    remedy = f"set models.{own}=..., such as models.{own}='OpenAi(...)', or models.{own}=CurrentPolicy"
    if own != name:
        remedy = f"need the name of a role, such as {own!r}; then {remedy}"
    return Role(f"a model for the role {name!r}", remedy, ("models",), name)


def roles(*names: str) -> frozenset[Need]:
    """The needs of a piece with questions to these roles: every run has the policy."""
    return frozenset(role(name) for name in names if name != POLICY)


def channel(name: str) -> Channel:
    """A channel of `Rewarded.channels`."""
    return Channel(f"the reward channel {name!r}", "add a reward that pays it to rewards=(...)", ("rewards",), name)


def task_field(name: str, remedy: str = "name one that they have") -> TaskField:
    """The need of a field of `Task.data` that at least one training task has."""
    return TaskField(f"tasks with the field {name!r} in their data", remedy, (), name)


@runtime_checkable
class Needs(Protocol):
    """A piece that needs more than every run has."""

    @property
    def needs(self) -> frozenset[Need]:
        """What it needs itself, without the needs of the pieces in its fields."""
        ...


@runtime_checkable
class Gives(Protocol):
    """A piece that meets needs of other pieces. A wrapper gives what it passes on from the piece inside it."""

    @property
    def gives(self) -> frozenset[Need]:
        """What the rest of the run can rely on."""
        ...


@runtime_checkable
class Conflicts(Protocol):
    """A piece that works only in a run that lacks something."""

    @property
    def conflicts(self) -> frozenset[Need]:
        """What no other piece may give."""
        ...


@runtime_checkable
class Removes(Protocol):
    """A piece with which the run lacks something that other pieces would give."""

    @property
    def removes(self) -> frozenset[Need]:
        """What the run lacks, each with the remedy and the field of this piece."""
        ...


@runtime_checkable
class Satisfies(Protocol):
    """A wrapper that meets needs of the pieces inside it."""

    @property
    def satisfies(self) -> frozenset[Need]:
        """Needs of the pieces inside it that the rest of the run need not meet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece at its place in a run.

    Attributes:
        place: Its field, such as "explorer.evaluate" or "rewards[1]".
        value: The piece.
        satisfied: The needs that a wrapper around it meets.
    """

    place: str
    value: object
    satisfied: frozenset[Need] = frozenset()

    @property
    def needs(self) -> frozenset[Need]:
        """What it needs of the run."""
        return _declared(self.value, "needs") - self.satisfied


PLAIN = (str, int, float, type, type(None))
"""Classes of values that are no pieces and hold none."""


def pieces(value: object, place: str = "") -> Iterator[Piece]:
    """A piece and all pieces inside it, through the fields of dataclasses and through tuples.

    Args:
        value: The piece.
        place: Its field.
    """
    return _pieces(value, place, frozenset())


def _pieces(value: object, place: str, satisfied: frozenset[Need]) -> Iterator[Piece]:
    if isinstance(value, PLAIN):
        return
    if isinstance(value, (tuple, list)):
        inner = [(f"[{number}]", each) for number, each in enumerate(cast("Iterable[object]", value))]
    elif isinstance(value, Mapping):
        inner = [(f".{name}", each) for name, each in cast("Mapping[str, object]", value).items()]
    else:
        yield Piece(place=place, value=value, satisfied=satisfied)
        satisfied |= _declared(value, "satisfies")
        inner = [(f".{name}", getattr(value, name)) for name in _settable(type(value))]
    for name, each in inner:
        if not isinstance(each, PLAIN):
            yield from _pieces(each, f"{place}{name}", satisfied)


@cache
def _settable(cls: type) -> tuple[str, ...]:
    """The settable fields of a dataclass; empty for another class."""
    return tuple(each.name for each in fields(cls) if each.init) if is_dataclass(cls) else ()


def needs_of(value: object) -> frozenset[Need]:
    """What a piece and the pieces inside it need.

    Raises:
        NeedsError: when a piece declares something else than a set of `Need`.
    """
    return frozenset[Need]().union(*(piece.needs for piece in pieces(value)))


def gives_of(value: object) -> frozenset[Need]:
    """What a piece gives; nothing for a piece that declares nothing.

    Raises:
        NeedsError: when it declares something else than a set of `Need`.
    """
    return _declared(value, "gives")


def conflicts_of(value: object) -> frozenset[Need]:
    """What may not be in a piece's run.

    Raises:
        NeedsError: when it declares something else than a set of `Need`.
    """
    return _declared(value, "conflicts")


def removed_by(value: object) -> frozenset[Need]:
    """What a run lacks because of a piece.

    Raises:
        NeedsError: when it declares something else than a set of `Need`.
    """
    return _declared(value, "removes")


Kind = TypeVar("Kind", bound=Need)


def names_of(needs: Iterable[Need], kind: type[Kind]) -> list[str]:
    """The names of the needs of one kind, such as `Head`, sorted."""
    return sorted(each.name for each in needs if isinstance(each, kind))


def _declared(piece: object, member: str) -> frozenset[Need]:
    """What a piece declares in a member of `Needs`, `Gives`, `Conflicts` or `Satisfies`; nothing without the member."""
    # Before Python 3.12 isinstance hides an AttributeError of a property: a typo in it.
    if not _has(type(piece), member) and member not in getattr(piece, "__dict__", ()):
        return frozenset()
    value = getattr(piece, member)
    needs = cast("AbstractSet[object]", value) if isinstance(value, AbstractSet) else {None}
    if not all(isinstance(each, Need) for each in needs):
        raise NeedsError(
            f"{type(piece).__name__}.{member}: got {value!r}; need a frozenset of values of bough.needs, such as "
            "frozenset({STATE_KEYS})"
        )
    return frozenset(cast("AbstractSet[Need]", value))


@cache
def _has(cls: type, member: str) -> bool:
    """Whether instances of a class have a member by their class."""
    return any(member in vars(base) for base in cls.__mro__)
