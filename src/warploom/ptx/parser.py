"""From PTX text to a `Module`: its directives, variables and functions.

Reading does not judge: whether operands suit their instruction is for `ptx.verify`. What the
grammar or the scopes forbid is an error here. Source: PTX ISA, "Directives".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from warploom.isa.versions import newest
from warploom.ptx.constants import integer
from warploom.ptx.cursor import Cursor
from warploom.ptx.debug import Locations, file_directive, skip_section
from warploom.ptx.declarations import (
    LINKAGES,
    linkage,
    pragma,
    registers,
    starts_variable,
    variables,
)
from warploom.ptx.functions import FunctionParser
from warploom.ptx.lexer import tokenize
from warploom.ptx.module import Function, Module, Variable
from warploom.ptx.names import Names, Outside
from warploom.ptx.release import NO_32_BITS, capability, wrong_target


def parse(text: str, name: str = "PTX", warp_size: int = 32) -> Module:
    """Return the module that `text` describes; `name` stands for it in messages, `warp_size` is
    what its constant WARP_SZ is.

    Raises PtxSyntaxError where it is not PTX, UnsupportedInstruction for an opcode or a modifier
    that is in no instruction table.
    """
    # What compilers hand over may end in the NUL of a C string.
    text = text.rstrip("\0")
    cursor = Cursor(tokenize(text, name), 0, warp_size)
    try:
        return _ModuleParser(cursor).parse()
    except RecursionError:
        raise cursor.error("brackets are nested too deeply here", cursor.at) from None


ABI_VERSION = (3, 0)


class _ModuleParser:
    """Reads the directives of a module in turn."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.locations = Locations(cursor.tokens)
        self.outside = Outside()
        self.variables: list[Variable] = []
        self.functions: list[Function] = []
        self.pragmas: list[str] = []
        self.aliases: list[tuple[str, str, int]] = []
        self.target: tuple[str, ...] = ()
        self.sized = False
        """True behind `.address_size`."""

    def parse(self) -> Module:
        cursor = self.cursor
        version = self.outside.version = self._version()
        while cursor.text:
            self._directive()
        self._check_debug()
        for alias, aliasee, at in self.aliases:
            self._resolve_alias(alias, aliasee, at)
        return Module(
            version,
            self.target,
            self.outside.address_bits,
            tuple(self.variables),
            tuple(self.functions),
            tuple(self.pragmas),
            tuple(sorted(self.locations.files.items())),
            cursor.tokens.source.content,
            cursor.tokens.source.name,
        )

    def _version(self) -> tuple[int, int]:
        cursor = self.cursor
        if not cursor.text:
            raise cursor.error("there is no PTX: the text is empty", cursor.at)
        if cursor.text != ".version":
            wanted = "`.version` at the start of the PTX text"
            if ".version" in cursor.tokens.texts:  # as in what `cuobjdump -ptx` prints
                wanted += " (remove the lines above it)"
            raise cursor.wrong(wanted)
        cursor.at += 1
        found = re.fullmatch(r"(\d+)\.(\d+)", cursor.text)
        if found is None:
            raise cursor.wrong("a version such as 8.0")
        major, minor = newest()
        if int(found[1]) > major:
            raise cursor.error(
                f"unknown PTX version {cursor.text}: the newest supported version is "
                f"{major}.{minor}",
                cursor.at,
            )
        cursor.at += 1
        return int(found[1]), int(found[2])

    def _directive(self) -> None:
        cursor = self.cursor
        text = cursor.text
        known: dict[str, Callable[[], object]] = {
            ".target": self._target,
            ".address_size": self._address_size,
            ".pragma": self._pragma,
            ".alias": self._alias,
            ".file": lambda: file_directive(cursor),
            ".section": lambda: skip_section(cursor),
        }
        if text in known:
            known[text]()
        elif text == ".reg":
            self._registers()
        elif text in LINKAGES or starts_variable(text) or text in (".entry", ".func"):
            self._declaration()
        else:
            raise cursor.wrong("a directive such as .entry, .func or .global")

    def _registers(self) -> None:
        """Note where registers of the module are declared; with 3.0 came the ABI, which has none
        (ptxas: "Module-scoped variables in .reg state space are not allowed with ABI")."""
        cursor = self.cursor
        if self.outside.version >= ABI_VERSION:
            message = "from PTX 3.0 on, registers must be declared inside functions"
            raise cursor.error(message, cursor.at)
        self.outside.registers.append(cursor.at)
        registers(cursor, Names(cursor, self.outside))

    def _target(self) -> None:
        at = self.cursor.at
        self.cursor.expect(".target")
        names = [self.cursor.name("a target such as sm_75")]
        while self.cursor.accept(","):
            names.append(self.cursor.name("a target option"))
        self.target = tuple(names)
        self.outside.target, _ = capability(self.target)
        if message := wrong_target(self.target, self.outside.version):
            raise self.cursor.error(message, at)

    def _check_debug(self) -> None:
        """Raise the error for `.target debug` in a text without debug information, as ptxas."""
        texts = self.cursor.texts
        if "debug" in self.target and ".section" not in texts:
            message = (
                "`.target debug` requires debug information, which is missing: compile with -G, "
                "or remove `debug`"
            )
            raise self.cursor.error(message, texts.index(".target"))

    def _address_size(self) -> None:
        cursor = self.cursor
        if self.sized:
            raise cursor.error("`.address_size` occurs twice", cursor.at)
        self.sized = True
        cursor.expect(".address_size")
        at = cursor.at
        self.outside.address_bits = integer(cursor, "32 or 64")
        if self.outside.address_bits not in (32, 64):
            raise cursor.error("the address size must be 32 or 64 bits", at)
        if self.outside.address_bits == 32 and self.outside.target >= NO_32_BITS:
            message = "from sm_90 on, addresses must be 64 bits wide: write `.address_size 64`"
            raise cursor.error(message, at)

    def _pragma(self) -> None:
        self.pragmas.extend(pragma(self.cursor))

    def _alias(self) -> None:
        cursor = self.cursor
        cursor.expect(".alias")
        alias = cursor.name("a function")
        cursor.expect(",")
        at = cursor.at
        self.aliases.append((alias, cursor.name("a function"), at))
        cursor.expect(";")

    def _resolve_alias(self, alias: str, aliasee: str, at: int) -> None:
        """Give an alias the body of the function that it stands for."""
        bodies = [f for f in self.functions if f.name == aliasee and f.body is not None]
        if not bodies:
            raise self.cursor.error(f"no function `{aliasee}` is defined here", at)
        self.functions = [f for f in self.functions if f.name != alias]
        self.functions.append(replace(bodies[0], name=alias))

    def _declaration(self) -> None:
        cursor = self.cursor
        start = cursor.at
        link = linkage(cursor)
        if cursor.text in (".entry", ".func"):
            parser = FunctionParser(cursor, self.outside, self.locations)
            function = parser.parse(link)
            self._add_variables(parser.statics)
            self.outside.names[function.name] = function.name
            self.functions.append(function)
            return
        cursor.at = start
        self._add_variables(variables(cursor, Names(cursor, self.outside, renaming=False)))

    def _add_variables(self, declared: Iterable[Variable]) -> None:
        """Add variables of the module."""
        for variable in declared:
            self.variables.append(variable)
            self.outside.names[variable.name] = variable.name
            self.outside.variables[variable.name] = variable
