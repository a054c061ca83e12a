"""Programs: their sources and binaries, building, compiling and linking them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from itertools import count

from msgspec.structs import replace

from warploom.clients.driver.programs import LoadedProgram
from warploom.clients.driver.state import state
from warploom.clients.opencl.binaries import Binary, BinaryType, link_binaries, read_binary
from warploom.clients.opencl.build_options import LIBRARY, compiler_options, link_options
from warploom.clients.opencl.contexts import ClContext, device_list
from warploom.clients.opencl.devices import ClDevice
from warploom.clients.opencl.errors import ClError, Status, demand
from warploom.clients.opencl.info import list_at, sizes_at
from warploom.clients.opencl.objects import ClObject, get, get_all, register_counting
from warploom.clients.opencl.table import entry, report_refusal
from warploom.core.errors import CompileError, WarploomError
from warploom.core.mangled import shown_name
from warploom.core.source import Text
from warploom.frontends.opencl import ND_RANGE, build_opencl
from warploom.frontends.opencl_compilers import opencl_is_missing
from warploom.frontends.opencl_metadata import DeclaredKernel
from warploom.isa.instruction import Symbol
from warploom.program.services import SERVICES
from warploom.ptx.module import Module

SUCCESS, NONE, ERROR, IN_PROGRESS = 0, -1, -2, -3

_NOTIFY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_numbers = count(1)


class Program(ClObject):
    """A program: its source or its binary, and what the last build made of it. `attached` is how
    many kernels there are of it."""

    what = "program"
    invalid = Status.INVALID_PROGRAM

    def __init__(self, context: ClContext, source: str = "", binary: Binary | None = None) -> None:
        super().__init__()
        self.context, self.source, self.binary = context, source, binary
        self.has_source = binary is None
        self.name = binary.name if binary else f"program_{next(_numbers)}.cl"
        self.status, self.log, self.options = NONE, "", ""
        self.loaded: LoadedProgram | None = None
        self.attached = 0
        context.hold()

    @property
    def executable(self) -> LoadedProgram:
        """Returns the program in device memory; INVALID_PROGRAM_EXECUTABLE before it is built."""
        unbuilt = Status.INVALID_PROGRAM_EXECUTABLE
        demand(
            self.loaded is not None, unbuilt, "the program has not been built, or its build failed"
        )
        assert self.loaded is not None
        return self.loaded

    @property
    def kernels(self) -> Mapping[str, DeclaredKernel]:
        """Returns its kernels as their source declares them."""
        return self.binary.kernels if self.binary else {}

    def build(self, options: str, make: Callable[[], Binary], failed: Status) -> None:
        """Makes the binary, and where that is to be executed loads it; ClError(`failed`) where it
        does not work, with the reason in the log."""
        free = "the program has kernels that have not been released"
        demand(not self.attached, Status.INVALID_OPERATION, free)
        self.options, self.log = options, ""
        self._unload()
        try:
            self.binary = made = make()
            if made.type == BinaryType.EXECUTABLE:
                text = Text(made.name, made.source or made.ptx)
                module = state.device.load_compiled(made.ptx, text, "opencl")
                check_resolved(module.ir)
                self.loaded = LoadedProgram(module)
        except CompileError as error:
            self.status, self.log = ERROR, error.log or str(error)
            why = "" if error.log else str(error)
            raise ClError(failed, why or f"the build log says:\n{error.log}") from None
        except WarploomError as error:
            self.status, self.log = ERROR, str(error)
            raise ClError(failed, str(error)) from None
        self.status = SUCCESS

    def _unload(self) -> None:
        if self.loaded is not None:
            self.loaded.unload()
            self.loaded = None

    def compiled(
        self, options: list[str], type: BinaryType, headers: Mapping[str, str] | None = None
    ) -> Binary:
        """Returns the binary of the source, with the compiler's warnings in the log."""
        cc = state.device.spec.compute_capability
        given = [ND_RANGE, "-cl-kernel-arg-info", *options]  # messages name parameters
        # Several sources may include one `inline` function.
        given += ["-fno-gnu89-inline"] if type == BinaryType.OBJECT else []
        built = build_opencl(self.source, self.name, cc, given, headers)
        self.log = built.log
        answers = "-cl-kernel-arg-info" in options
        kernels = {n: replace(k, shows_names=answers) for n, k in built.kernels.items()}
        return Binary(built.ptx, type, kernels, self.name, self.source)

    def end(self) -> None:
        self._unload()
        self.context.drop()


def check_resolved(ptx: Module) -> None:
    """Raises CompileError where a function is called that no source defines: a program's own, or
    one of OpenCL C that the compiler's library has not."""
    called = {
        operand.name
        for function in ptx.functions
        for instruction in function.instructions
        for operand in instruction.operands
        if isinstance(operand, Symbol)
    }
    missing = [
        shown_name(one.name)
        for one in ptx.functions
        if one.body is None
        and one.name in called
        and one.name not in SERVICES
        and ptx.function(one.name) is one
    ]
    if missing:
        message = (
            "error: the program calls functions that none of its sources define: "
            f"{', '.join(missing)}. "
            "Each of them is only declared, or is a built-in function that this device does not "
            "support"
        )
        raise CompileError(message, message)


register_counting(entry, "Program", Program)


# ---- making them ---------------------------------------------------------------------------------


@entry("clCreateProgramWithSource")
def create(context: int, number: int, strings: int, lengths: int) -> int:
    at = get(context, ClContext)
    demand(number and strings, Status.INVALID_VALUE, "there are no source strings")
    pointers = sizes_at(strings, number)
    demand(all(pointers), Status.INVALID_VALUE, "a source string is null")
    sizes = sizes_at(lengths, number) if lengths else (0,) * number
    parts = [
        ctypes.string_at(pointer, size) if size else ctypes.string_at(pointer)
        for pointer, size in zip(pointers, sizes, strict=True)
    ]
    text = b"".join(parts).replace(b"\0", b"")
    return Program(at, text.decode(errors="replace")).handle


@entry("clCreateProgramWithBinary")
def create_with_binary(
    context: int, number: int, devices: int, lengths: int, binaries: int, statuses: int
) -> int:
    at = get(context, ClContext)
    given = number and devices and lengths and binaries
    demand(given, Status.INVALID_VALUE, "devices, lengths or binaries are null")
    get_all(sizes_at(devices, number), ClDevice)
    [size, *_], [pointer, *_] = sizes_at(lengths, number), sizes_at(binaries, number)
    valid = size and pointer
    found = None
    if valid:
        try:
            found = read_binary(ctypes.string_at(pointer, size))
        except WarploomError:
            found = None
    if statuses:
        wrong = Status.INVALID_BINARY if valid else Status.INVALID_VALUE
        code = Status.SUCCESS if found else wrong
        ctypes.c_int32.from_address(statuses).value = code
    demand(valid, Status.INVALID_VALUE, "a binary is null or empty")
    demand(found, Status.INVALID_BINARY, "the binary is not PTX text")
    return Program(at, binary=found).handle


@entry("clCreateProgramWithBuiltInKernels")
def create_built_in(context: int, number: int, devices: int, names: int) -> int:
    get(context, ClContext)
    demand(
        number and devices and names,
        Status.INVALID_VALUE,
        "the devices or the kernel names are missing",
    )
    get_all(sizes_at(devices, number), ClDevice)
    demand(False, Status.INVALID_VALUE, "the device has no built-in kernels")
    return 0


@entry("clCreateProgramWithIL")
def create_with_il(context: int) -> int:
    get(context, ClContext)
    demand(
        False, Status.INVALID_OPERATION, "the device does not support SPIR-V (CL_DEVICE_IL_VERSION)"
    )
    return 0


@entry("clSetProgramSpecializationConstant")
def set_constant(program: int) -> None:
    get(program, Program)
    demand(
        False, Status.INVALID_OPERATION, "the device does not support SPIR-V (CL_DEVICE_IL_VERSION)"
    )


@entry("clSetProgramReleaseCallback")
def set_release(program: int, function: int, data: int) -> None:
    get(program, Program)
    demand(
        False, Status.INVALID_OPERATION, "this function is not supported: OpenCL 3.0 deprecated it"
    )


# ---- building ------------------------------------------------------------------------------------


def options_at(address: int) -> str:
    """Returns the text of options, nothing for a null pointer."""
    return ctypes.string_at(address).decode(errors="replace") if address else ""


def _notified(notify: int, data: int) -> None:
    demand(notify or not data, Status.INVALID_VALUE, "user data requires a callback function")


def _compiler() -> None:
    """COMPILER_NOT_AVAILABLE, with what is to be installed, where there is no compiler."""
    missing = opencl_is_missing()
    demand(not missing, Status.COMPILER_NOT_AVAILABLE, missing)


@entry("clBuildProgram")
def build(handle: int, number: int, devices: int, options: int, notify: int, data: int) -> None:
    program = get(handle, Program)
    device_list(number, devices)
    _notified(notify, data)
    text = options_at(options)
    words = compiler_options(text, Status.INVALID_BUILD_OPTIONS)
    if program.has_source:
        _compiler()
    else:
        assert program.binary is not None
        other = program.binary.type != BinaryType.EXECUTABLE
        demand(
            not other,
            Status.INVALID_OPERATION,
            "the binary is a compiled object or library: link it with clLinkProgram",
        )
    binary = program.binary

    def make() -> Binary:
        if program.has_source:
            return program.compiled(words, BinaryType.EXECUTABLE)
        assert binary is not None
        return binary

    try:
        program.build(text, make, Status.BUILD_PROGRAM_FAILURE)
    finally:
        if notify:
            _NOTIFY(notify)(handle, data or None)


@entry("clCompileProgram")
def compile_program(
    handle: int,
    number: int,
    devices: int,
    options: int,
    header_count: int,
    headers: int,
    names: int,
    notify: int,
    data: int,
) -> None:
    program = get(handle, Program)
    device_list(number, devices)
    _notified(notify, data)
    same = bool(header_count) == bool(headers) == bool(names)
    demand(
        same, Status.INVALID_VALUE, "headers, their names and their count must be given together"
    )
    demand(program.has_source, Status.INVALID_OPERATION, "the program was not created from source")
    given = get_all(list_at(headers, header_count, Status.INVALID_VALUE), Program)
    called = list_at(names, header_count, Status.INVALID_VALUE)
    texts = {
        ctypes.string_at(name).decode(): header.source
        for name, header in zip(called, given, strict=True)
    }
    text = options_at(options)
    words = compiler_options(text, Status.INVALID_COMPILER_OPTIONS)
    _compiler()
    try:
        program.build(
            text,
            lambda: program.compiled(words, BinaryType.OBJECT, texts),
            Status.COMPILE_PROGRAM_FAILURE,
        )
    finally:
        if notify:
            _NOTIFY(notify)(handle, data or None)


@entry("clLinkProgram")
def link(
    context: int,
    number: int,
    devices: int,
    options: int,
    count: int,
    programs: int,
    notify: int,
    data: int,
    code: int,
) -> int:
    """Links; a program that does not link is given, too, for its log, with the code of that."""
    at = get(context, ClContext)
    device_list(number, devices)
    _notified(notify, data)
    demand(count and programs, Status.INVALID_VALUE, "there are no programs to link")
    given = get_all(sizes_at(programs, count), Program)
    text = options_at(options)
    words = link_options(text)
    parts = [program.binary for program in given if program.binary is not None]
    objects = len(parts) == count and all(
        part.type in (BinaryType.OBJECT, BinaryType.LIBRARY) for part in parts
    )
    demand(objects, Status.INVALID_OPERATION, "only compiled programs and libraries can be linked")
    type = BinaryType.LIBRARY if LIBRARY in words else BinaryType.EXECUTABLE
    made = Program(at)
    made.has_source = False
    try:
        made.build(text, lambda: link_binaries(parts, type), Status.LINK_PROGRAM_FAILURE)
    except ClError as error:
        report_refusal("clLinkProgram", error.status, error.explained)
        if code:
            ctypes.c_int32.from_address(code).value = error.status
    finally:
        if notify:
            _NOTIFY(notify)(made.handle, data or None)
    return made.handle
