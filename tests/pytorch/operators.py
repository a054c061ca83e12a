"""Compares every operator of PyTorch's own database of tests on the software GPU with the CPU.

    warploom run --report none tests/pytorch/operators.py [--only NAME,...] [--json FILE]

`op_db` has each operator with inputs for its tests. An operator agrees if each of its samples (of
--dtype, float32) gives what it gives on the CPU, gradients too (`torch.testing.assert_close`; where
it draws random numbers, the sizes and types). Operators run in workers, so that one that ends the
process is one failure. Exit status 1 where fewer than --share of them agree.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import traceback
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode


def to_cuda(value):
    """Returns a tensor on the device with the same sizes, strides and need of a gradient."""
    if not isinstance(value, torch.Tensor):
        return torch.device("cuda") if isinstance(value, torch.device) else value
    if value.layout is torch.strided and value.untyped_storage().nbytes():
        whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        place = value.size(), value.stride(), value.storage_offset()
        made = whole.to("cuda").as_strided(*place)
        made = made.conj() if value.is_conj() else made
    else:
        made = value.detach().to("cuda")
    return made.detach().requires_grad_(value.requires_grad)


def tensors_of(value):
    """Returns the tensors in a structure of lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for one in value for tensor in tensors_of(one)]


def run(op, sample, with_gradients):
    """Returns what an operator gives for a sample, and its gradients."""
    result = op(sample.input, *sample.args, **sample.kwargs)
    if sample.output_process_fn_grad is not None:
        result = sample.output_process_fn_grad(result)
    gradients = []
    if with_gradients:
        inputs = [sample.input, *sample.args, *sample.kwargs.values()]
        wanted = [t for t in tensors_of(inputs) if t.requires_grad]
        outputs = [t for t in tensors_of(result) if t.requires_grad]
        if wanted and outputs:
            total = sum(t.abs().sum() if t.is_complex() else t.sum() for t in outputs)
            gradients = torch.autograd.grad(total, wanted, allow_unused=True)
    return result, gradients


def error_of(op, sample, with_gradients):
    """Returns what a sample raises, or None."""
    try:
        return run(op, sample, with_gradients), None
    except Exception as error:
        return None, error


def check(op, samples, dtype):
    """Raises where the device gives something else than the CPU for one of the samples."""
    with_gradients = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    drawn = op.sample_inputs("cpu", dtype, requires_grad=with_gradients)
    for sample in itertools.islice(drawn, samples):
        moved = sample.transform(to_cuda)
        expected, wrong = error_of(op, sample, with_gradients)
        if wrong is not None:
            continue
        with DrawnNumbers() as drawn_numbers:  # gradients of complex numbers are others in it
            error_of(op, sample, with_gradients)
        if "device" in moved.kwargs:
            moved.kwargs["device"] = "cuda"
        found = run(op, moved, with_gradients)
        if drawn_numbers.any or "empty" in op.full_name:
            assert kinds(found) == kinds(expected), f"{kinds(found)} for {kinds(expected)}"
        else:
            compare(expected, found)


class DrawnNumbers(TorchDispatchMode):
    """Finds out whether operators draw random numbers."""

    any = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.any |= torch.Tag.nondeterministic_seeded in function.tags
        return function(*args, **(kwargs or {}))


def kinds(result):
    """Returns the sizes and types of all tensors."""
    return [(tensor.shape, tensor.dtype) for tensor in tensors_of(result)]


def compare(expected, found):
    """Raises AssertionError where two structures of tensors differ."""
    assert kinds(found) == kinds(expected), f"{kinds(found)} for {kinds(expected)}"
    for one, other in zip(tensors_of(found), tensors_of(expected), strict=True):
        torch.testing.assert_close(one.cpu(), other.cpu(), rtol=1e-4, atol=1e-4, equal_nan=True)


def work(names, samples, dtype):
    """Prints a line of JSON for each operator."""
    warnings.simplefilter("ignore")
    for op in op_db:
        if op.full_name not in names:
            continue
        torch.manual_seed(0)
        print(json.dumps({"begins": op.full_name}), flush=True)
        reason = ""
        try:
            check(op, samples, dtype)
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            reason = (
                f"{type(error).__name__}: {error}"[:600] + f" [{where.filename}:{where.lineno}]"
            )
        variant = op.variant_test_name
        print(json.dumps({"name": op.full_name, "variant": variant, "reason": reason}), flush=True)
        if "CUDA error" in reason:
            return  # the device stays unusable in this process


def run_workers(names, given):
    """Yields the outcome of each operator, from as many workers as are needed."""
    left = list(names)
    while left:
        options = [f"--samples={given.samples}", f"--dtype={given.dtype}"]
        command = [sys.executable, __file__, "--worker", ",".join(left), *options]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as worker:
            current = None
            for line in worker.stdout:
                if not line.startswith("{"):
                    continue
                output = json.loads(line)
                if "begins" in output:
                    current = output["begins"]
                    continue
                yield output
                current = None
                done = output["name"]
            if current is not None:
                yield {"name": current, "variant": "", "reason": f"ended with {worker.wait()}"}
                done = current
        left = left[left.index(done) + 1 :] if done in left else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="one operator of so many")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--share", type=float, default=0.97)
    parser.add_argument("--json", default="")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--worker", default="")
    given = parser.parse_args()
    dtype = getattr(torch, given.dtype)
    if given.worker:
        work(set(given.worker.split(",")), given.samples, dtype)
        return 0
    names = [op.full_name for op in op_db if dtype in op.dtypes]
    names = list(dict.fromkeys(names))[:: given.every]
    if given.only:
        names = [name for name in names if name in given.only.split(",")]
    outcomes = []
    for output in run_workers(names, given):
        outcomes.append(output)
        if output["reason"]:
            print(f"{output['name']} {output['variant']}: {output['reason']}", flush=True)
    failed = {output["name"] for output in outcomes if output["reason"]}
    print(f"{len(names) - len(failed)} of {len(names)} operators agree with the CPU")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(outcomes, file, indent=1)
    return 0 if len(failed) <= (1 - given.share) * len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
