"""Functions in PTX text: the heading, and the statements of the body, scopes flattened.

Source: PTX ISA, "Kernel and Function Directives", "Performance-Tuning Directives".
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.core.source import Location
from warploom.ptx.cursor import NAME, Cursor
from warploom.ptx.debug import Locations, file_directive, skip_section
from warploom.ptx.declarations import (
    LINKAGES,
    STATIC,
    TEXTURE_SPACE,
    begins_declaration,
    numbers,
    parameters,
    pragma,
    registers,
    skip_attribute,
    starts_variable,
    variables,
)
from warploom.ptx.instructions import instruction
from warploom.ptx.module import (
    Function,
    Label,
    Pragma,
    Prototype,
    Statement,
    Targets,
    Variable,
)
from warploom.ptx.names import Names, Outside, labels_by_scope

Directive = tuple[str, tuple[int | str, ...]]

PERFORMANCE = frozenset(
    {
        *(".maxnreg", ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm"),
        *(".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters"),
        *(".abi_preserve", ".abi_preserve_control"),
    }
)
"""Source: PTX ISA, "Performance-Tuning Directives" and "Cluster Dimension Directives"."""

OF_FUNCTIONS = frozenset({".abi_preserve", ".abi_preserve_control"})
"""Those of a `.func` alone, since PTX 9.0 and for sm_80 or later."""

POSITIVE = frozenset({".maxnreg", ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm"})
"""Those of which ptxas takes no 0."""


class FunctionParser:
    """Reads one `.entry` or `.func`."""

    def __init__(self, cursor: Cursor, module: Outside, locations: Locations) -> None:
        self.cursor, self.locations = cursor, locations
        self.names = Names(cursor, module)
        self._module_registers = module.registers
        self.statements: list[Statement] = []
        self.statics: list[Variable] = []
        """Variables of the module that the function declares."""

        self.location: Location | None = None
        self.labels: dict[int, list[int]] = {}
        self._directives: dict[str, Callable[[], object]] = {
            ".reg": lambda: registers(cursor, self.names),
            ".loc": self._loc,
            ".pragma": self._pragma,
            ".file": lambda: file_directive(cursor),
            ".section": lambda: skip_section(cursor),
        }

    def parse(self, link: str) -> Function:
        cursor = self.cursor
        is_entry = cursor.take() == ".entry"
        if is_entry:
            self._registers_of_module()
        skip_attribute(cursor)
        returns = parameters(cursor, self.names) if cursor.text == "(" else ()
        at = cursor.at
        name = cursor.name("the function's name")
        self.names.name_function(name)
        arguments = parameters(cursor, self.names) if cursor.text == "(" else ()
        directives, noreturn = self._function_directives(is_entry=is_entry)
        body = None
        if cursor.text == "{":
            body = self._body()
        elif is_entry or not begins_declaration(cursor.text):
            cursor.expect(";")
        return Function(
            name,
            is_entry,
            arguments,
            returns,
            link,
            noreturn,
            directives,
            self.names.registers,
            body,
            cursor.span(at),
        )

    def _registers_of_module(self) -> None:
        """Declare the registers of the module as the kernel's own, in a scope around its own."""
        cursor, at = self.cursor, self.cursor.at
        for declared_at in self._module_registers:
            cursor.at = declared_at
            registers(cursor, self.names)
        cursor.at = at
        if self._module_registers:
            self.names.enter()

    def _function_directives(self, *, is_entry: bool) -> tuple[tuple[Directive, ...], bool]:
        """Returns what stands between the parameters and the body. The prototype of a `.func` may
        also end where the next declaration begins (compilers before CUDA 4.1 left its semicolon
        out)."""
        cursor = self.cursor
        found: list[Directive] = []
        noreturn = False
        while cursor.text not in ("{", ";"):
            text = cursor.text
            if not is_entry and begins_declaration(text):
                break
            if text == ".pragma":
                found.append(("pragma", tuple(pragma(cursor))))
            elif text == ".noreturn" and not is_entry:
                cursor.at += 1
                noreturn = True
            elif text in PERFORMANCE and not (is_entry and text in OF_FUNCTIONS):
                found.append(self._performance(text))
            elif text == ".loc":
                self._loc()
            else:
                raise cursor.wrong("`{`, `;` or a performance directive such as .maxntid")
        return tuple(found), noreturn

    def _performance(self, text: str) -> Directive:
        """Returns a performance directive and its numbers."""
        cursor, at = self.cursor, self.cursor.at
        cursor.at += 1
        values = numbers(cursor)
        if text in OF_FUNCTIONS and (self.names.version < (9, 0) or self.names.target < (8, 0)):
            raise cursor.error(f"{text} requires PTX 9.0 and sm_80", at)
        if text in POSITIVE and min(values, default=0) < 1:
            raise cursor.error(f"{text} requires numbers greater than 0", at)
        return text[1:], values

    def _body(self) -> tuple[Statement, ...]:
        cursor = self.cursor
        self.labels = labels_by_scope(cursor)
        self._declare_labels()
        cursor.at += 1
        depth = 1
        while depth:
            text = cursor.texts[cursor.at]
            if text == "}":
                depth -= 1
                cursor.at += 1
                if depth:
                    self.names.leave()
            elif text == "{":
                depth += 1
                self.names.enter()
                self._declare_labels()
                cursor.at += 1
            else:
                self._statement(text)
        return tuple(self.statements)

    def _declare_labels(self) -> None:
        """Make the labels of the scope that opens at the cursor known."""
        for at in self.labels.get(self.cursor.at, ()):
            self.names.declare(self.cursor.texts[at], at)

    def _statement(self, text: str) -> None:
        cursor = self.cursor
        if text and cursor.texts[cursor.at + 1] == ":" and NAME.fullmatch(text):
            self._label()
        elif text.startswith("."):
            self._directive(text)
        elif text == ";":
            cursor.at += 1
        elif text == "":
            raise cursor.wrong("`}`")
        else:
            self.statements.extend(instruction(cursor, self.names, self.location))

    def _directive(self, text: str) -> None:
        at = self.cursor.at
        handler = self._directives.get(text)
        if handler is not None:
            handler()
        elif text == TEXTURE_SPACE:
            raise self.cursor.error("`.tex` variables must be declared outside functions", at)
        elif text in LINKAGES:
            message = f"{text} is allowed only on variables declared outside functions"
            raise self.cursor.error(message, at)
        elif starts_variable(text):
            for variable in variables(self.cursor, self.names):
                (self.statics if variable.space in STATIC else self.statements).append(variable)
        else:
            raise self.cursor.wrong("a statement")

    def _loc(self) -> None:
        self.location = self.locations.directive(self.cursor)

    def _pragma(self) -> None:
        at = self.cursor.at
        span = self.cursor.span(at)
        self.statements.extend(Pragma(text, span) for text in pragma(self.cursor))

    def _label(self) -> None:
        """Parse a label; with a directive behind it, the name of a prototype or a list of
        targets."""
        cursor = self.cursor
        span = cursor.span(cursor.at)
        name = str(self.names.get(cursor.take()))
        cursor.expect(":")
        if cursor.text == ".callprototype":
            self.statements.append(self._prototype(name))
        elif cursor.text in (".branchtargets", ".calltargets"):
            self.statements.append(self._targets(name))
        else:
            self.statements.append(Label(name, span))

    def _prototype(self, name: str) -> Prototype:
        cursor = self.cursor
        span = cursor.span(cursor.at)
        cursor.expect(".callprototype")
        scope = Names(cursor, Outside())
        returns = parameters(cursor, scope) if cursor.text == "(" else ()
        cursor.expect("_")
        arguments = parameters(cursor, scope) if cursor.text == "(" else ()
        noreturn = False
        while not cursor.accept(";"):
            if cursor.accept(".noreturn"):
                noreturn = True
            elif cursor.text in PERFORMANCE:
                cursor.at += 1
                numbers(cursor)
            else:
                raise cursor.wrong("`;`")
        return Prototype(name, returns, arguments, noreturn, span)

    def _targets(self, name: str) -> Targets:
        cursor = self.cursor
        span = cursor.span(cursor.at)
        calls = cursor.take() == ".calltargets"
        found: list[str] = []
        while True:
            at = cursor.at
            written = cursor.name("a function" if calls else "a label")
            known = self.names.get(written)
            if not isinstance(known, str):
                raise cursor.error(self.names.undeclared(written), at)
            found.append(known)
            if not cursor.accept(","):
                break
        cursor.expect(";")
        return Targets(name, tuple(found), calls, span)
