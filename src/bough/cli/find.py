"""Resolves methods, worlds, policies and recipes: by name those of Bough and installed packages, a user's by file."""

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import bough.engine
from bough.cli.functions import modules, names
from bough.config import ConfigError, unknown
from bough.config.fields import short_names
from bough.config.installed import installed, load_installed
from bough.config.kinds import wants_piece
from bough.config.naming import exported, find_piece, import_file, packages
from bough.config.override import PIECE, interpret, make, split_arguments
from bough.engine import OpenAi
from bough.engine.own_model import has_own_model
from bough.env import Env
from bough.evaluate.agent import Preset
from bough.nearest import close
from bough.policies.server import server
from bough.policy import Pretrained
from bough.policy.hub_model import model_repo
from bough.policy.locate import not_there, target_path
from bough.roles import PolicyRecipe
from bough.train import Run, World
from bough.usercode.origin import describe, place

PACKAGED = "package:"
"""Begins the name of a model in a package."""

WORLD = "frozenlake"
"""The default world of a method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of a user's file or of a package, with arguments in text.

    Attributes:
        name: Its name.
        call: The function.
        arguments: Its arguments, `a=1, b=x`.
        where: The user's text, for messages.
    """

    name: str
    call: Any
    arguments: str
    where: str

    @property
    def takes_world(self) -> bool:
        """Whether its first parameter has no default."""
        first = next(iter(inspect.signature(self.call).parameters.values()), None)
        return first is not None and first.default is first.empty

    def __call__(self, kind: type, *given: object) -> Any:
        """Call the function and check the class of its result.

        Raises:
            ConfigError: when it raises in the user's code, or returns an object of another class.
        """
        try:
            made = make(self.call, self.arguments, self.where, *given)
        except Exception as error:
            # `make` raises a ConfigError from a ValueError, whose traceback has the line in the user's file.
            cause = error.__cause__ if isinstance(error, ConfigError) else error
            if cause is None or not place(cause):
                raise
            raise ConfigError(f"{self.where}: {self.name}() raised {describe(cause)}") from cause
        if not isinstance(made, kind):
            raise ConfigError(
                f"{self.where}: {self.name}() returned {type(made).__name__}; need a bough.train.{kind.__name__}"
            )
        return made


def find_run(target: str | Callable[..., Run], on: World | str | None = None, policy: str | None = None) -> Run:
    """The run of a method on a world, or of a recipe.

    Args:
        target: A method, `dapo` or `dapo(high=0.3)`; a recipe; or `path/to/file.py:function` (`run` without a
            function) that takes a world and returns a `Run`, or takes nothing; or such a function itself.
        on: A world; its name, `sokoban`; or `path/to/file.py:function` (`world` without a function). None is
            FrozenLake.
        policy: A preset, `smollm2`; a folder of a model, a GGUF file or the id of a model on the hub; or
            `path/to/file.py:function`. None keeps the world's policy.

    Raises:
        ConfigError: when there is no such function, or it returns an object of another class.
    """
    if isinstance(target, str):
        function = _function(target, ("methods", "recipes"), "run", "method")
    elif callable(target):
        where = f"method {getattr(target, '__name__', type(target).__name__)}"
        function = Function(name=where.partition(" ")[2], call=target, arguments="", where=where)
    else:
        raise ConfigError(f"method: got {target!r}; need a Run, a method's name, or a function that takes a world")
    if not function.takes_world:
        if on is not None:
            raise ConfigError(
                f"--on {on}: {function.name} has a world of its own; need a method, see `bough list methods`"
            )
        run: Run = function(Run)
        return run if policy is None else run.replace(world=find_policy(policy)(run.world))
    world = on if isinstance(on, World) else find_world(on)
    if policy is not None:
        world = find_policy(policy)(world)
    made: Run = function(Run, world)
    return made.replace(name=f"{function.name}_{world.name}") if made.name == world.name else made


def default_world(target: object) -> str:
    """The world that a method gets without `--on`; "" for a recipe, which has its own, and for a callable."""
    if not isinstance(target, str):
        return ""
    return WORLD if _function(target, ("methods", "recipes"), "run", "method").takes_world else ""


def refuse_arguments(target: object, changes: Sequence[str]) -> None:
    """Refuse changes of a run that name an argument of its method, such as `topology=swiss` for `arena_rl`.

    Raises:
        ConfigError: when the argument does not take the value, and otherwise with the place of the argument.
    """
    if not isinstance(target, str):
        return
    function = _function(target, ("methods", "recipes"), "run", "method")
    parameters = dict(list(inspect.signature(function.call).parameters.items())[function.takes_world :])
    hints = get_type_hints(function.call)
    for change in changes:
        name, equals, text = change.partition("=")
        if equals and name in parameters and name not in short_names(Run):
            if name in hints and not wants_piece(hints[name]):
                interpret(hints[name], text, name)
            given = ", ".join(part for part in (function.arguments, change) if part)
            raise ConfigError(
                f"{name}: got a field that is an argument of {function.name}; need '{function.name}({given})'"
            )


def find_world(on: str | None) -> World:
    """The world with this name; FrozenLake for None.

    Raises:
        ConfigError: when there is none.
    """
    return _function(WORLD if on is None else on, ("worlds",), "world", "--on")(World)


def find_env(on: str) -> Env:
    """The environment of a world, or one alone; see `find_env_or_world`."""
    made = find_env_or_world(on)
    return made.env if isinstance(made, World) else made


def find_env_or_world(on: str) -> Env | World:
    """A world, or an environment alone.

    Args:
        on: A world, as in `find_run`; an environment of Bough, `FrozenLake(slip=0.1)`; or `path/to/file.py:name`: an
            environment's class, or a function that returns an environment or a `World`.

    Raises:
        ConfigError: when there is none.
    """
    written = PIECE.match(on)
    if written and not written["file"] and written["name"] in _environments():
        made = make(find_piece(written["name"], None, None, Env, on), written["arguments"] or "", on)
    else:
        made = _function(on, ("worlds",), "world", "check-env")(object)
    if not isinstance(made.env if isinstance(made, World) else made, Env):
        raise ConfigError(f"{on}: got {type(made).__name__}; need a World, or an Env with tasks, start and step")
    return made


def _environments() -> set[str]:
    """The names that packages of environments export, and pieces of installed packages."""
    return {name for package in packages("env") for name, _ in exported(package)} | {*installed("bough.pieces")}


def find_policy(policy: str) -> Preset:
    """The preset of a policy: a function that sets a world's policy, and the settings that depend on it.

    Args:
        policy: A preset, `smollm2`; a folder of a model or a GGUF file; the id of a model on the hub; `OpenAi(...)`,
            the model of a server; or `path/to/file.py:function` (`policy` without a function).

    Raises:
        ConfigError: when there is no such preset or folder.
    """
    is_folder = Path(policy).expanduser().is_dir()
    if is_folder or policy.endswith(".gguf") or policy.startswith(PACKAGED) or model_repo(policy) is not None:
        policy = f"pretrained(path={policy!r})"
    written, known = PIECE.match(policy), list(names("policies"))
    name = written["name"] if written else policy
    if written and not written["file"] and has_own_model(vars(bough.engine).get(name)):
        policy = f"server(engine={policy})"
    elif written is None or (not written["file"] and name not in known and not close(name, known)):
        need = "a preset's name (`bough list policies`), a folder of a model, a GGUF file, a hub id (owner/name)"
        raise ConfigError(f"--policy: {not_there(policy)}; need {need} or path/to/file.py:function")
    return partial(_function(policy, ("policies",), "policy", "--policy"), World)


def find_model(target: Path) -> PolicyRecipe:
    """The policy of a model alone.

    Args:
        target: A folder or GGUF file of a model, the id of one on the hub, `package:NAME`, or a preset, `smollm2`.

    Raises:
        ConfigError: when there is no such model.
    """
    text = str(target)
    is_there = target.is_dir() or (target.suffix == ".gguf" and target.is_file())
    if is_there or text.startswith(PACKAGED) or model_repo(text) is not None:
        return Pretrained(path=text)
    written = PIECE.match(text)
    if written and (written["file"] or written["name"] in names("policies")):
        world = find_world(None)
        if (policy := find_policy(text)(world).policy) != world.policy:
            return policy
    need = "a run directory, a folder or GGUF file of a model, a hub id (owner/name), package:NAME, or a preset"
    raise ConfigError(f"{not_there(text)}; need {need} such as smollm2")


def evaluated(
    target: Run | Path | None, on: World | str | None, policy: Preset | OpenAi | str | None
) -> tuple[Run | Path, Preset | None]:
    """The target of an evaluation, and the policy in place of the run's.

    Args:
        target: A run or its directory; None with a world.
        on: A world, as in `find_run`.
        policy: As in `find_policy`; or the preset; or a server. Required with a world.

    Raises:
        ConfigError: when there is neither a run nor a world, or both, or no policy for a world.
    """
    if (target is None) == (on is None):
        got = "neither a run nor a world" if target is None else "a run and a world (--on)"
        raise ConfigError(f"got {got}; need one of the two: a run directory, or --on WORLD --policy POLICY")
    if on is not None and policy is None:
        raise ConfigError(f"--on {on}: got a world without a policy; need --policy, such as 'OpenAi(...)' or a model")
    if isinstance(policy, str):
        # A run's own paths are relative to the folder in which it started.
        there = Path(policy).expanduser()
        policy = find_policy(str(there.absolute()) if there.exists() else policy)
    elif isinstance(policy, OpenAi):
        policy = partial(server, engine=policy)
    if target is None:
        target = (on if isinstance(on, World) else find_world(on)).run()
    return target, policy


def is_run_directory(path: Path) -> bool:
    """Whether a folder holds a run, rather than a model."""
    return (path / "config.json").is_file() and (path / "policy").is_dir()


def split_target(target: str | None, changes: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The directory of a command whose first argument may be a change, `field=value`, and all changes."""
    if target is not None and "=" in target and not Path(target).exists():
        return None, [target, *changes]
    return None if target is None else target_path(target), [*changes]


def run_or_directory(target: str, on: str | None = None) -> Run | Path:
    """The run directory with path `target`; or the run of a method on a world, or of a recipe.

    Raises:
        ConfigError: when it is neither a directory nor a method nor a recipe.
    """
    is_directory = Path(target).is_dir() or ("/" in target and ".py" not in target)
    return Path(target) if is_directory and on is None else find_run(target, on)


def _function(text: str, rooms: tuple[str, ...], default: str, what: str) -> Function:
    """The function for a text: `name`, `name(a=1)`, `file.py`, `file.py:name` or `file.py:name(a=1)`."""
    where = f"{what} {text!r}"
    if text.endswith(".py"):
        text = f"{text}:{default}"
    written = PIECE.match(text)
    if written is None:
        split_arguments(text, where)
        model = "; a model is given by --policy" if what == "method" else ""
        raise ConfigError(
            f"{where}: got text that is no name; need NAME, NAME(field=value) or path/to/file.py:function; "
            f"`bough list {rooms[0]}` shows all{model}"
        )
    name, arguments = written["name"], written["arguments"] or ""
    if written["file"]:
        module = import_file(written["file"], where)
        return Function(name=name, call=_member(module, name, where), arguments=arguments, where=where)
    room = next((room for room in rooms if name in modules(room)), None)
    if "worlds" in rooms and name in installed("bough.worlds"):
        call = load_installed("bough.worlds", name, where, is_own=room is not None)
        return Function(name=name, call=call, arguments=arguments, where=where)
    if room is None:
        known = list(names(*rooms))
        raise ConfigError(
            f"{what}: {unknown(name, known, otherwise='there is no similar name')}; `bough list {rooms[0]}` shows all, "
            f"path/to/file.py:{default} is one of your own"
        )
    module = importlib.import_module(modules(room)[name])
    return Function(name=name, call=vars(module)[name], arguments=arguments, where=where)


def _member(module: ModuleType, name: str, where: str) -> Any:
    found = vars(module).get(name)
    if not callable(found):
        own = (key for key, value in vars(module).items() if inspect.isfunction(value))
        offered = [key for key in own if vars(module)[key].__module__ == module.__name__]
        hint = unknown(name, offered) if offered else f"there is no function {name!r}, nor any other; need one"
        raise ConfigError(f"{where}: {hint} in {module.__file__}")
    return found
