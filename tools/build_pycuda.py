"""Builds PyCUDA, which has no wheels, into the environment of the Python that runs this.

    python tools/build_pycuda.py

With the headers of NVIDIA's wheels (cuda.h, and cudaProfiler.h of nvidia-cuda-profiler-api) and
against the stand-in libcuda. cuRAND's part is left out, as nothing stands in for that library.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from build_driver import DESTINATION, nvidia_headers

REQUIREMENT = "pycuda>=2025.1"


def main() -> int:
    """Build it, unless it is there; without a C++ compiler say so and leave it out."""
    if importlib.util.find_spec("pycuda"):
        return 0
    if not (shutil.which("g++") or shutil.which("c++")):
        print("warning: there is no C++ compiler, so PyCUDA is not built", file=sys.stderr)
        return 0
    pip = [sys.executable, "-m", "pip", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*pip, "download", "--no-deps", "--no-binary", "pycuda", "-d", folder, REQUIREMENT],
            check=True,
        )
        [archive] = Path(folder).glob("pycuda-*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        source = archive.with_name(archive.name.removesuffix(".tar.gz"))
        configure = [
            *(sys.executable, "configure.py", "--no-cuda-enable-curand"),
            *(f"--cuda-inc-dir={nvidia_headers()}", f"--cudadrv-lib-dir={DESTINATION}"),
        ]
        subprocess.run(configure, cwd=source, check=True)
        subprocess.run([*pip, "install", str(source)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
