"""Runs `bough` commands, one after the other, in a process without the type checks of the tests.

Importing torch once and not for each command is what makes it worthwhile to read every message. A request is a line of
JSON on standard input, an answer one on standard output.
"""

import io
import json
import os
import resource
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout

from bough.cli import main


def answer(arguments: list[str], folder: str, missing: list[str], largest_file: int | None) -> dict[str, object]:
    """Run one command: from `folder`, with modules that cannot be imported, with a limit to the size of files."""
    os.chdir(folder)
    sys.argv = ["bough", *arguments]
    hidden = {name: sys.modules.get(name) for name in missing}
    sys.modules |= dict.fromkeys(missing)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, before[1]))
    out, err, status = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
            status = 1
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    for name, module in hidden.items():
        del sys.modules[name]
        if module is not None:
            sys.modules[name] = module
    return {"status": status, "out": out.getvalue(), "err": err.getvalue(), "modules": _packages()}


def _packages() -> list[str]:
    return sorted({name.partition(".")[0] for name in sys.modules})


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)
