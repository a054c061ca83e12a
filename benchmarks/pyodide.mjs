// Runs `without_llvm.py --parse` in Pyodide: node benchmarks/pyodide.mjs FOLDER
// FOLDER has node_modules/pyodide (`npm install pyodide`) and a wheel of msgspec for it (`pip download
// --no-deps --platform pyemscripten_2026_0_wasm32 --python-version 314 --only-binary=:all: msgspec`).

import { readdirSync } from "node:fs";
import { resolve } from "node:path";

const folder = resolve(process.argv[2] ?? ".");
const { loadPyodide } = await import(`${folder}/node_modules/pyodide/pyodide.mjs`);
const began = performance.now();
const python = await loadPyodide();
console.log(`Pyodide ${python.version} loaded in ${((performance.now() - began) / 1000).toFixed(2)} s`);
for (const [place, of] of [["/repository", resolve(import.meta.dirname, "..")], ["/wheels", folder]]) {
  python.FS.mkdirTree(place);
  python.mountNodeFS(place, of);
}
const wheel = readdirSync(folder).find((name) => name.startsWith("msgspec"));
await python.runPythonAsync(`
import sys, runpy, zipfile
zipfile.ZipFile("/wheels/${wheel}").extractall("/packages")
sys.path[:0] = ["/packages", "/repository/src"]
sys.argv = ["without_llvm.py", "--parse"]
runpy.run_path("/repository/benchmarks/without_llvm.py", run_name="__main__")
`);
