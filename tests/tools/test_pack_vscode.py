"""The .vsix of the extension: an archive by the Open Packaging Conventions (ECMA-376, part 2), with
the manifest that VS Code reads ("Publishing Extensions", and vsce's format 2.0.0)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import pack_vscode
import pytest

ROOT = Path(__file__).parents[2]
VSX = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"
TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    return ZipFile(pack_vscode.pack(tmp_path_factory.mktemp("vsix")))


def test_the_extension_is_complete(archive: ZipFile) -> None:
    """The program and the files that it requires are there, tests are not."""
    package = json.loads(archive.read("extension/package.json"))
    main = "extension/" + package["main"].removeprefix("./")
    assert main in archive.namelist()
    assert archive.testzip() is None
    assert {"extension/README.md", "extension/LICENSE.txt"} < set(archive.namelist())
    assert not [name for name in archive.namelist() if "test" in name or "node_modules" in name]


def test_the_manifest_names_what_is_in_the_archive(archive: ZipFile) -> None:
    package = json.loads(archive.read("extension/package.json"))
    manifest = ElementTree.fromstring(archive.read("extension.vsixmanifest"))
    identity = manifest.find(f"{VSX}Metadata/{VSX}Identity")
    assert identity is not None
    assert identity.get("Id") == package["name"]
    assert identity.get("Publisher") == package["publisher"]
    assert identity.get("Version") == package["version"]
    assets = [one.get("Path") for one in manifest.iter(f"{VSX}Asset")]
    assert "extension/package.json" in assets
    assert set(assets) <= set(archive.namelist())


def test_each_file_has_a_media_type(archive: ZipFile) -> None:
    types = ElementTree.fromstring(archive.read("[Content_Types].xml"))
    known = {one.get("Extension") for one in types.iter(f"{TYPES}Default")}
    names = [name for name in archive.namelist() if name != "[Content_Types].xml"]
    assert {Path(name).suffix for name in names} <= known


def test_equal_sources_give_equal_bytes(tmp_path: Path) -> None:
    first, second = (pack_vscode.pack(tmp_path / name).read_bytes() for name in "ab")
    assert first == second


def test_the_extension_has_the_version_of_the_package() -> None:
    package = json.loads((pack_vscode.SOURCE / "package.json").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert package["version"] == project["version"]
