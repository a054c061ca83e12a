// Drives the server with Microsoft's own client for tests of debug adapters.
"use strict";

const assert = require("node:assert");
const { DebugClient } = require(`${process.argv[2]}/@vscode/debugadapter-testsupport`);

async function main(port, program, line) {
  const client = new DebugClient("node", "unused", "warploom");
  await client.start(port);
  const configuration = {
    program,
    grid: 2,
    block: 64,
    args: [128, 2.0, "x:f32[128]=arange", "y:f32[128]=zeros"],
  };
  await Promise.all([
    client.waitForEvent("initialized").then(async () => {
      await client.setBreakpointsRequest({
        source: { path: program },
        breakpoints: [{ line, condition: "i == 65" }],
      });
      await client.configurationDoneRequest();
    }),
    client.launch(configuration),
    client.assertStoppedLocation("breakpoint", { path: program, line }),
  ]);
  const { body } = await client.threadsRequest();
  const threadId = body.threads[0].id;
  const stack = await client.stackTraceRequest({ threadId });
  const frameId = stack.body.stackFrames[0].id;
  const scopes = await client.scopesRequest({ frameId });
  assert.strictEqual(scopes.body.scopes[0].name, "Locals");
  const value = await client.evaluateRequest({ expression: "i", frameId });
  assert.strictEqual(value.body.result, "65");
  await Promise.all([client.stepInRequest({ threadId }), client.waitForEvent("stopped")]);
  const inner = await client.stackTraceRequest({ threadId });
  assert.strictEqual(inner.body.stackFrames[0].name, "halved");
  await Promise.all([client.stepBackRequest({ threadId }), client.waitForEvent("stopped")]);
  await Promise.all([client.reverseContinueRequest({ threadId }), client.waitForEvent("stopped")]);
  await Promise.all([client.continueRequest({ threadId }), client.waitForEvent("stopped")]);
  await client.disconnectRequest();
  await client.stop();
  console.log("conforms");
}

main(Number(process.argv[3]), process.argv[4], Number(process.argv[5])).catch((error) => {
  console.error(error);
  process.exit(1);
});
