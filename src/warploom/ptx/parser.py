"""From PTX text to a `Module`: module directives, functions and their statements.

Reading does not judge: whether operands suit their instruction is for `ptx.verify`. What the
grammar or the scopes forbid is an error here. Source: PTX ISA, "Directives".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from warploom.core.source import Location
from warploom.ptx.constants import integer
from warploom.ptx.cursor import NAME, Cursor
from warploom.ptx.debug import Locations, file_directive, skip_section, string
from warploom.ptx.declarations import (
    LINKAGES,
    SPACES,
    linkage,
    parameters,
    registers,
    skip_attribute,
    variables,
)
from warploom.ptx.instructions import instruction
from warploom.ptx.ir import (
    Function,
    Label,
    Module,
    Pragma,
    Prototype,
    Statement,
    Targets,
    Variable,
)
from warploom.ptx.lexer import tokenize
from warploom.ptx.names import Names, labels_by_scope

Directive = tuple[str, tuple[int | str, ...]]

PERFORMANCE = frozenset(
    {
        *(".maxnreg", ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm"),
        *(".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters"),
        *(".abi_preserve", ".abi_preserve_control"),
    }
)
"""Source: PTX ISA, "Performance-Tuning Directives" and "Cluster Dimension Directives"."""


def parse(text: str, name: str = "PTX") -> Module:
    """The module that `text` describes; `name` stands for it in messages.

    Raises PtxSyntaxError where it is not PTX, UnsupportedInstruction for an opcode or a modifier
    that is in no instruction table.
    """
    # What compilers hand over may end in the NUL of a C string.
    text = text.rstrip("\0")
    return _ModuleParser(Cursor(tokenize(text, name))).parse()


class _ModuleParser:
    """Reads the directives of a module in turn."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.locations = Locations(cursor.tokens)
        self.names: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.functions: list[Function] = []
        self.pragmas: list[str] = []
        self.aliases: list[tuple[str, str]] = []
        self.target: tuple[str, ...] = ()
        self.address_size = 32  # where `.address_size` is left out

    def parse(self) -> Module:
        cursor = self.cursor
        version = self._version()
        while cursor.text:
            self._directive()
        for alias, aliasee in self.aliases:
            self._resolve_alias(alias, aliasee)
        return Module(
            version,
            self.target,
            self.address_size,
            tuple(self.variables),
            tuple(self.functions),
            tuple(self.pragmas),
            tuple(sorted(self.locations.files.items())),
            cursor.tokens.text,
            cursor.tokens.name,
        )

    def _version(self) -> tuple[int, int]:
        cursor = self.cursor
        if not cursor.text:
            raise cursor.error("there is no PTX here: the text is empty", cursor.at)
        if cursor.text != ".version":
            raise cursor.wrong("`.version`, with which every PTX text begins")
        cursor.at += 1
        found = re.fullmatch(r"(\d+)\.(\d+)", cursor.text)
        if found is None:
            raise cursor.wrong("a version such as 8.0")
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
        elif text in LINKAGES or text in SPACES or text in (".entry", ".func"):
            self._declaration()
        else:
            raise cursor.wrong("a directive such as .entry, .func or .global")

    def _target(self) -> None:
        self.cursor.expect(".target")
        names = [self.cursor.name("a target such as sm_75")]
        while self.cursor.accept(","):
            names.append(self.cursor.name("a target option"))
        self.target = tuple(names)

    def _address_size(self) -> None:
        cursor = self.cursor
        cursor.expect(".address_size")
        at = cursor.at
        self.address_size = integer(cursor, "32 or 64")
        if self.address_size not in (32, 64):
            raise cursor.error("an address has 32 or 64 bits", at)

    def _pragma(self) -> None:
        self.pragmas.extend(_pragma(self.cursor))

    def _alias(self) -> None:
        cursor = self.cursor
        cursor.expect(".alias")
        alias = cursor.name("a function")
        cursor.expect(",")
        self.aliases.append((alias, cursor.name("a function")))
        cursor.expect(";")

    def _resolve_alias(self, alias: str, aliasee: str) -> None:
        """An alias is its declaration with the body of the function that it stands for."""
        original = next((f for f in self.functions if f.name == aliasee and f.body), None)
        if original is None:
            message = f"`.alias` needs a function `{aliasee}` with a body"
            raise self.cursor.error(message, self.cursor.at)
        self.functions = [f for f in self.functions if f.name != alias]
        self.functions.append(replace(original, name=alias))

    def _declaration(self) -> None:
        cursor = self.cursor
        start = cursor.at
        link = linkage(cursor)
        if cursor.text in (".entry", ".func"):
            function = _FunctionParser(cursor, self.names, self.locations).parse(link)
            self.names[function.name] = function.name
            self.functions.append(function)
            return
        cursor.at = start
        for variable in variables(cursor, Names(cursor, self.names)):
            self.variables.append(variable)
            self.names[variable.name] = variable.name


class _FunctionParser:
    """Reads one `.entry` or `.func`."""

    def __init__(self, cursor: Cursor, module: dict[str, str], locations: Locations) -> None:
        self.cursor, self.locations = cursor, locations
        self.names = Names(cursor, module)
        self.module = module
        self.statements: list[Statement] = []
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
        skip_attribute(cursor)
        returns = parameters(cursor, self.names) if cursor.text == "(" else ()
        at = cursor.at
        name = cursor.name("the function's name")
        self.names.known[name] = name
        arguments = parameters(cursor, self.names) if cursor.text == "(" else ()
        directives, noreturn = self._function_directives()
        body = None
        if not cursor.accept(";"):
            body = self._body()
        return Function(
            name,
            is_entry,
            arguments,
            returns,
            link,
            noreturn,
            directives,
            tuple(self.names.registers),
            body,
            cursor.span(at),
        )

    def _function_directives(self) -> tuple[tuple[Directive, ...], bool]:
        """What stands between the parameters and the body."""
        cursor = self.cursor
        found: list[Directive] = []
        noreturn = False
        while cursor.text not in ("{", ";"):
            text = cursor.text
            if text == ".pragma":
                found.append(("pragma", tuple(_pragma(cursor))))
            elif text == ".noreturn":
                cursor.at += 1
                noreturn = True
            elif text in PERFORMANCE:
                cursor.at += 1
                found.append((text[1:], _numbers(cursor)))
            elif text == ".loc":
                self._loc()
            else:
                raise cursor.wrong("`{`, `;` or a performance directive such as .maxntid")
        return tuple(found), noreturn

    def _body(self) -> tuple[Statement, ...]:
        cursor = self.cursor
        self.labels = labels_by_scope(cursor)
        self._declare_labels()
        cursor.at += 1
        depth = 1
        while depth:
            text = cursor.text
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
        if cursor.next_text == ":" and NAME.fullmatch(text):
            self._label()
        elif text.startswith("."):
            self._directive(text)
        elif text == ";":
            cursor.at += 1
        elif text == "":
            raise cursor.wrong("`}`")
        else:
            self.statements.append(instruction(cursor, self.names, self.location))

    def _directive(self, text: str) -> None:
        handler = self._directives.get(text)
        if handler is not None:
            handler()
        elif text in SPACES or text in LINKAGES:
            self.statements.extend(variables(self.cursor, self.names))
        else:
            raise self.cursor.wrong("a statement")

    def _loc(self) -> None:
        self.location = self.locations.directive(self.cursor)

    def _pragma(self) -> None:
        at = self.cursor.at
        span = self.cursor.span(at)
        self.statements.extend(Pragma(text, span) for text in _pragma(self.cursor))

    def _label(self) -> None:
        """A label; with a directive behind it, the name of a prototype or a list of targets."""
        cursor = self.cursor
        span = cursor.span(cursor.at)
        name = str(self.names.known[cursor.take()])
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
        scope = Names(cursor, ())
        returns = parameters(cursor, scope) if cursor.text == "(" else ()
        cursor.name("`_`")
        arguments = parameters(cursor, scope) if cursor.text == "(" else ()
        noreturn = False
        while not cursor.accept(";"):
            if cursor.accept(".noreturn"):
                noreturn = True
            elif cursor.text in PERFORMANCE:
                cursor.at += 1
                _numbers(cursor)
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
            known = self.names.known.get(written)
            if not isinstance(known, str):
                raise cursor.error(self.names.undeclared(written), at)
            found.append(known)
            if not cursor.accept(","):
                break
        cursor.expect(";")
        return Targets(name, tuple(found), calls, span)


def _pragma(cursor: Cursor) -> list[str]:
    """`.pragma "text", ...;`."""
    cursor.expect(".pragma")
    found = [string(cursor)]
    while cursor.accept(","):
        found.append(string(cursor))
    cursor.expect(";")
    return found


def _numbers(cursor: Cursor) -> tuple[int, ...]:
    """Integers with commas between, perhaps none."""
    if not cursor.text[:1].isdigit():
        return ()
    found = [integer(cursor)]
    while cursor.accept(","):
        found.append(integer(cursor))
    return tuple(found)
