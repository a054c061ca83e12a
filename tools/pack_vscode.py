"""Packs the extension for VS Code (editors/vscode) into a .vsix file, without Node.

    python tools/pack_vscode.py [FOLDER]      writes FOLDER/warploom-VERSION.vsix (default: dist)

Install it with `code --install-extension FILE`, or by *Install from VSIX* in the list of
extensions. A .vsix is a ZIP archive by the Open Packaging Conventions: the extension's files in
`extension/`, a manifest, and the media types of the files. Equal sources give equal bytes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

SOURCE = Path(__file__).parent.parent / "editors" / "vscode"

FILES = ("package.json", "README.md", "LICENSE")
"""The files of the extension beside those in `src`."""

MEDIA = {
    ".json": "application/json",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".js": "application/javascript",
    ".vsixmanifest": "text/xml",
}

ASSETS = (
    ("Microsoft.VisualStudio.Code.Manifest", "extension/package.json"),
    ("Microsoft.VisualStudio.Services.Content.Details", "extension/README.md"),
    ("Microsoft.VisualStudio.Services.Content.License", "extension/LICENSE.txt"),
)

MADE = (1980, 1, 1, 0, 0, 0)
"""The time of all files: the first that a ZIP archive can have."""


def content_types() -> str:
    """Returns the part of the package that has the media type of each suffix."""
    types = "".join(
        f'<Default Extension="{suffix}" ContentType="{media}"/>' for suffix, media in MEDIA.items()
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/'
        f'package/2006/content-types">{types}</Types>\n'
    )


def manifest(package: dict[str, Any]) -> str:
    """Returns the manifest of the extension that a package.json describes."""
    identity = " ".join(
        f"{name}={quoteattr(package[key])}"
        for name, key in (("Id", "name"), ("Version", "version"), ("Publisher", "publisher"))
    )
    assets = "".join(
        f'<Asset Type="{kind}" Path="{path}" Addressable="true"/>' for kind, path in ASSETS
    )
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" {identity}/>
<DisplayName>{escape(package["displayName"])}</DisplayName>
<Description xml:space="preserve">{escape(package["description"])}</Description>
<Categories>{escape(",".join(package["categories"]))}</Categories>
<Properties>
<Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(package["engines"]["vscode"])}/>
</Properties>
<License>extension/LICENSE.txt</License>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>{assets}</Assets>
</PackageManifest>
"""


def pack(folder: Path) -> Path:
    """Writes the extension into a folder. Returns the file."""
    package = json.loads((SOURCE / "package.json").read_text("utf-8"))
    parts = {
        "extension.vsixmanifest": manifest(package).encode(),
        "[Content_Types].xml": content_types().encode(),
    }
    sources = [SOURCE / name for name in FILES] + sorted((SOURCE / "src").rglob("*.js"))
    for path in sources:
        name = path.relative_to(SOURCE).as_posix()
        # Each file needs a suffix, by which it has a media type.
        parts[f"extension/{name}" + ("" if path.suffix else ".txt")] = path.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{package['name']}-{package['version']}.vsix"
    with ZipFile(made, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(ZipInfo(name, MADE), content, ZIP_DEFLATED)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Packs the extension for VS Code.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("dist"))
    print(pack(parser.parse_args().folder))


if __name__ == "__main__":
    main()
