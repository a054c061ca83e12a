"""Builds the machine that exported pages run kernels with: one script, `machine.js`.

    python tools/build_machine.py FOLDER

The script has Python for browsers (Pyodide, from npm), msgspec for it (from PyPI), the reference
machine, and `web/runtime`, packed. Pages load it when a reader runs a kernel; as a script it also
loads where a page is opened as a file, from which nothing can be fetched. Needs Node with npm, and
pip.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from build_web import ROOT, WEB, node_and_npm

PYODIDE = "314.0.7"
PYTHON = "314"
PLATFORM = "pyemscripten_2026_0_wasm32"
PACKAGES = ("msgspec==0.23.0", "itanium-demangler==1.1")

MACHINE = "machine.js"
"""The name of the script."""

RUNTIME = WEB / "runtime"
CACHE = ROOT / "build" / "machine"

PARTS = (
    *("abi", "analysis", "asynchronous", "core", "cost", "detector", "devices", "frontends"),
    *("helpers", "host", "ir", "isa", "llvm", "machine", "observe", "program", "ptx", "report"),
    *("sanitize", "shapes", "simt", "texture", "timing", "ui"),
)
"""The packages of Warploom that the reference machine imports, if some of them for names alone."""

DATA = (".json", ".toml", ".csv")
"""The suffixes of data that the packages read; lessons and the archive of PTX are left out."""

PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")


def build_machine(folder: Path) -> Path:
    """Writes the script into a folder; returns its file."""
    files = {name: (_pyodide() / name).read_bytes() for name in PYODIDE_FILES}
    files["pyodide-lock.json"] = _lock()
    files["packages.zip"] = _packages()
    files["worker.js"] = (RUNTIME / "worker.js").read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / MACHINE
    text = base64.b64encode(gzip.compress(_joined(files), 9, mtime=0)).decode()
    target.write_text(f'globalThis.warploomMachine = "{text}";\n', "utf-8")
    return target


def _lock() -> bytes:
    """Returns Pyodide's list of packages without packages: none of its distribution is loaded."""
    lock = json.loads((_pyodide() / "pyodide-lock.json").read_text("utf-8"))
    return json.dumps({**lock, "packages": {}}).encode()


def _joined(files: dict[str, bytes]) -> bytes:
    """Returns the length of a list of names and sizes in four bytes, the list, and the files."""
    sizes = json.dumps([[name, len(data)] for name, data in files.items()]).encode()
    return b"".join((len(sizes).to_bytes(4, "little"), sizes, *files.values()))


def _pyodide() -> Path:
    """Returns the folder of Pyodide, which npm installs where it is not there yet."""
    folder = CACHE / "node_modules" / "pyodide"
    version = folder / "package.json"
    if not version.exists() or json.loads(version.read_text("utf-8"))["version"] != PYODIDE:
        npm, node_folder = node_and_npm()
        CACHE.mkdir(parents=True, exist_ok=True)
        paths = os.pathsep.join([str(node_folder), os.environ.get("PATH", "")])
        command = [*npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(CACHE)]
        subprocess.run(
            [*command, f"pyodide@{PYODIDE}"], env={**os.environ, "PATH": paths}, check=True
        )
    return folder


def _packages() -> bytes:
    """Returns an archive of all Python packages."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:  # gzip packs the whole
        for name, data in sorted(_members()):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return made.getvalue()


def _members() -> Iterator[tuple[str, bytes]]:
    """Yields the names and contents of the archive of packages."""
    for wheel in _wheels():
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if ".dist-info/" not in name and not name.endswith((".pyi", "/")):
                    yield name, archive.read(name)
    for file in RUNTIME.rglob("*.py"):
        yield file.relative_to(RUNTIME).as_posix(), file.read_bytes()
    package = ROOT / "src" / "warploom"
    yield "warploom/__init__.py", (package / "__init__.py").read_bytes()
    for part in PARTS:
        for file in (package / part).rglob("*"):
            if file.suffix == ".py" or (file.suffix in DATA and part != "ui"):
                yield f"warploom/{file.relative_to(package).as_posix()}", file.read_bytes()


def _wheels() -> Iterator[Path]:
    """Yields the wheels of PACKAGES, which pip downloads where they are not there yet."""
    folder = CACHE / "wheels"
    for package in PACKAGES:
        name = package.replace("-", "_").replace("==", "-")
        if not list(folder.glob(f"{name}-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            platform = ["--platform", PLATFORM, "--platform", "any", "--python-version", PYTHON]
            command += [*platform, "--only-binary=:all:", "--dest", str(folder), package]
            subprocess.run(command, check=True)
        yield from folder.glob(f"{name}-*.whl")


if __name__ == "__main__":
    written = build_machine(Path(sys.argv[1]))
    print(f"{written}: {written.stat().st_size / 1e6:.1f} MB")
