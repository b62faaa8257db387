"""Short runs of the rows of bench/no_harm.py with the code of a checkout: a line of JSON in, a line of JSON out.

    PYTHONPATH=CHECKOUT/src:CHECKOUT/bench python -P bench/short_runs.py OUT

bench/confirm.py starts it for two commits. `-P` keeps this folder out of the imports, and of the checkout it uses only
what every commit with rows has.
"""

import contextlib
import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import no_harm
import rule_server


def main() -> None:
    out = Path(sys.argv[1]).absolute()
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(out)
    answers = sys.stdout
    successes: dict[Path, str] = {}
    with rule_server.serve() as url, contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            job = json.loads(line)
            try:
                answer = _run(job, Namespace(out=out, steps=job["steps"], server=url), successes)
            except (Exception, SystemExit) as error:
                answer = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


def _run(job: dict[str, Any], arguments: Namespace, successes: dict[Path, str]) -> dict[str, Any]:
    """The result of a run from `job["start"]`, or from the warmed policy where that is none.

    A policy is evaluated once where several rows have the same successes of it.
    """
    own = no_harm._start
    start = Path(job["start"] or own(no_harm._run(job["command"], arguments.server), job["seed"]))
    known = successes.get(start) == job["before"]
    no_harm.HELDOUT = 1 if known else job["heldout"]
    no_harm._start = lambda *_: start
    try:
        no_harm._measure(arguments, job["method"], job["command"], job["seed"])
    finally:
        no_harm._start = own
    folder = no_harm._folder(arguments.out, job["method"], job["seed"])
    row = json.loads((folder / "row.json").read_text())
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    if not known:
        successes[start] = row["before"]
    return {
        "start": str(start),
        "before": successes[start],
        "weights": row["weights"],
        "metrics": [each for each in lines if each.get("phase") == "rl"],
    }


if __name__ == "__main__":
    main()
