"""The extension for VS Code; npm downloads what packages it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

EXTENSION = Path(__file__).parents[2] / "editors" / "vscode"
KERNEL = Path(__file__).with_name("blocks.cu")

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm"),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the extension with what it needs to be tested and packaged."""
    folder = tmp_path_factory.mktemp("vscode")
    shutil.copytree(
        EXTENSION, folder, ignore=shutil.ignore_patterns("node_modules"), dirs_exist_ok=True
    )
    subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=folder, check=True)
    return folder


def test_the_extension_is_packaged(installed: Path) -> None:
    subprocess.run(
        ["npx", "vsce", "package", "--no-dependencies", "--allow-missing-repository"],
        cwd=installed,
        check=True,
    )
    [made] = installed.glob("*.vsix")
    with zipfile.ZipFile(made) as package:
        manifest = json.loads(package.read("extension/package.json"))
        assert manifest["contributes"]["debuggers"][0]["type"] == "warploom"
        assert "extension/src/extension.js" in package.namelist()


def test_the_extension_starts_the_adapter(installed: Path) -> None:
    """Node loads the extension against a stand-in for the editor, and activates it."""
    script = """
    const registered = {};
    const nothing = new Proxy(function () {}, { get: () => nothing, apply: () => nothing });
    const vscode = {
      debug: {
        registerDebugAdapterDescriptorFactory: (type, made) => { registered[type] = made; },
        registerDebugConfigurationProvider: () => ({}),
        onDidChangeActiveStackItem: () => ({}),
      },
      window: { registerTreeDataProvider: () => ({}) },
      commands: { registerCommand: (name) => { registered[name] = true; } },
      EventEmitter: class { constructor() { this.event = nothing; } fire() {} },
      DebugAdapterExecutable: class { constructor(c, a) { this.command = c; this.args = a; } },
    };
    const Module = require("module");
    const load = Module._load;
    Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
    require("./src/extension.js").activate({ subscriptions: [] });
    const made = registered.warploom.createDebugAdapterDescriptor({ configuration: {} });
    console.log(made.command, made.args.join(" "), Object.keys(registered).length);
    """
    done = subprocess.run(
        ["node", "-e", script], cwd=installed, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["warploom", "debug", "--dap", "5"]


def test_a_session_of_the_client_of_vs_code(installed: Path) -> None:
    """Microsoft's client for tests drives the adapter (editors/vscode/test)."""
    command = Path(sys.executable).with_name("warploom")
    environment = {**os.environ, "WARPLOOM": str(command), "KERNEL": str(KERNEL)}
    done = subprocess.run(
        ["npm", "test"], cwd=installed, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "8 passing" in done.stdout
