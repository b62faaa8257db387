"""Files inside a package form no circle of imports."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

# The settings of a piece import torch first when its running object is built, inside the method that builds it.
SETTINGS_BUILD_RUNNING_OBJECTS = {
    ("bough.engine.local", "bough.engine.generation"),
    ("bough.engine.local", "bough.engine.multi_process"),
    ("bough.engine.local", "bough.engine.shared_processes"),
    ("bough.engine.openai", "bough.engine.calls"),
    ("bough.engine.replicas", "bough.engine.replica_processes"),
    ("bough.engine.vllm", "bough.engine.vllm_engine"),
    ("bough.critics.frozen_critic", "bough.critics.frozen_critic_state"),
    ("bough.critics.reward_model.hook", "bough.critics.reward_model.hook_state"),
    ("bough.critics.progress", "bough.critics.progress_state"),
    ("bough.critics.utterance", "bough.critics.double_critic"),
    ("bough.critics.valuehead", "bough.critics.critic"),
}


def _modules() -> dict[str, Path]:
    files = {".".join(path.relative_to(SRC).with_suffix("").parts): path for path in SRC.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in files.items()}


def _imports(path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of Bough that a file imports: at its head, in functions, and for types alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in modules else node.module)
    return found & modules.keys()


def _circle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


MODULES = _modules()
ROOMS = sorted({name.split(".")[1] for name in MODULES if name.count(".") > 1})


@pytest.mark.parametrize("package", ROOMS)
def test_files_of_a_package_form_no_circle(package: str) -> None:
    own = {name for name in MODULES if name.split(".")[1:2] == [package]}
    graph = {name: (_imports(MODULES[name], MODULES) & own) - {name} for name in own}
    for settings, running in SETTINGS_BUILD_RUNNING_OBJECTS:
        graph.get(settings, set()).discard(running)
    assert _circle(graph) == []


@pytest.mark.parametrize("package", ["env", "worlds"])
def test_folders_of_a_package_form_no_circle(package: str) -> None:
    """The files at the top of a package count as one folder."""
    graph: dict[str, set[str]] = {}
    for name in (name for name in MODULES if name.startswith(f"bough.{package}.")):
        used = {_folder(each) for each in _imports(MODULES[name], MODULES) if each.startswith(f"bough.{package}.")}
        graph.setdefault(_folder(name), set()).update(used - {_folder(name)})
    assert len(graph) > 5
    assert _circle(graph) == []


def _folder(name: str) -> str:
    """The folder of a module in its package; "" at the top."""
    return name.split(".")[2] if name.count(".") > 2 or MODULES[name].name == "__init__.py" else ""


def test_the_exceptions_are_imported_late() -> None:
    for settings, running in SETTINGS_BUILD_RUNNING_OBJECTS:
        text = MODULES[settings].read_text()
        assert running in _imports(MODULES[settings], MODULES)
        head = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
        assert running not in {node.module for node in head}


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
