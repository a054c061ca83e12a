// Starts `warploom debug --dap` for each session, and shows the warps of the block in focus.
"use strict";

const vscode = require("vscode");

class Adapters {
  createDebugAdapterDescriptor(session) {
    const command = session.configuration.command || "warploom";
    return new vscode.DebugAdapterExecutable(command, ["debug", "--dap"]);
  }
}

/** Fills in what a configuration leaves out; an empty one debugs the file that is open. */
class Configurations {
  resolveDebugConfiguration(_folder, configuration) {
    const editor = vscode.window.activeTextEditor;
    if (!configuration.type && editor) {
      Object.assign(configuration, {
        type: "warploom",
        request: "launch",
        name: "Debug a kernel",
        program: editor.document.fileName,
      });
    }
    return configuration;
  }

  resolveDebugConfigurationWithSubstitutedVariables(_folder, configuration) {
    const { command: _, ...rest } = configuration;
    return { ...rest, ...(configuration.command ? { command: configuration.command } : {}) };
  }
}

/** The warps of the block in focus: a row each, and below it where its lanes are. */
class Warps {
  constructor() {
    this.changed = new vscode.EventEmitter();
    this.onDidChangeTreeData = this.changed.event;
  }

  async getChildren(element) {
    const session = vscode.debug.activeDebugSession;
    if (!session || session.type !== "warploom") return [];
    if (element) return element.groups;
    try {
      const answer = await session.customRequest("warploom/warps");
      return answer.warps;
    } catch {
      return []; // no kernel runs
    }
  }

  getTreeItem(element) {
    if (element.groups) {
      const open = vscode.TreeItemCollapsibleState.Expanded;
      return new vscode.TreeItem(`warp ${element.warp}`, open);
    }
    const line = element.line ? `line ${element.line}` : "";
    const item = new vscode.TreeItem(`${element.lanes} ${element.status}`);
    item.description = line;
    return item;
  }
}

function inSession(request) {
  return async () => {
    const session = vscode.debug.activeDebugSession;
    if (!session || session.type !== "warploom") return;
    try {
      await request(session);
    } catch (error) {
      vscode.window.showErrorMessage(String(error.message || error));
    }
  };
}

function activate(context) {
  const warps = new Warps();
  const asked = (prompt, name) => async (session, request) => {
    const text = await vscode.window.showInputBox({ prompt });
    if (text) await session.customRequest(request, { [name]: text });
  };
  const wrote = asked("The last write of what? Such as x[5]", "expression");
  const goto = asked("A position, in warp instructions since the begin of the launch", "position");
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("warploom", new Adapters()),
    vscode.debug.registerDebugConfigurationProvider("warploom", new Configurations()),
    vscode.window.registerTreeDataProvider("warploom.warps", warps),
    vscode.debug.onDidChangeActiveStackItem(() => warps.changed.fire()),
    vscode.commands.registerCommand("warploom.whoWrote", inSession((s) => wrote(s, "warploom/whoWrote"))),
    vscode.commands.registerCommand("warploom.goto", inSession((s) => goto(s, "warploom/goto"))),
    vscode.commands.registerCommand(
      "warploom.whereDiverged",
      inSession((s) => s.customRequest("warploom/whereDiverged")),
    ),
    vscode.commands.registerCommand(
      "warploom.focus",
      inSession(async (session) => {
        const text = await vscode.window.showInputBox({ prompt: "Block and thread, such as 1 33" });
        const [block, thread] = (text || "").trim().split(/\s+/).map(Number);
        if (Number.isInteger(block) && Number.isInteger(thread)) {
          await session.customRequest("warploom/focus", { block, thread });
        }
      }),
    ),
  );
}

module.exports = { activate, deactivate() {} };
