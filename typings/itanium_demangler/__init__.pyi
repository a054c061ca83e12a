"""What of itanium_demangler is used: the tree of a mangled name."""

from typing import Any

class Node:
    kind: str
    value: Any

class FuncNode:
    kind: str
    name: Any
    arg_tys: tuple[Any, ...]
    ret_ty: Any

def parse(raw: str) -> Node | FuncNode | None: ...
