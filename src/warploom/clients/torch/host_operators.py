"""Builds the functions that compute ATen's operators for CUDA tensors on the host.

PyTorch calls them below autograd, with the arguments of the operator's schema. What streams are
asked for is done at once (`clients.driver.streams`), so that memory has been written when it is
read here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, cast

import torch

from warploom.clients.driver.graphs.captures import capture_of, captures
from warploom.clients.driver.graphs.graphs import Kind, Task
from warploom.clients.driver.state import state
from warploom.clients.session import session
from warploom.clients.torch.host_tensors import (
    CPU,
    device_copy,
    host_view,
    scratch_output,
    tensors_in,
    write_output,
)
from warploom.clients.torch.philox import DRAWN
from warploom.clients.torch.random_state import host_generator, with_default_generator
from warploom.clients.torch.schemas import Schema

Function = Callable[..., Any]

COPIES = frozenset({"aten::copy_", "aten::_foreach_copy_"})
"""Operators of tensors on any devices."""

TAKES_HOST_INDICES = frozenset(
    {"aten::index.Tensor", "aten::index.Tensor_out", "aten::_index_put_impl_"}
)
"""Operators whose first tensor is on the device and whose indices can be on the host."""

_keys = torch._C.DispatchKey
_EXCLUDED = (
    torch._C.DispatchKeySet(_keys.AutogradCPU)
    | torch._C.DispatchKeySet(_keys.AutogradOther)
    | torch._C.DispatchKeySet(_keys.ADInplaceOrView)
    | torch._C.DispatchKeySet(_keys.AutocastCPU)
)
"""What the CPU's operator does not pass through: it was done for the CUDA tensors."""


@dataclass(slots=True)
class Call:
    """The arguments of one call: `device` are its CUDA tensors, `host` those of the CPU with
    dimensions, `outputs` pairs of an `out=` tensor and where the operator writes instead."""

    device: list[Any] = field(default_factory=list[Any])
    host: list[Any] = field(default_factory=list[Any])
    outputs: list[tuple[Any, Any]] = field(default_factory=list[tuple[Any, Any]])

    def converted(self, value: Any) -> Any:
        """Returns an argument as the CPU's operator takes it."""
        if isinstance(value, torch.Tensor):
            if value.is_cuda:
                self.device.append(value)
                return host_view(value)
            if value.dim():
                self.host.append(value)
            return value
        if isinstance(value, (list, tuple)):
            return [self.converted(one) for one in cast("Sequence[Any]", value)]
        return CPU if isinstance(value, torch.device) else value

    def output(self, value: Any) -> Any:
        """Returns what the CPU's operator writes into instead of an `out=` argument."""
        if isinstance(value, (list, tuple)):
            return [self.output(one) for one in cast("Sequence[Any]", value)]
        if not value.is_cuda:
            self.host.append(value)
            return value
        self.device.append(value)
        made = scratch_output(value)
        self.outputs.append((value, made))
        return made

    def given_back(self, result: Any) -> Any:
        """Returns a result of the CPU's operator on the device."""
        if isinstance(result, torch.Tensor):
            aliased = self._aliased(result)
            return device_copy(result) if aliased is None else aliased
        if isinstance(result, (list, tuple)):
            return [self.given_back(one) for one in cast("Sequence[Any]", result)]
        return result

    def _aliased(self, result: Any) -> Any:
        """Returns a view of the argument whose memory a result has; None for memory of its own."""
        if result.layout is not torch.strided:
            return None
        memory, address = state.device.memory, result.untyped_storage().data_ptr()
        if not memory.base <= address < memory.base + memory.capacity:
            return None
        for tensor in self.device:
            has_storage = tensor.layout is torch.strided
            if has_storage and tensor.untyped_storage().data_ptr() == address:
                return tensor.as_strided(result.size(), result.stride(), result.storage_offset())
        return None


def host_operator(name: str, operator: Any) -> Function:
    """Returns the function that computes an operator for CUDA tensors by its kernel for the CPU."""
    schema = Schema.of(name, operator)
    operator = DRAWN.get(name, operator)

    def compute(*args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        check_for_faults()
        with torch._C.DisableTorchFunction(), torch._C._ExcludeDispatchKeyGuard(_EXCLUDED):
            if captures:
                results = _compute_or_capture(schema, operator, args, kwargs)
            else:
                results = _compute(schema, operator, args, kwargs)
        session().host_work[name].add(perf_counter() - start)
        return results

    return compute


def _compute(schema: Schema, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the results of an operator for CUDA tensors."""
    call = Call()
    given = [call.converted(value) for value in args]
    _convert_numbers(schema, given)
    named = {
        key: call.output(value) if key in schema.outputs else call.converted(value)
        for key, value in kwargs.items()
    }
    if call.host and call.device:
        _check_devices(schema.name, call, args)
    result = _run(schema, operator, given, named)
    for output, written in call.outputs:
        write_output(output, written)
    return _results(schema, call, result, args, kwargs)


def _compute_or_capture(
    schema: Schema, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Returns the results of an operator, as a node of the graph that captures the current stream.

    Nothing is written until the graph is launched; results have the sizes of now.
    """
    stream: int = torch.cuda.current_stream().cuda_stream
    capture = capture_of(stream)
    if capture is None:
        return _compute(schema, operator, args, kwargs)
    written = [
        kwargs.get(place) if isinstance(place, str) else args[place]
        for place in schema.written
        if isinstance(place, str) or place < len(args)
    ]
    if not written and not schema.gives_tensors:
        raise RuntimeError(f"{schema.name}: operation not permitted when stream is capturing")
    before = [(tensor, host_view(tensor).clone()) for tensor in tensors_in(written)]
    results = _compute(schema, operator, args, kwargs)
    for tensor, elements in before:
        # A tensor that got its size from the operator had no elements before.
        if tensor.shape == elements.shape:
            host_view(tensor).copy_(elements)
    capture.add(stream, Task(Kind.HOST, CapturedCall.of(schema, operator, args, kwargs, results)))
    return results


@dataclass(frozen=True)
class CapturedCall:
    """A call of an operator in a graph, on the memory that its tensors had when it was captured:
    `outputs` are views of `out=` arguments, `results` of tensors that the operator gave. `kept` are
    the tensors whose memory would be freed otherwise: PyTorch's allocator retains the memory of a
    graph, and gives a part to another tensor of the graph only if the first is needed no more."""

    schema: Schema
    operator: Any
    args: list[Any]
    named: dict[str, Any]
    outputs: dict[str, Any]
    results: list[Any]
    kept: object

    @staticmethod
    def of(
        schema: Schema, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], results: Any
    ) -> CapturedCall:
        """Returns the call with these arguments, which has given `results`."""
        call = Call()
        given = [call.converted(value) for value in args]
        _convert_numbers(schema, given)
        named = {key: call.converted(value) for key, value in kwargs.items()}
        outputs = {key: value for key, value in named.items() if key in schema.outputs}
        own = tensors_in(results) if None in schema.returned else []
        retains = "PYTORCH_NO_CUDA_MEMORY_CACHING" not in os.environ
        kept = None if retains else (args, kwargs, results)
        views = [host_view(one) for one in own]
        return CapturedCall(schema, operator, given, named, outputs, views, kept)

    def __call__(self) -> None:
        """Computes the operator again."""
        with torch._C.DisableTorchFunction(), torch._C._ExcludeDispatchKeyGuard(_EXCLUDED):
            scratch = {key: _scratch(views) for key, views in self.outputs.items()}
            result = _run(self.schema, self.operator, self.args, {**self.named, **scratch})
            for key, views in self.outputs.items():
                _copy(views, scratch[key])
            if self.results:
                _copy(self.results, result)


def _scratch(views: Any) -> Any:
    """Returns copies of tensors, for an operator to write into and to resize."""
    if isinstance(views, list):
        return [_scratch(one) for one in cast("list[Any]", views)]
    return views.clone()


def _copy(targets: Any, sources: Any) -> None:
    """Copies elements of tensors to others, unless these are views of the same memory."""
    for target, source in zip(tensors_in(targets), tensors_in(sources), strict=True):
        if target.data_ptr() != source.data_ptr():
            target.copy_(source)


def check_for_faults() -> None:
    """Raises PyTorch's error for a device that a fault has made unusable."""
    if state.primary is not None and state.primary.error is not None:
        torch.cuda.synchronize()


def _convert_numbers(schema: Schema, args: list[Any]) -> None:
    """Turns numbers for tensors (`5` in `x % 5`) into tensors that give results the same type,
    where the operator does not take numbers."""
    if schema.takes_numbers:
        return
    for position in schema.tensors:
        if position < len(args) and isinstance(args[position], (int, float, complex)):
            tensor = next(one for one in args if isinstance(one, torch.Tensor))
            args[position] = _number_tensor(args[position], tensor)


def _number_tensor(number: complex, tensor: Any) -> Any:
    """Returns a number as a tensor without dimensions. Such a tensor does not change the type of
    a result whose other operand has dimensions and its kind of numbers: it is then as precise as
    the number."""
    promoted = torch.result_type(tensor, number)
    if promoted == tensor.dtype and tensor.dim():
        promoted = torch.float64 if promoted.is_floating_point else promoted
        promoted = torch.complex128 if promoted.is_complex else promoted
    return torch.scalar_tensor(number, dtype=promoted, device=CPU)


def _run(schema: Schema, operator: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Returns the results of the CPU's kernel, which draws from the device's generator."""
    if not schema.draws or schema.name in DRAWN:
        return operator(*args, **kwargs)
    if schema.takes_generator:
        return operator(*args, **{**kwargs, "generator": host_generator(kwargs.get("generator"))})
    return with_default_generator(lambda: operator(*args, **kwargs))


def _results(
    schema: Schema, call: Call, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Returns the results as the schema has them, on the device."""
    sources = schema.returned
    if not sources:
        return None
    if len(sources) == 1:
        return _result(sources[0], call, result, args, kwargs)
    return tuple(
        _result(source, call, one, args, kwargs)
        for source, one in zip(sources, result, strict=True)
    )


def _result(
    source: int | str | None, call: Call, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if source is None:
        return call.given_back(result)
    return kwargs[source] if isinstance(source, str) else args[source]


def _check_devices(name: str, call: Call, args: tuple[Any, ...]) -> None:
    """Raises the error of a GPU, which has no access to the host's tensors, where an operator has
    both kinds and does not copy. A CUDA tensor can have indices on the host."""
    takes_indices = name in TAKES_HOST_INDICES
    if name in COPIES or (takes_indices and args[0].is_cuda):
        return
    if takes_indices:
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
        )
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices,"
        f" {call.device[0].device} and {call.host[0].device}! (when computing {name})"
    )
