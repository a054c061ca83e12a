"""Work-item functions, barriers and fences, and functions of sub-groups and work-groups (OpenCL C
3.0, 6.15.1, 6.15.8, 6.15.14, 6.15.18). A sub-group is a warp.

A launch has no offset, and as many dimensions as it has sizes other than 1; but one of the host
API, whose programs read both from the environment registers (`warploom.isa.special`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from warploom.frontends.opencl_library.elements import BITS

Lines = Iterator[str]

_SHUFFLED = ("int", "uint", "long", "ulong", "float", "double", "half")

PRELUDE = """
#define __cl_register(name, register) \\
    static __attribute__((always_inline)) uint name(void) \\
    { uint v; __asm__("mov.u32 %0, %%" register ";" : "=r"(v)); return v; }
#define __cl_pick(what) (d == 0 ? __nvvm_read_ptx_sreg_##what##_x() : \\
    d == 1 ? __nvvm_read_ptx_sreg_##what##_y() : d == 2 ? __nvvm_read_ptx_sreg_##what##_z()
static __attribute__((always_inline)) size_t __cl_tid(uint d) { return __cl_pick(tid) : 0); }
static __attribute__((always_inline)) size_t __cl_ntid(uint d) { return __cl_pick(ntid) : 1); }
static __attribute__((always_inline)) size_t __cl_ctaid(uint d) { return __cl_pick(ctaid) : 0); }
static __attribute__((always_inline)) size_t __cl_nctaid(uint d) { return __cl_pick(nctaid) : 1); }
static __attribute__((always_inline)) uint __cl_local_index(void)
    { return __cl_tid(0) + __cl_ntid(0) * (__cl_tid(1) + __cl_ntid(1) * __cl_tid(2)); }
static __attribute__((always_inline)) uint __cl_local_count(void)
    { return __cl_ntid(0) * __cl_ntid(1) * __cl_ntid(2); }
static __attribute__((always_inline)) size_t __cl_global_size(uint d)
    { return __cl_nctaid(d) * __cl_ntid(d); }
static __attribute__((always_inline)) uint __cl_sizes(void)
    { return __cl_global_size(2) > 1 ? 3 : __cl_global_size(1) > 1 ? 2 : 1; }
#ifdef __WARPLOOM_ND_RANGE
__cl_register(__cl_x, "envreg3") __cl_register(__cl_y, "envreg4")
__cl_register(__cl_z, "envreg5") __cl_register(__cl_dimensions, "envreg6")
static __attribute__((always_inline)) size_t __cl_offset(uint d)
    { return d == 0 ? __cl_x() : d == 1 ? __cl_y() : d == 2 ? __cl_z() : 0; }
static __attribute__((always_inline)) uint __cl_dims(void)
    { uint n = __cl_dimensions(); return n ? n : __cl_sizes(); }
#else
static __attribute__((always_inline)) size_t __cl_offset(uint d) { return 0; }
static __attribute__((always_inline)) uint __cl_dims(void) { return __cl_sizes(); }
#endif
static __attribute__((always_inline, convergent)) void __cl_barrier(void)
    { __asm__ volatile("bar.sync 0;" ::: "memory"); }
static __attribute__((always_inline)) void __cl_fence(int scope) {
    if (scope == memory_scope_work_group) __asm__ volatile("membar.cta;" ::: "memory");
    else if (scope == memory_scope_device) __asm__ volatile("membar.gl;" ::: "memory");
    else if (scope == memory_scope_all_svm_devices) __asm__ volatile("membar.sys;" ::: "memory");
}
__cl_register(__cl_lane, "laneid")
local char *__cl_shared(void);
static __attribute__((always_inline)) uint __cl_lanes(void)
    { uint rest = __cl_local_count() - (__cl_local_index() & ~31u); return rest < 32 ? rest : 32; }
static __attribute__((always_inline)) uint __cl_mask(void)
    { return 0xffffffffu >> (32 - __cl_lanes()); }
static __attribute__((always_inline, convergent)) uint __cl_shuffled(uint v, uint lane) {
    uint r;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;"
                     : "=r"(r) : "r"(v), "r"(lane), "r"(__cl_mask()));
    return r;
}
static __attribute__((always_inline, convergent)) ulong __cl_shuffled_long(ulong v, uint lane) {
    return (ulong)__cl_shuffled((uint)(v >> 32), lane) << 32 | __cl_shuffled((uint)v, lane);
}
static __attribute__((always_inline, convergent)) void __cl_warp_barrier(void)
    { __asm__ volatile("bar.warp.sync %0;" :: "r"(__cl_mask()) : "memory"); }
"""
"""Functions that built-in functions call, in the text before them."""

ONES: Mapping[str, str] = {
    "get_work_dim": "uint get_work_dim(void) { return __cl_dims(); }",
    "get_global_size": "size_t get_global_size(uint d) { return __cl_global_size(d); }",
    "get_global_id": (
        "size_t get_global_id(uint d) { return __cl_ctaid(d) * __cl_ntid(d) + __cl_tid(d)"
        " + __cl_offset(d); }"
    ),
    "get_local_size": "size_t get_local_size(uint d) { return __cl_ntid(d); }",
    "get_enqueued_local_size": "size_t get_enqueued_local_size(uint d) { return __cl_ntid(d); }",
    "get_local_id": "size_t get_local_id(uint d) { return __cl_tid(d); }",
    "get_num_groups": "size_t get_num_groups(uint d) { return __cl_nctaid(d); }",
    "get_group_id": "size_t get_group_id(uint d) { return __cl_ctaid(d); }",
    "get_global_offset": "size_t get_global_offset(uint d) { return __cl_offset(d); }",
    "get_local_linear_id": "size_t get_local_linear_id(void) { return __cl_local_index(); }",
    "get_global_linear_id": (
        "size_t __cl_place(uint d) { return __cl_ctaid(d) * __cl_ntid(d) + __cl_tid(d); }"
        "\n__cl_inline size_t get_global_linear_id(void) { return __cl_place(0)"
        " + __cl_global_size(0) * (__cl_place(1) + __cl_global_size(1) * __cl_place(2)); }"
    ),
    "barrier": "void barrier(cl_mem_fence_flags flags) { __cl_barrier(); }",
    "work_group_barrier": (
        "void work_group_barrier(cl_mem_fence_flags flags) { __cl_barrier(); }"
        "\n__cl_inline void work_group_barrier(cl_mem_fence_flags flags, memory_scope scope)"
        " { if (scope > memory_scope_work_group) __cl_fence(scope); __cl_barrier(); }"
    ),
    **{
        name: f"void {name}(cl_mem_fence_flags flags) {{ __cl_fence(memory_scope_work_group); }}"
        for name in ("mem_fence", "read_mem_fence", "write_mem_fence")
    },
    "atomic_work_item_fence": (
        "void atomic_work_item_fence(cl_mem_fence_flags flags, memory_order order,"
        " memory_scope scope) { if (order != memory_order_relaxed) __cl_fence(scope); }"
    ),
    "get_sub_group_size": "uint get_sub_group_size(void) { return __cl_lanes(); }",
    "get_max_sub_group_size": (
        "uint get_max_sub_group_size(void) { uint n = __cl_local_count(); return n < 32 ? n : 32; }"
    ),
    "get_num_sub_groups": (
        "uint get_num_sub_groups(void) { return (__cl_local_count() + 31) / 32; }"
    ),
    "get_enqueued_num_sub_groups": (
        "uint get_enqueued_num_sub_groups(void) { return (__cl_local_count() + 31) / 32; }"
    ),
    "get_sub_group_id": "uint get_sub_group_id(void) { return __cl_local_index() / 32; }",
    "get_sub_group_local_id": "uint get_sub_group_local_id(void) { return __cl_lane(); }",
    "sub_group_barrier": (
        "void sub_group_barrier(cl_mem_fence_flags flags) { __cl_warp_barrier(); }"
        "\n__cl_inline void sub_group_barrier(cl_mem_fence_flags flags, memory_scope scope)"
        " { if (scope > memory_scope_sub_group) __cl_fence(scope); __cl_warp_barrier(); }"
    ),
    "sub_group_all": "int sub_group_all(int x) { return __cl_vote(!x) == 0; }",
    "sub_group_any": "int sub_group_any(int x) { return __cl_vote(x) != 0; }",
    "work_group_all": "int work_group_all(int x) { return !__cl_popc(!x); }",
    "work_group_any": "int work_group_any(int x) { return __cl_popc(x) != 0; }",
}
"""Functions of one form, and what goes with it."""

VOTES = """
static __attribute__((always_inline, convergent)) uint __cl_vote(int x) {
    uint r;
    __asm__ volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
                     : "=r"(r) : "r"(x), "r"(__cl_mask()));
    return r;
}
static __attribute__((always_inline, convergent)) uint __cl_popc(int x) {
    uint r;
    __asm__ volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; barrier.sync 0;"
                     " bar.red.popc.u32 %0, 0, p; }" : "=r"(r) : "r"(x) : "memory");
    return r;
}
"""

_OPERATIONS = {"add": "x + y", "min": "y < x ? y : x", "max": "x < y ? y : x"}
_MOST = {"int": "INT_MAX", "uint": "UINT_MAX", "long": "LONG_MAX", "ulong": "ULONG_MAX"}
_LEAST = {"int": "INT_MIN", "uint": "0", "long": "LONG_MIN", "ulong": "0"}


def _identity(operation: str, element: str) -> str:
    if operation == "add":
        return "0"
    known = _MOST if operation == "min" else _LEAST
    return known.get(element, "INFINITY" if operation == "min" else "-INFINITY")


def _of_lane(element: str, value: str, lane: str) -> str:
    """Returns an expression for the value that another lane has."""
    if BITS[element] == 64:
        words = f"__cl_shuffled_long(__builtin_astype({value}, ulong), {lane})"
        return f"__builtin_astype({words}, {element})"
    if BITS[element] == 16:
        half = f"(ushort)__cl_shuffled(__builtin_astype({value}, ushort), {lane})"
        return f"__builtin_astype({half}, {element})"
    return f"__builtin_astype(__cl_shuffled(__builtin_astype({value}, uint), {lane}), {element})"


def _broadcast(name: str) -> Lines:
    for element in _SHUFFLED:
        value = _of_lane(element, "x", "lane")
        yield f"__cl_inline {element} {name}({element} x, uint lane) {{ return {value}; }}"


def _sub_group_sum(name: str) -> Lines:
    """Yields reductions and scans of a sub-group, in steps of doubled distance."""
    operation = name.rpartition("_")[2]
    expression = _OPERATIONS[operation]
    for element in _SHUFFLED:
        before = _of_lane(element, "x", "lane - n")
        step = (
            f"for (uint n = 1; n < 32; n *= 2) {{ {element} y = {before};"
            f" if (lane >= n) x = {expression}; }}"
        )
        scanned = f"uint lane = __cl_lane(); {step}"
        if "reduce" in name:
            body = f"{scanned} return {_of_lane(element, 'x', '__cl_lanes() - 1')};"
        elif "inclusive" in name:
            body = f"{scanned} return x;"
        else:
            body = (
                f"{scanned} {element} y = {_of_lane(element, 'x', 'lane - 1')};"
                f" return lane ? y : ({element}){_identity(operation, element)};"
            )
        yield f"__cl_inline {element} {name}({element} x) {{ {body} }}"


SHARED_FUNCTION = "__cl_shared"
SHARED = """
@__cl_group = internal addrspace(3) global [33 x i64] undef, align 8
define ptr addrspace(3) @__cl_shared() alwaysinline { ret ptr addrspace(3) @__cl_group }
"""
"""LLVM IR of local memory for functions of work-groups, which OpenCL C lets no function have."""


def _work_group_sum(name: str) -> Lines:
    """Yields reductions and scans of a work-group: those of its sub-groups, and of their totals."""
    operation = name.rpartition("_")[2]
    expression = _OPERATIONS[operation]
    part = name.replace("work_group_reduce", "work_group_scan_inclusive")
    part = part.replace("work_group", "sub_group")
    for element in _SHUFFLED:
        last = "(__cl_local_count() + 31) / 32" if "reduce" in name else "__cl_local_index() / 32"
        result = "x" if "reduce" in name else f"(y = own, {expression})"
        yield (
            f"__cl_inline {element} {name}({element} own) {{"
            f" local {element} *totals = (local {element} *){SHARED_FUNCTION}();"
            f" {element} total = sub_group_scan_inclusive_{operation}(own), y;"
            f" own = {part}(own);"
            " if (__cl_lane() == __cl_lanes() - 1) totals[__cl_local_index() / 32] = total;"
            f" __cl_barrier(); {element} x = ({element}){_identity(operation, element)};"
            f" for (uint n = 0; n < {last}; n++) {{ y = totals[n]; x = {expression}; }}"
            f" __cl_barrier(); return {result}; }}"
        )


def _work_group_broadcast(name: str) -> Lines:
    for element in _SHUFFLED:
        for count in (1, 2, 3):
            taken = ", ".join(f"size_t i{n}" for n in range(count))
            chosen = " && ".join(f"__cl_tid({n}) == i{n}" for n in range(count))
            yield (
                f"__cl_inline {element} {name}({element} x, {taken}) {{"
                f" local {element} *shared = (local {element} *){SHARED_FUNCTION}();"
                f" if ({chosen}) *shared = x; __cl_barrier(); x = *shared; __cl_barrier();"
                " return x; }"
            )


_GROUPS = ("reduce", "scan_exclusive", "scan_inclusive")

SUB_GROUP_FUNCTIONS: Mapping[str, Callable[[str], Lines]] = {
    "sub_group_broadcast": _broadcast,
    **{
        f"sub_group_{group}_{operation}": _sub_group_sum
        for group in _GROUPS
        for operation in _OPERATIONS
    },
    "work_group_broadcast": _work_group_broadcast,
    **{
        f"work_group_{group}_{operation}": _work_group_sum
        for group in _GROUPS
        for operation in _OPERATIONS
    },
}
NEEDS = {
    f"work_group_{group}_{operation}": (
        f"sub_group_scan_inclusive_{operation}",
        f"sub_group_scan_exclusive_{operation}",
    )
    for group in _GROUPS
    for operation in _OPERATIONS
}
