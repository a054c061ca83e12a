"""A loaded program: its kernels by name, its PTX, its variables in memory."""

from __future__ import annotations

from typing import cast

import numpy as np

from warploom.core.byte_order import in_device_order
from warploom.core.errors import OptionTypeError, WarploomError
from warploom.core.options import checked
from warploom.core.source import NO_TEXT, Text
from warploom.core.types import OPAQUE
from warploom.core.values import shown
from warploom.host.buffer import Array
from warploom.host.context import Context
from warploom.host.kernel import Kernel
from warploom.host.programs.builds import Builds
from warploom.host.programs.names import find_kernel, kernel_title
from warploom.host.ready_launch import LaunchHooks
from warploom.host.textures.textures import Handle
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.ptx.module import Module as Ptx


class Module:
    """A PTX module on a device; `module["name"]` is one of its kernels. Reports are in the `terms`
    of its language, where they are not asked for in others."""

    def __init__(
        self,
        context: Context,
        ptx: Ptx,
        name: str,
        source: Text = NO_TEXT,
        terms: str = "cuda",
        builds: Builds | None = None,
        hooks: LaunchHooks | None = None,
    ) -> None:
        self._context, self._builds, self._hooks = context, builds, hooks or LaunchHooks()
        self._kernels: dict[str, Kernel] = {}
        self._bound: dict[str, Handle] = {}
        self.ir = ptx
        self.name = name
        self.source = source
        self.terms = terms
        self.image = ModuleGlobals(ptx, context.memory)

    @property
    def ptx(self) -> str:
        """Returns the PTX text."""
        return self.ir.text

    @property
    def kernels(self) -> tuple[str, ...]:
        """Returns the names of its kernels, as PTX has them."""
        return tuple(entry.name for entry in self.ir.entries)

    def __getitem__(self, name: str) -> Kernel:
        """Returns the kernel that PTX or C++ calls `name`; LaunchError where there is none,
        TypeError for anything but a name."""
        if not isinstance(cast(object, name), str):
            raise OptionTypeError(
                f"{self.name}[...] takes the name of a kernel, not {shown(name)}. Its kernels:"
                f" {', '.join(map(kernel_title, self.kernels)) or 'none'}."
            )
        symbol = find_kernel(name, self.kernels, self.name)
        if symbol not in self._kernels:
            given = self._context, self.ir, self.image, symbol, self.source, self.terms
            self._kernels[symbol] = kernel = Kernel(*given, self._builds)
            kernel.hooks = self._hooks
        return self._kernels[symbol]

    @checked("Module.bind(...)")
    def bind(self, variable: str, handle: Handle) -> None:
        """Binds a variable of type .texref or .surfref to a texture or a surface, from the next
        launch on; WarploomError where the module has no such variable, LaunchError for a handle of
        another device."""
        self._context.memory.check_owner(handle.memory, handle)
        opaque = {v.name for v in self.ir.variables if v.type.name in OPAQUE}
        if variable not in opaque:
            known = ", ".join(sorted(opaque)) or "none"
            raise WarploomError(f"{self.name} has no texture variable {variable!r}; it has {known}")
        [address] = self.image.addresses((variable,))
        self._context.memory.write(address, handle.handle.to_bytes(8, "little"))
        self._bound[variable] = handle

    @checked("Module.set_variable(...)")
    def set_variable(self, variable: str, values: Array) -> None:
        """Stores values in a variable of the module (`__constant__` or `__device__`), for launches
        from now on. Raises WarploomError where the module has no such variable, or one that is
        smaller."""
        found = self.image.find_variable(variable)
        if found is None:
            known = ", ".join(self.image.sizes_by_name) or "none"
            raise WarploomError(
                f"{self.name} has no variable {variable!r}. Its variables: {known}."
            )
        address, size = found
        data = np.ascontiguousarray(in_device_order(values)).tobytes()
        if len(data) > size:
            raise WarploomError(
                f"{self.name}: the variable {variable} has {size:,} bytes, but the values have "
                f"{len(data):,}."
            )
        self._context.memory.write(address, data)

    def __repr__(self) -> str:
        return f"Module({self.name}, kernels={list(self.kernels)})"
