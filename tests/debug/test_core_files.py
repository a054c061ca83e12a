"""Core files: a launch that went wrong, opened elsewhere, and run backwards from there."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.cli.main import app
from warploom.cli.verbs import verbs
from warploom.core.errors import DeadlockError, KernelFault, WarploomError
from warploom.core.input_files import Archive
from warploom.host.core_files.format import read_head
from warploom.host.core_files.opening import open_core
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.texture.descriptors import TextureRow

ROWS = """
__constant__ float factor = 2.0f;

extern "C" __global__ void rows(const float **row, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = row[1][i];
    v *= factor;
    y[i + 4] = v;
}
"""
"""Threads 124 to 127 write behind y. Pointers lie in memory."""


def launched(file: Path, source: str, **device: object) -> None:
    """Launch the kernel of a source, `rows` or another with one buffer, and save what goes wrong;
    nothing of the device is left."""
    gpu = wl.Device(core=str(file), **device)  # type: ignore[arg-type]
    module = gpu.compile(source, options=["-G"], name="kernel.cu")
    kernel = module[module.kernels[0]]
    if source is ROWS:
        x = gpu.to_device(np.arange(128, dtype=np.float32), "x")
        row = gpu.to_device(np.array([0, x.address], np.uint64), "row")
        with pytest.raises(KernelFault):
            kernel[2, 64](row, gpu.zeros(128, np.float32, "y"))
    else:
        y = gpu.zeros(64, np.float32, "y")
        with suppress(DeadlockError):
            kernel[1, 64](y)
    gpu.memory.close()


@pytest.fixture(scope="module")
def fault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core file of a fault."""
    file = tmp_path_factory.mktemp("cores") / "kernel.wlcore"
    launched(file, ROWS)
    gc.collect()
    return file


def test_a_fault_is_opened_where_it_is_and_goes_back(
    fault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [str(fault), "--batch", "-c", "print v", "-c", "reverse-next", "-c", "reverse-next"]
    assert verbs(["debug", *args]) == ["debug-core", *args]
    app(["debug-core", *args, "-c", "print row[1][i]", "-c", "list"], standalone_mode=False)
    said = capsys.readouterr().out
    assert "Invalid __global__ write of size 4 bytes" in said
    assert "block (1,0,0), thread (60,0,0)" in said
    assert "$1 = 248" in said
    assert "8\t    v *= factor;" in said
    assert "$2 = 124" in said
    assert '   4\textern "C" __global__ void rows' in said  # there is no file kernel.cu


def test_its_addresses_have_to_be_free(fault: Path) -> None:
    archive = zipfile.ZipFile(fault)
    base = json.loads(archive.read("core.json"))["memory"]["base"]
    try:
        taken = DeviceMemory(1 << 20, base)
    except WarploomError:  # a test before has them still
        taken = None
    with pytest.raises(WarploomError, match="in use in this process"):
        open_core(fault)
    del taken


def changed(file: Path, to: Path, **head: object) -> Path:
    """A copy of a core file with other fields."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(to, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == "core.json":
                data = json.dumps({**json.loads(data), **head}).encode()
            new.writestr(entry, data)
    return to


def test_textures_of_version_1_have_the_first_components(tmp_path: Path) -> None:
    """Their rows have neither the channels of results nor their order; a texture of one component
    gives (x, 0, 0, 1)."""
    file, old = tmp_path / "new.wlcore", tmp_path / "old.wlcore"
    gpu = wl.Device("h100", core=str(file))
    kernel = gpu.compile(
        """extern "C" __global__ void k(cudaTextureObject_t t, float *out) {
            out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, 0.5f); out[1 << 28] = 1; }"""
    )["k"]
    texture = gpu.texture(np.arange(64, dtype=np.float32).reshape(8, 8))
    out = gpu.zeros(32, np.float32)
    with pytest.raises(KernelFault):
        kernel[1, 32](texture, out)
    memory = json.loads(zipfile.ZipFile(file).read("core.json"))["memory"]
    [row] = memory["textures"]
    assert row[TextureRow.selects] == 0x5440
    shorter = [row[: TextureRow.selects] + row[TextureRow.order + 1 :]]
    changed(file, old, version=1, memory={**memory, "textures": shorter})
    with zipfile.ZipFile(old) as archive:
        assert read_head(Archive(archive), old).memory.textures == (tuple(row),)


def test_what_is_not_known_is_refused(fault: Path, tmp_path: Path) -> None:
    to = tmp_path / "other.wlcore"
    with pytest.raises(
        WarploomError, match="a version 3 core file; this version of Warploom reads versions 1"
    ):
        open_core(changed(fault, to, version=3))
    with pytest.raises(WarploomError, match="unknown field `more`"):
        open_core(changed(fault, to, more=1))
    memory = json.loads(zipfile.ZipFile(fault).read("core.json"))["memory"]
    with pytest.raises(WarploomError, match="an allocation is outside device memory"):
        open_core(changed(fault, to, memory={**memory, "capacity": 256}))
    with pytest.raises(WarploomError, match="its memory is at the invalid address 0x10"):
        open_core(changed(fault, to, memory={**memory, "base": 16}))
    to.write_bytes(fault.read_bytes()[:-100])
    with pytest.raises(WarploomError, match="is not a Warploom core file"):
        open_core(to)
    with pytest.raises(WarploomError, match="No such file"):
        open_core(tmp_path / "none.wlcore")


WAITING = """
extern "C" __global__ void waiting(float *y)
{
    if (threadIdx.x < 40)
        __syncthreads();
    while (*(volatile float *)y == 0.0f)
        ;
    __syncthreads();
}
"""

RACING = """
extern "C" __global__ void racing(float *y)
{
    y[threadIdx.x] = threadIdx.x;
    __syncwarp();
    y[(threadIdx.x + 32) % 64] += 1.0f;
}
"""


def in_a_process(*arguments: str) -> str:
    """What a command prints, in a process whose addresses are free."""
    made = [sys.executable, "-m", "warploom.cli", *arguments]
    return subprocess.run(made, capture_output=True, text=True, check=False).stdout


def test_a_deadlock_is_opened_with_its_waiting_groups(tmp_path: Path) -> None:
    file = tmp_path / "kernel.wlcore"
    launched(file, WAITING, schedule="adversarial", seed=3)
    said = in_a_process("debug", str(file), "--batch", "-c", "info cuda threads")
    assert "kernel.cu:5  [at barrier" in said
    assert "kernel.cu:6" in said
    assert "position" not in said


def test_a_finding_is_opened_at_its_access(tmp_path: Path) -> None:
    file = tmp_path / "kernel.wlcore"
    launched(file, RACING, sanitize=("race",))
    said = in_a_process("debug", str(file), "--batch", "-c", "print threadIdx.x / 32")
    assert "Race reported between" in said
    assert "$1 = 1" in said  # warp 0 went first


@pytest.mark.nightly
def test_a_session_is_saved_and_opened_where_it_stood(tmp_path: Path) -> None:
    source, file = tmp_path / "kernel.cu", tmp_path / "here.wlcore"
    source.write_text(
        'extern "C" __global__ void twice(const float *x, float *y)\n{\n'
        "    int i = threadIdx.x;\n    float v = x[i];\n    y[i] = 2 * v;\n}\n",
        "utf-8",
    )
    shape = ("--block", "64", "--arg", "x:f32[64]=arange", "--arg", "y:f32[64]=zeros")
    saving = ("-c", "break 5 if i == 40", "-c", "run", "-c", f"gcore {file}")
    said = in_a_process("debug", str(source), *shape, "--batch", *saving)
    assert f"Saved corefile {file}" in said
    source.unlink()
    looking = ("-c", "cuda thread 40", "-c", "print v", "-c", "print y[31]", "-c", "print y[32]")
    said = in_a_process("debug", str(file), "--batch", *looking)
    assert "5\t    y[i] = 2 * v;" in said
    assert [f"${n} = {value}" in said for n, value in ((1, 40), (2, 62), (3, 0))] == [True] * 3
