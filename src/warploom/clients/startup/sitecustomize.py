"""Runs when Python starts in a program of `warploom run`, whose PYTHONPATH leads here: watches for
PyTorch and Triton, then continues with the sitecustomize that this one hides.
"""

from __future__ import annotations

import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def _watch_imports() -> None:
    path = os.path.join(os.path.dirname(HERE), "import_hook.py")
    spec = importlib.util.spec_from_file_location("_warploom_import_hook", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.watch_imports()


def _continue_with_hidden() -> None:
    """Imports the sitecustomize that is found without this folder, which programs do not see."""
    sys.path[:] = [part for part in sys.path if part != HERE]
    own = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError:
        sys.modules["sitecustomize"] = own  # the import of it goes on


_watch_imports()
_continue_with_hidden()
