// The source beside the PTX that it became, with the line that each instruction comes from.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { cpp } from "@codemirror/lang-cpp";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, RangeSet, StateEffect, StateField, type Extension, type Range } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, gutter, keymap, lineNumbers, type DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { byInstruction, together, type LineCount } from "../counters.ts";
import { tip } from "../help.ts";
import type { Model } from "../model.ts";
import type { Code as InstructionCode } from "../schema.ts";
import { kernels, listed } from "../kernels.ts";
import { ownMachine, took } from "../machine.ts";
import { editing, editingPtx, model as first, moment, other, otherTime, otherWarp, policy, ptxOpen, refusal, request, runs, show, wrapped } from "../state.ts";

/** The editors' keys; Ctrl Enter runs what was edited (`keys.ts`), and inserts no line. */
const editingKeymap = defaultKeymap.filter(({ key }) => key !== "Mod-Enter");

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.modifier], class: "h-key" },
  { tag: [tags.typeName, tags.standard(tags.typeName)], class: "h-type" },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], class: "h-note" },
  { tag: [tags.processingInstruction, tags.macroName, tags.meta], class: "h-meta" },
]);

/** Which lines are marked, and how. */
interface Marks {
  readonly lines: readonly (readonly [number, string])[];
}

/** The source line under the pointer, in either pane. */
const pointed = signal(0);

/** Shows the line under the pointer: which line of the source it is, or comes from. */
function pointing(sourceLine: (line: number) => number): Extension {
  return EditorView.domEventHandlers({
    mousemove: (event, view) => {
      const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
      pointed.value = at === null ? 0 : sourceLine(view.state.doc.lineAt(at).number);
    },
    mouseleave: () => {
      pointed.value = 0;
    },
  });
}

const setMarks = StateEffect.define<Marks>();
const setCounts = StateEffect.define<readonly (LineCount | undefined)[]>();

const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, change) {
    let found = value.map(change.changes);
    for (const one of change.effects) {
      if (!one.is(setMarks)) continue;
      const made: Range<Decoration>[] = [];
      for (const [line, name] of one.value.lines) {
        if (line < 1 || line > change.state.doc.lines) continue;
        made.push(Decoration.line({ class: name }).range(change.state.doc.line(line).from));
      }
      found = Decoration.set(made, true);
    }
    return found;
  },
  provide: (field) => EditorView.decorations.from(field),
});

class Count extends GutterMarker {
  readonly text: string;
  readonly bad: boolean;
  constructor(text: string, bad = false) {
    super();
    this.text = text;
    this.bad = bad;
  }
  override eq(made: Count): boolean {
    return this.text === made.text && this.bad === made.bad;
  }
  override toDOM(): Node {
    const cell = document.createElement("span");
    cell.textContent = this.text;
    if (this.bad) cell.className = "bad";
    return cell;
  }
}

const counts = StateField.define<readonly (LineCount | undefined)[]>({
  create: () => [],
  update(value, change) {
    for (const one of change.effects) if (one.is(setCounts)) return one.value;
    return change.docChanged ? [] : value;
  },
});

/** A column of counts in the margin. */
function column(name: string, cell: (row: LineCount) => Count | null): Extension {
  return gutter({
    class: `count c-${name}`,
    side: "after",
    markers: (view) => {
      const found: Range<Count>[] = [];
      view.state.field(counts).forEach((row, index) => {
        const made = row && row.executions > 0 && index < view.state.doc.lines ? cell(row) : null;
        if (made) found.push(made.range(view.state.doc.line(index + 1).from));
      });
      return RangeSet.of(found);
    },
    initialSpacer: () => new Count("8888"),
  });
}

/** A column of the source lines that instructions come from, each beside the first of its
 * instructions. */
function sourceLines(code: readonly InstructionCode[]): Extension {
  return gutter({
    class: "count c-source",
    lineMarker: (view, line) => {
      const index = view.state.doc.lineAt(line.from).number - 1;
      const its = sourceLineOf(code[index]);
      return its && its !== sourceLineOf(code[index - 1]) ? new Count(`line ${its}`) : null;
    },
    initialSpacer: () => new Count("line 888"),
  });
}

/** The line of the shown source that an instruction comes from; 0 if it comes from another file. */
function sourceLineOf(code: InstructionCode | undefined): number {
  return code?.file === 0 && !code.hidden ? code.line : 0;
}

function compact(value: number): string {
  if (value < 10000) return String(value);
  return value < 1e6 ? `${Math.round(value / 1000)}k` : `${(value / 1e6).toFixed(1)}M`;
}

const margin = [
  column("executions", (row) => new Count(compact(row.executions))),
  column("lanes", (row) => new Count(row.average.toFixed(row.average === 32 ? 0 : 1), row.average < 16)),
  column("sectors", (row) => ratio(row.sectors, row.requests, 4)),
  column("passes", (row) => ratio(row.passes, row.sharedRequests, 1)),
];

/** A count per request, marked where it is more than `best`; null without requests. */
function ratio(count: number, requests: number, best: number): Count | null {
  return requests ? new Count((count / requests).toFixed(1).replace(/\.0$/, ""), count / requests > best) : null;
}

export function Code({ model }: { model: Model }) {
  return (
    <section class={`view code${ptxOpen.value || editingPtx.value ? " with-ptx" : ""}`} aria-label="Code">
      {policy.value === null ? <Source model={model} /> : <PolicyEditor />}
      {editingPtx.value ? <PtxEditor model={model} /> : ptxOpen.value && <Ptx model={model} />}
    </section>
  );
}

function Heading({ name, children }: { name: string; children?: preact.ComponentChildren }) {
  return (
    <header>
      <h2>{name}</h2>
      {children}
      <span class="columns" aria-hidden="true">
        <abbr {...tip("executions")}>runs</abbr>
        <abbr {...tip("lanes")}>lanes</abbr>
        <abbr {...tip("sectors")}>sect.</abbr>
        <abbr {...tip("passes")}>pass.</abbr>
      </span>
    </header>
  );
}

/** The instructions of each line of the shown source. */
function linesOf(model: Model, file: number): Map<number, number[]> {
  const found = new Map<number, number[]>();
  model.trace.code.forEach((code, index) => {
    if (code.file === file && !code.hidden) found.set(code.line, [...(found.get(code.line) ?? []), index]);
  });
  return found;
}

function Source({ model }: { model: Model }) {
  const place = useRef<HTMLDivElement>(null);
  const source = model.trace.sources[0];
  const text = source?.text ?? model.trace.ptx;
  const name = source ? source.name.split("/").pop()! : "PTX text";
  useEffect(() => {
    const readOnly = new Compartment();
    const wrapping = new Compartment();
    const lines = source ? linesOf(model, 0) : new Map(model.trace.code.map((code, i) => [code.ptx_line, [i]]));
    const view = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: editing.peek() ? (request.peek()?.source ?? text) : text,
        extensions: [
          lineNumbers(),
          ...margin,
          marks,
          counts,
          history(),
          bracketMatching(),
          source?.name.endsWith(".py") ? python() : cpp(),
          syntaxHighlighting(highlight),
          readOnly.of(lock(editing.peek())),
          wrapping.of(wrapped.peek() ? EditorView.lineWrapping : []),
          keymap.of([...editingKeymap, ...historyKeymap, indentWithTab]),
          editableNumbers(text),
          EditorView.contentAttributes.of({ "aria-label": "Source of the kernel", tabindex: "0" }),
          pointing((line) => (lines.has(line) ? line : 0)),
          EditorView.updateListener.of((change) => {
            const asked = request.peek();
            if (change.docChanged && asked) request.value = { ...asked, source: change.state.doc.toString() };
          }),
        ],
      }),
    });
    view.dispatch({ effects: setCounts.of(lineCounts(model, lines)) });
    const stops = [
      effect(() => view.dispatch({ effects: readOnly.reconfigure(lock(editing.value)) })),
      effect(() => view.dispatch({ effects: wrapping.reconfigure(wrapped.value ? EditorView.lineWrapping : []) })),
      effect(() => {
        const now = first.value === model ? moment.value : null;
        const here = now && now.step >= 0 ? lineOf(model, now.step) : 0;
        const made: [number, string][] = [...lines.keys()].map((line) => [line, "has-code"]);
        const beside = besideLine(model);
        if (pointed.value) made.push([pointed.value, "is-linked"]);
        if (beside) made.push([beside, "is-beside"]);
        if (here) made.push([here, "is-now"]);
        if (!editingPtx.value) for (const wrong of refusal.value?.errors ?? []) made.push([wrong.line, "is-wrong"]);
        view.dispatch({ effects: setMarks.of({ lines: made }) });
      }),
      effect(() => {
        const now = first.value === model ? moment.value : null;
        const here = now && now.step >= 0 ? lineOf(model, now.step) : 0;
        if (here && !editing.peek()) reveal(view, here);
      }),
    ];
    return () => {
      stops.forEach((stop) => stop());
      view.destroy();
    };
  }, [model]);
  return (
    <div class="pane source">
      <Heading name={name}>
        <button class="small" aria-pressed={ptxOpen.value} onClick={() => (ptxOpen.value = !ptxOpen.value)} title="Show or hide the PTX (X)">
          PTX
        </button>
        <button class="small" aria-pressed={wrapped.value} onClick={() => (wrapped.value = !wrapped.value)} title="Wrap long lines">
          Wrap
        </button>
      </Heading>
      {!editing.value && <Took />}
      {editing.value && ownMachine.value && <p class="note">{changeable(text) ? "Change an underlined number, and run the kernel. This page has no compiler for other changes." : "This page has no compiler. To change the kernel, edit its PTX (press PTX, then Edit PTX)."}</p>}
      <div class="editor" ref={place} />
    </div>
  );
}

/** How long the machine in the page took. */
function Took() {
  const times = took.value;
  if (!times) return null;
  const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`;
  return (
    <p class="note took" role="status" title="The reference machine ran in Python, compiled to WebAssembly">
      The kernel ran in this page in <b>{seconds(times.run)}</b>
      {times.start !== null && <>, after a startup time of <b>{seconds(times.start)}</b></>}.
    </p>
  );
}

/** Whether a page without a compiler can change a number of a source. */
function changeable(text: string): boolean {
  return (kernels.value?.numbersOf(text).length ?? 0) > 0;
}

/** Marks the numbers that a page without a compiler can change, with their values as a tip. */
function editableNumbers(text: string): Extension {
  const found = (kernels.peek()?.numbersOf(text) ?? []).map((number) => {
    const attributes = { class: "changeable", title: `can be changed to ${listed(number)}` };
    return Decoration.mark({ attributes, inclusive: true }).range(number.start, number.end);
  });
  return StateField.define<DecorationSet>({
    create: () => Decoration.set(found, true),
    update: (value, change) => value.map(change.changes),
    provide: (field) => EditorView.decorations.from(field),
  });
}

function lock(open: boolean): Extension {
  return [EditorState.readOnly.of(!open), EditorView.editable.of(open)];
}

/** The line of a step. Effects that ask for it run before the views have another launch's model, so
 * they leave moments of another one out. */
function lineOf(model: Model, step: number): number {
  const code = model.code(step);
  return model.trace.sources.length === 0 ? code.ptx_line : code.file === 0 ? code.line : 0;
}

/** The line that the run beside this one is at. */
function besideLine(model: Model): number {
  const its = other.value;
  if (!its || first.value !== model) return 0;
  const now = its.moment(otherWarp.value, otherTime.value);
  return now.step >= 0 ? lineOf(its, now.step) : 0;
}

function lineCounts(model: Model, lines: Map<number, number[]>): (LineCount | undefined)[] {
  const rows = byInstruction(model);
  const found: (LineCount | undefined)[] = [];
  for (const [line, instructions] of lines) found[line - 1] = together(instructions.map((i) => rows[i]!));
  return found;
}

/** Bring a line into sight, page by page: where the text stands depends on the line alone, so that
    a step shows the same picture from wherever one comes to it. */
function reveal(view: EditorView, line: number): void {
  if (line > view.state.doc.lines) return;
  const { top } = view.lineBlockAt(view.state.doc.line(line).from);
  const height = view.scrollDOM.clientHeight;
  const page = height * 0.6;
  view.scrollDOM.scrollTop = Math.max(0, Math.floor(top / page) * page - height * 0.2);
}

function Ptx({ model }: { model: Model }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const lines = linesOf(model, 0);
    const blocks = new Set(model.trace.basic_blocks.map((block) => block.start));
    const fixed: [number, string][] = [];
    let [line, other] = [0, false];
    model.trace.code.forEach((code, index) => {
      const its = sourceLineOf(code);
      if (its !== line) [line, other] = [its, !other];
      if (its) fixed.push([index + 1, other ? "has-code other" : "has-code"]);
      if (blocks.has(index) && index > 0) fixed.push([index + 1, "is-block"]);
    });
    const view = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: model.trace.code.map((code) => code.text).join("\n"),
        extensions: [
          lineNumbers({ formatNumber: (n) => String(n - 1) }),
          sourceLines(model.trace.code),
          ...margin,
          marks,
          counts,
          lock(false),
          EditorView.contentAttributes.of({ "aria-label": "PTX of the kernel", tabindex: "0" }),
          pointing((line) => model.trace.code[line - 1]?.line ?? 0),
        ],
      }),
    });
    const rows = byInstruction(model).map((row) => together([row]));
    view.dispatch({ effects: setCounts.of(rows) });
    const follow = effect(() => {
      const now = first.value === model ? moment.value : null;
      if (now && now.step >= 0) reveal(view, model.instruction[now.step]! + 1);
    });
    const stop = effect(() => {
      const now = first.value === model ? moment.value : null;
      const here = now && now.step >= 0 ? model.instruction[now.step]! + 1 : 0;
      const made = [...fixed];
      for (const index of lines.get(pointed.value) ?? []) made.push([index + 1, "is-linked"]);
      if (here) made.push([here, "is-now"]);
      view.dispatch({ effects: setMarks.of({ lines: made }) });
    });
    return () => {
      follow();
      stop();
      view.destroy();
    };
  }, [model]);
  return (
    <div class="pane ptx">
      <Heading name="PTX">
        {runs.value && (
          <button class="small" onClick={() => (editingPtx.value = true)} title="Edit the PTX and run it">
            Edit PTX
          </button>
        )}
      </Heading>
      <div class="editor" ref={place} />
    </div>
  );
}

/** The PTX as a text to edit, which runs in the place of what a compiler makes of the source. */
function PtxEditor({ model }: { model: Model }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    editing.value = false;
    const view = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: request.peek()?.ptx || model.trace.ptx,
        extensions: [
          lineNumbers(),
          marks,
          history(),
          keymap.of([...editingKeymap, ...historyKeymap]),
          EditorView.contentAttributes.of({ "aria-label": "PTX to edit", tabindex: "0" }),
          EditorView.updateListener.of((change) => {
            const asked = request.peek();
            if (change.docChanged && asked) request.value = { ...asked, ptx: change.state.doc.toString() };
          }),
        ],
      }),
    });
    view.focus();
    const stop = effect(() => {
      const lines = (refusal.value?.errors ?? []).map((wrong): [number, string] => [wrong.line, "is-wrong"]);
      view.dispatch({ effects: setMarks.of({ lines }) });
      if (lines[0] && lines[0][0] <= view.state.doc.lines) view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(lines[0][0]).from, { y: "center" }) });
    });
    return () => {
      stop();
      view.destroy();
    };
  }, [model]);
  return (
    <div class="pane ptx">
      <header>
        <h2>PTX</h2>
        <button class="small" onClick={backToSource} title="Discard the edited PTX and run the source again">
          Back to the source
        </button>
      </header>
      <div class="editor" ref={place} />
    </div>
  );
}

/** The design of a task, in the place of the source. */
function PolicyEditor() {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: policy.peek() ?? "",
        extensions: [
          lineNumbers(),
          marks,
          history(),
          bracketMatching(),
          indentUnit.of("    "),
          python(),
          syntaxHighlighting(highlight),
          EditorView.lineWrapping,
          keymap.of([...editingKeymap, ...historyKeymap, indentWithTab]),
          EditorView.contentAttributes.of({ "aria-label": "Design in Python", tabindex: "0" }),
          EditorView.updateListener.of((change) => {
            if (change.docChanged) policy.value = change.state.doc.toString();
          }),
        ],
      }),
    });
    const stop = effect(() => {
      const lines = (refusal.value?.errors ?? []).map((wrong): [number, string] => [wrong.line, "is-wrong"]);
      view.dispatch({ effects: setMarks.of({ lines }) });
    });
    return () => {
      stop();
      view.destroy();
    };
  }, []);
  return (
    <div class="pane source policy">
      <header>
        <h2>design.py</h2>
      </header>
      <div class="editor" ref={place} />
    </div>
  );
}

/** Leaves the edited PTX: the next run is of the source, or of the PTX that the page began with. */
function backToSource(): void {
  const asked = request.value;
  editingPtx.value = false;
  if (asked) request.value = { ...asked, ptx: show.value?.request?.ptx ?? "" };
}
