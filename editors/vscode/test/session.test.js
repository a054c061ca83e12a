// Drives the adapter by Microsoft's client for tests of debug adapters, as VS Code would.
// WARPLOOM is the program to start, KERNEL the file of tests/debug/blocks.cu.
"use strict";

const assert = require("assert");
const { spawn } = require("child_process");
const fs = require("fs");
const path = require("path");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const KERNEL = process.env.KERNEL;
const SOURCE = { path: KERNEL };
const LAUNCH = {
  program: KERNEL,
  grid: 2,
  block: 64,
  args: ["128", "2.0", "x:f32[128]=arange", "y:f32[128]=zeros"],
};
const X = [...Array(128).keys()];
/** What `sum` is in a thread: four neighbours in its block of 64. */
const sum = (i) => [0, 1, 2, 3].reduce((s, j) => s + X[(i & 64) + ((i + j) & 63)], 0);

function lineOf(text) {
  return 1 + fs.readFileSync(KERNEL, "utf8").split("\n").findIndex((line) => line.includes(text));
}

describe("the adapter", function () {
  this.timeout(60_000);
  let client;

  beforeEach(() => {
    client = new DebugClient("sh", path.join(__dirname, "adapter.sh"), "warploom");
    client.defaultTimeout = 50_000;
    return client.start();
  });
  afterEach(() => client.stop());

  /** Launches, has `configure` set breakpoints, and returns the first `stopped` event. */
  async function launched(configure = async () => {}, configuration = LAUNCH) {
    const stopped = client.waitForEvent("stopped");
    const initialized = client.waitForEvent("initialized");
    await Promise.all([
      client.launch(configuration),
      initialized.then(configure).then(() => client.configurationDoneRequest()),
    ]);
    return (await stopped).body;
  }

  /** Does a request that has the launch go, and returns the `stopped` event behind it. */
  async function goes(request, threadId, more = {}) {
    const stopped = client.waitForEvent("stopped");
    await client.customRequest(request, { threadId, ...more });
    return (await stopped).body;
  }

  async function top(stopped) {
    const answer = await client.stackTraceRequest({ threadId: stopped.threadId });
    return answer.body.stackFrames[0];
  }

  async function value(expression, frameId) {
    return (await client.evaluateRequest({ expression, frameId })).body.result;
  }

  it("hits a breakpoint of a source", () =>
    // No kernel is loaded when the breakpoint is set: an event says later that it is verified.
    client.hitBreakpoint(LAUNCH, { path: KERNEL, line: lineOf("y[i] = halved"), verified: false }));

  it("has conditions, and counts hits", async () => {
    const at = (more) => client.setBreakpointsRequest({ source: SOURCE, breakpoints: [more] });
    const line = lineOf("sum += tile");
    let stopped = await launched(() => at({ line, condition: "i == 65", hitCondition: "3" }));
    assert.equal(stopped.reason, "breakpoint");
    assert.equal(await value("j", (await top(stopped)).id), "2");
    assert.equal(await value("i"), "65");
    const answer = await at({ line: lineOf("y[i] = sum"), condition: "i % 32 == 2" });
    assert.equal(answer.body.breakpoints[0].verified, true);
    stopped = await goes("continue", stopped.threadId);
    assert.equal(Number(await value("i")) % 32, 2);
  });

  it("stops at functions and at writes, and goes back to them", async () => {
    let stopped = await launched(() =>
      client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "halved" }] }),
    );
    assert.equal(stopped.reason, "breakpoint");
    const frame = await top(stopped);
    assert.equal(frame.name, "halved");
    await client.setFunctionBreakpointsRequest({ breakpoints: [] });
    const info = await client.dataBreakpointInfoRequest({ name: "y[70]" });
    assert.ok(info.body.accessTypes.includes("write"));
    await client.setDataBreakpointsRequest({ breakpoints: [{ dataId: info.body.dataId }] });
    stopped = await goes("continue", stopped.threadId);
    assert.equal(stopped.reason, "data breakpoint");
    assert.equal(Number(await value("y[70]")), sum(70) + 2 * 70);
    stopped = await goes("reverseContinue", stopped.threadId);
    assert.equal(await value("y[70]"), "0");
  });

  it("steps into a function, out of it, and back", async () => {
    const line = lineOf("y[i] = halved");
    const breakpoints = [{ line, condition: "i == 65" }];
    let stopped = await launched(() => client.setBreakpointsRequest({ source: SOURCE, breakpoints }));
    stopped = await goes("stepIn", stopped.threadId);
    assert.equal(stopped.reason, "step");
    assert.equal((await top(stopped)).name, "halved");
    stopped = await goes("next", stopped.threadId);
    assert.equal((await top(stopped)).line, lineOf("return half"));
    assert.equal(Number(await value("half", (await top(stopped)).id)), sum(65) / 2);
    stopped = await goes("stepBack", stopped.threadId);
    assert.equal((await top(stopped)).line, lineOf("float half"));
    assert.equal((await goes("stepBack", stopped.threadId)).reason, "step");
    assert.equal((await top(stopped)).line, line);
    stopped = await goes("stepIn", stopped.threadId);
    stopped = await goes("stepOut", stopped.threadId);
    assert.equal((await top(stopped)).name, "blocks");
    stopped = await goes("next", stopped.threadId, { granularity: "instruction" });
    assert.equal(stopped.reason, "step");
  });

  it("shows threads, scopes and variables, and changes them", async () => {
    const breakpoints = [{ line: lineOf("float sum"), condition: "i == 5" }];
    const stopped = await launched(() => client.setBreakpointsRequest({ source: SOURCE, breakpoints }));
    const threads = (await client.threadsRequest()).body.threads;
    assert.ok(threads.some((thread) => thread.id === stopped.threadId));
    const frame = await top(stopped);
    const { scopes } = (await client.scopesRequest({ frameId: frame.id })).body;
    const variables = async (reference) =>
      (await client.variablesRequest({ variablesReference: reference })).body.variables;
    const locals = scopes.find((scope) => scope.name === "Locals").variablesReference;
    const pair = (await variables(locals)).find((each) => each.name === "pair");
    assert.equal(pair.value, "{first = 2, second = {5, 10}}");
    const changed = await client.setVariableRequest({
      variablesReference: pair.variablesReference,
      name: "first",
      value: "7.5",
    });
    assert.equal(changed.body.value, "7.5");
    assert.equal(await value("pair.first", frame.id), "7.5");
  });

  it("shows code and memory", async () => {
    const line = lineOf("y[i] = sum");
    const stopped = await launched(() =>
      client.setBreakpointsRequest({ source: SOURCE, breakpoints: [{ line }] }),
    );
    const frame = await top(stopped);
    const code = await client.disassembleRequest({
      memoryReference: frame.instructionPointerReference,
      instructionOffset: -1,
      instructionCount: 4,
    });
    assert.equal(code.body.instructions.length, 4);
    assert.equal(code.body.instructions[1].address, frame.instructionPointerReference);
    const memoryReference = (await client.evaluateRequest({ expression: "&x[3]" })).body.memoryReference;
    const read = await client.customRequest("readMemory", { memoryReference, count: 8 });
    const bytes = Buffer.from(read.body.data, "base64");
    assert.deepEqual([bytes.readFloatLE(0), bytes.readFloatLE(4)], [3, 4]);
  });

  it("stops before a fault, and ends", async () => {
    const args = [...LAUNCH.args.slice(0, 3), "y:f32[100]=zeros"];
    const stopped = await launched(undefined, { ...LAUNCH, args });
    assert.equal(stopped.reason, "exception");
    const info = await client.exceptionInfoRequest({ threadId: stopped.threadId });
    assert.equal(info.body.exceptionId, "MemoryFault");
    const terminated = client.waitForEvent("terminated");
    await client.continueRequest({ threadId: stopped.threadId });
    await terminated;
  });

  it("serves a port", async () => {
    const adapter = spawn(process.env.WARPLOOM || "warploom", ["debug", "--port", "0"]);
    const said = await new Promise((resolve) => adapter.stdout.once("data", resolve));
    await client.stop();
    await client.start(Number(/port (\d+)/.exec(String(said))[1]));
    const stopped = await launched(undefined, { ...LAUNCH, stopOnEntry: true });
    assert.equal(stopped.reason, "entry");
    const gone = new Promise((resolve) => adapter.once("exit", resolve));
    await client.disconnectRequest();
    await gone;
    await client.start(); // for the hook behind the test
  });
});
