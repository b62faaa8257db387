"""Runs in a sandbox as `python -c SOURCE ...`: sets the limits, gives up privileges, and executes a program.

The text of this file is the argument of the interpreter. It imports as little as possible.
"""

import os
import resource
import sys
from types import CodeType

STARTED, OUT_OF_MEMORY, EXITED = b"s", b"m", b"x"
"""Bytes of the report: the program starts; a MemoryError ended it; it exits, with the status in digits."""


def set_limits(user: int, memory: int, seconds: int, size: int, files: int, threads: int) -> None:
    """Sets the limits of this process; a user of 0 keeps its own."""
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if threads:
        resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))


def read(number: int) -> bytes:
    """All bytes of an inherited file."""
    with open(number, "rb") as file:
        return file.read()


def compiled(source: bytes, echo: bool) -> list[CodeType]:
    """The code of a program; with `echo` the value of a last expression is printed."""
    if not echo:
        return [compile(source, "main.py", "exec")]
    import ast

    tree = ast.parse(source, "main.py")
    last = tree.body[-1:]
    if not last or not isinstance(last[0], ast.Expr):
        return [compile(tree, "main.py", "exec")]
    show = ast.Interactive([last[0]])
    return [compile(ast.Module(tree.body[:-1], []), "main.py", "exec"), compile(show, "main.py", "single")]


def explain(error: BaseException, source: bytes) -> None:
    """Writes the traceback of a program, without the frames of this file."""
    import linecache
    import traceback

    lines = source.decode(errors="replace").splitlines(keepends=True)
    linecache.cache["main.py"] = (len(source), None, lines, "main.py")
    first = None if isinstance(error, SyntaxError) else error.__traceback__
    while first and first.tb_frame.f_code.co_filename == "<string>":
        first = first.tb_next
    os.write(2, "".join(traceback.format_exception(type(error), error, first)).encode(errors="replace"))


def launch() -> None:
    """Executes the program as the module `__main__`, and reports."""
    report, code, echo, *limits = map(int, sys.argv[1:])
    os.set_inheritable(report, False)
    set_limits(*limits)
    source = read(code)
    if b"random" in source:
        import random

        random.seed(0)  # Equal programs print equal texts.
    os.write(report, STARTED)
    sys.argv = ["main.py"]
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    try:
        for part in compiled(source, bool(echo)):
            exec(part, main.__dict__)
    except MemoryError:
        main.__dict__.clear()
        os.write(report, OUT_OF_MEMORY)
        os.write(2, b"MemoryError\n")
        os._exit(1)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        os.write(report, EXITED + str(status & 255).encode())
        raise
    except Exception as error:
        try:
            sys.stdout.flush()
        finally:
            explain(error, source)
            os._exit(1)


if __name__ == "__main__":
    launch()
