"""The part of llvmlite's IR builder that this project uses; the library ships no types."""

from collections.abc import Sequence
from typing import Any

class Type: ...
class VoidType(Type): ...
class MetaDataType(Type): ...

class PointerType(Type):
    def __init__(self, pointee: Type | None = ..., addrspace: int = ...) -> None: ...

class IntType(Type):
    width: int
    def __init__(self, bits: int) -> None: ...
    def __call__(self, value: int) -> Constant: ...

class FloatType(Type): ...
class DoubleType(Type): ...

class VectorType(Type):
    element: Type
    count: int
    def __init__(self, elementtype: Type, count: int) -> None: ...

class ArrayType(Type):
    def __init__(self, element: Type, count: int) -> None: ...

class FunctionType(Type):
    return_type: Type
    args: tuple[Type, ...]
    def __init__(self, return_type: Type, args: Sequence[Type]) -> None: ...

Undefined: Any

instructions: Any
"""The module of instruction classes."""

class Constant:
    type: Type
    def __init__(self, typ: Type, constant: object) -> None: ...

class Block:
    is_terminated: bool
    instructions: list[Any]

class Module:
    globals: dict[str, Any]
    functions: list[Function]
    def __init__(self, name: str = ...) -> None: ...
    def get_global(self, name: str) -> Any: ...

class Function:
    args: tuple[Any, ...]
    attributes: set[str]
    linkage: str
    blocks: list[Block]
    def __init__(self, module: Module, ftype: FunctionType, name: str) -> None: ...
    def append_basic_block(self, name: str = ...) -> Block: ...

class GlobalVariable:
    linkage: str
    global_constant: bool
    initializer: Constant
    type: Type
    def __init__(self, module: Module, typ: Type, name: str) -> None: ...

class IRBuilder:
    def __init__(self, block: Block | None = ...) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
