"""pyproject.toml declares what the source imports, under the one name of the distribution."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from bough.version import DISTRIBUTION, install

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "bough"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
UNDECLARED = {
    "fast_downward": "GPL-3.0: constraints/alfworld-engine.txt",
    "keeper": "a file of Bough whose folder is on the path of the process that imports it",
    "triton": "comes with PyTorch on a GPU",
}
"""Modules that no dependency has, with the reason."""
DISTRIBUTIONS = {"alfworld": "alfworld", "miniwob": "miniwob", "py4j": "py4j", "ray": "ray", "vllm": "vllm"}
DISTRIBUTIONS |= {"prometheus_client": "prometheus-client", "pyarrow": "pyarrow", "reasoning_gym": "reasoning-gym"}
DISTRIBUTIONS |= {"scienceworld": "scienceworld", "verifiers": "verifiers"}
DISTRIBUTIONS |= {"mlflow": "mlflow", "trackio": "trackio", "wandb": "wandb"}
"""Of modules that `make` does not install."""


def imported(text: str) -> set[str]:
    """The modules of others that a file imports, anywhere in it, by statements and by calls with a name."""
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
        elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)) and node.args:
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in ("import_module", "_module") and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"bough"}


def plain(name: str) -> str:
    """The normal form of a distribution's name."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ]", name)[0]).lower()


def test_imports_are_declared() -> None:
    declared = {plain(each) for each in PROJECT["dependencies"]}
    declared |= {plain(each) for extra in PROJECT["optional-dependencies"].values() for each in extra}
    installed = packages_distributions()
    missing = list[str]()
    for file in sorted(SRC.rglob("*.py")):
        for module in sorted(imported(file.read_text(encoding="utf-8")) - UNDECLARED.keys()):
            names = installed.get(module) or [DISTRIBUTIONS.get(module, "?")]
            if not declared & set(map(plain, names)):
                missing.append(f"{file.relative_to(SRC)} imports {module} of {names[0]}")
    assert not missing, "got " + "; ".join(missing) + "; declare them in pyproject.toml"


def test_an_import_is_found() -> None:
    assert imported("import a.b\ndef f():\n    from c.d import e\n    x.import_module('g')\nimport os") == {
        "a",
        "c",
        "g",
    }


def test_the_distribution_has_one_name() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    assert install("lora") == f"pip install '{DISTRIBUTION}[lora]'"
    files = [*SRC.rglob("*.py"), *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("constraints/*.txt")]
    wrong = []
    for file in files:
        for name, extra in re.findall(r"(?<![\w-])(bough(?:-rl)?)\[(\w+)\]", file.read_text(encoding="utf-8")):
            if name != DISTRIBUTION or extra not in PROJECT["optional-dependencies"]:
                wrong.append(f"{file.relative_to(ROOT)}: {name}[{extra}]")
    assert not wrong, f"got {wrong}; need an extra of {DISTRIBUTION}"
