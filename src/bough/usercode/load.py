"""Loads Python files outside of installed packages by path, such as a user's recipe, equally in every process."""

import importlib
import importlib.util
import os
import pickle
import re
import sys
from collections.abc import Mapping
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from bough.usercode.origin import is_users

PREFIX = "bough_user_"
MAINS = ("__main__", "__mp_main__")


def load_module(path: Path) -> ModuleType:
    """Run a Python file once, as a module whose name follows from its absolute path.

    The module is added to `sys.modules`, so that its classes can be pickled. The file's folder is appended to
    `sys.path`, so that it can import neighbouring files.

    Raises:
        ValueError: when there is no such Python file.
    """
    path = path.resolve()
    if path.suffix != ".py" or not os.path.isfile(path):
        raise ValueError(f"load_module: got {path}; need a Python file (.py) that exists")
    digest = blake2b(str(path).encode(), digest_size=4).hexdigest()
    name = f"{PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{digest}"
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    return sys.modules.get(name) or _run(name, path)


def import_folder(name: str, file: str) -> Path | None:
    """The folder on `sys.path` from which a user's module is imported; None for an installed module.

    Args:
        name: Dotted name of the module: `shop.env`.
        file: Its source file: `/project/shop/env.py`, for the folder `/project`.
    """
    path = Path(file).absolute()
    return path.parents[name.count(".") + (path.name == "__init__.py")] if is_users(file) else None


def import_from(name: str, folder: Path | None) -> ModuleType:
    """Import a module by its name, from `folder` where one is given; the folder goes to the end of `sys.path`.

    Raises:
        ImportError: when there is no such module, or another module of this name precedes it on `sys.path`.
    """
    if folder is None or not folder.is_dir():
        return importlib.import_module(name)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    module = importlib.import_module(name)
    file = module.__file__ or ""
    if import_folder(name, file) != folder:
        raise ImportError(f"got another module {name!r}, {file or 'built in'}; need the one in {folder}")
    return module


def loaded_files() -> dict[str, str]:
    """The files that another process needs to unpickle this process's objects: name of the module -> path."""
    names = [name for name in sys.modules if name.startswith(PREFIX)]
    files = {name: getattr(sys.modules[name], "__file__", None) for name in ["__main__", *names]}
    return {name: str(Path(file).resolve()) for name, file in files.items() if file is not None}


def unpickle(blob: bytes, files: Mapping[str, str]) -> object:
    """Unpickle another process's object; its modules are loaded from `files` as needed."""
    return Unpickler(BytesIO(blob), files).load()


class Unpickler(pickle.Unpickler):
    """Unpickles as `unpickle` does. `torch.load` takes this module in place of `pickle`."""

    def __init__(self, stream: IO[bytes], files: Mapping[str, str], **options: Any) -> None:
        """Read a pickle.

        Args:
            stream: The pickle.
            files: As of `loaded_files` of the process that has pickled.
            options: As of `pickle.Unpickler`.
        """
        super().__init__(stream, **options)
        self._files = files

    def find_class(self, module_name: str, global_name: str) -> object:
        """Load the file of the class, if it is the user's."""
        if module_name in MAINS:
            self._load_main()
        elif module_name not in sys.modules and module_name in self._files:
            load_module(Path(self._files[module_name]))
        return super().find_class(module_name, global_name)

    def _load_main(self) -> None:
        """Load the other process's script as `multiprocessing` does: its `__name__` is not `__main__`."""
        # A process that Bough starts has no script of its own.
        if not hasattr(sys.modules["__main__"], "__file__") and "__main__" in self._files:
            sys.modules["__main__"] = _run("__mp_main__", Path(self._files["__main__"]))


def _run(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"load_module: got {path}; need a file that Python can run")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
