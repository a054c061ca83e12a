// Python in a worker of the page. The first message has the files of Pyodide and of Warploom, each
// later one a launch; a kernel that does not end is ended with the worker.

const PLACE = "https://warploom.invalid/"; // no request goes there: `fetch` answers from the files

let answer = null;

onmessage = async ({ data }) => {
  try {
    if (data.files) answer = await start(data.files);
    else run(data.request);
  } catch (error) {
    postMessage({ failed: String(error) });
  }
};

async function start(files) {
  const named = (url) => files[String(url).slice(PLACE.length)];
  self.fetch = async (url) => {
    const type = String(url).endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return named(url) ? new Response(named(url), { headers: { "Content-Type": type } }) : new Response("", { status: 404 });
  };
  const module = (name) => import(URL.createObjectURL(new Blob([files[name]], { type: "text/javascript" })));
  const { loadPyodide } = await module("pyodide.mjs");
  const createPyodideModule = (await module("pyodide.asm.mjs")).default;
  const lockFileContents = JSON.parse(new TextDecoder().decode(files["pyodide-lock.json"]));
  const python = await loadPyodide({ indexURL: PLACE, createPyodideModule, lockFileContents, env: { HOME: "/home", WARPLOOM_CACHE_DIR: "/tmp/cache" } });
  python.unpackArchive(files["packages.zip"], "zip", { extractDir: "/packages" });
  python.runPython("import sys; sys.path.insert(0, '/packages'); import machine");
  postMessage({ ready: true });
  return python.runPython("machine.answer");
}

function run(request) {
  const began = performance.now();
  const made = answer(request);
  const bytes = made.toJs();
  made.destroy();
  postMessage({ bytes, milliseconds: performance.now() - began }, [bytes.buffer]);
}
