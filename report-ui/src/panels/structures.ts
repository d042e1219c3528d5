// Data structures: how large, how much used, and page by page by whom.
import { fill, h } from "../dom";
import { base, bytes, count, many, percent, place, whole } from "../format";
import { columnSums, unpack, valueAt, type Cells } from "../grid";
import { Heat, nth, type Band } from "../heat";
import type { Line, ObjectKind, PageMap, Structure, Subject } from "../model";
import { legend } from "../legend";
import { processNames, ranges, structureOf, threadName } from "../names";
import { painter, skyline } from "../paint";
import { quoted, quotedLine } from "../quote";
import { table } from "../table";
import { ramp, single } from "../theme";
import { choice, intro, later, picture, section } from "./section";

const KINDS: Record<ObjectKind, string> = {
  static: "static",
  "thread-local": "thread-local",
  heap: "heap",
  mmap: "mapping",
  stack: "stack",
  shared: "shared memory",
};

export interface StructuresPanel {
  element: HTMLElement;
  /// Shows the structure with this number in the profile.
  show(object: number): void;
}

export function structures(subject: Subject): StructuresPanel {
  const { rows, folded_from, rest, accesses } = subject.structures;
  if (!rows.length) {
    const element = section("structures", "Data structures", h("p", { class: "missing" }, "No data structure was seen."));
    return { element, show: () => {} };
  }
  const main = rows.slice(0, folded_from);
  const folded = rows.slice(folded_from);
  const detail = h("div", { class: "structure-detail", id: "structure" });
  const choose = (structure: Structure) => {
    list.mark(structure);
    fill(detail, ...details(structure, subject));
  };
  const list = overview(subject, main.length ? main : rows, "Data structures", choose);
  choose(rows[0]);
  const element = section("structures", "Data structures",
    picture("How large, how much used",
      intro("One row is a variable or a place that allocates, in however many processes, or the stacks of many threads, with its size and how often it was read and written; choose one to see its pages below.",
        "A structure with many accesses that is only read can be copied to every node, and one that first touch puts in the wrong place shows a low figure in the last column."),
      list,
      folded.length
        ? later("folded", `${many(folded.length, "structure")} with less than 0.01 % of the accesses and fetches each`,
            () => [overview(subject, folded, "Little used data structures")])
        : null,
      rest.structures > 0
        ? h("p", { class: "soft" }, `${many(rest.structures, "more structure")} not listed: ${bytes(rest.size)}, ${percent(rest.accesses / Math.max(1, accesses))} of the accesses.`)
        : null),
    detail);
  const show = (object: number) => {
    const row = structureOf(subject, object);
    if (row) choose(row);
  };
  return { element, show };
}

function overview(subject: Subject, rows: Structure[], caption: string, choose?: (s: Structure) => void) {
  const several = subject.processes.length > 1;
  const most = Math.max(1, ...rows.map((s) => s.reads + s.writes));
  const largest = Math.max(1, ...rows.map((s) => s.size));
  const fetched = subject.run.fetches !== null;
  return table<Structure>({
    caption,
    rows,
    shown: 12,
    choose,
    columns: [
      { title: "Name", value: (s) => s.name, cell: (s) => h("span", { class: "object", title: s.type_name || s.name }, s.name) },
      { title: "Kind", minor: true, value: (s) => KINDS[s.kind] ?? s.kind },
      { title: "Type", only: "csv", value: (s) => s.type_name },
      ...(several ? [{ title: "Process", minor: true, value: (s: Structure) => processNames(subject, s.processes) }] : []),
      { title: "Where", minor: true, value: (s) => (s.site ? `${s.site.file}:${s.site.line}` : ""), cell: (s) => s.site && h("span", { class: "object site", title: s.site.file }, place(s.site.file, s.site.line)) },
      { title: "Size", number: true, minor: true, value: (s) => s.size, cell: (s) => bar(bytes(s.size), [[s.size / largest, "size"]], "") },
      { title: "Reads", only: "csv", value: (s) => s.reads },
      { title: "Writes", only: "csv", value: (s) => s.writes },
      { title: "Reads + writes", only: "page", head: "reads-writes", hint: "Reads, then writes", number: true, value: (s) => s.reads + s.writes,
        cell: (s) => bar(`${s.estimated ? "~" : ""}${count(s.reads)} + ${count(s.writes)}`, [[s.reads / most, "reads"], [s.writes / most, "writes"]], `${whole(s.reads)} reads, ${whole(s.writes)} writes`) },
      { title: "Share", hint: "Of all accesses", number: true, value: (s) => s.share, cell: (s) => percent(s.share) },
      ...(fetched ? [
        { title: "Fetches", only: "csv" as const, value: (s: Structure) => s.fetches },
        { title: "Fetched", hint: "Of all fetches, the times that a thread brings a line into a private cache: an estimate", number: true, value: (s: Structure) => s.fetch_share, cell: (s: Structure) => percent(s.fetch_share) },
      ] : []),
      { title: "Exclusive", hint: "E_app of its pages: share of accesses by each page's main node", number: true, value: (s) => s.exclusivity, cell: (s) => percent(s.exclusivity, 0) },
      { title: "First touch right", head: "narrow", hint: "Acc_app of its pages: share of accesses to pages that first touch puts on the right node", number: true, value: (s) => s.accuracy, cell: (s) => percent(s.accuracy, 0) },
    ],
  });
}

function bar(text: string, parts: [number, string][], title: string): HTMLElement {
  const bars = parts.map(([share, kind]) => {
    const part = h("i", { class: kind });
    part.style.width = `${(share * 100).toFixed(2)}%`;
    return part;
  });
  return h("span", { class: "barred", title }, text, h("span", { class: "bar", "aria-hidden": "true" }, bars));
}

function details(structure: Structure, subject: Subject): HTMLElement[] {
  const { site, map } = structure;
  const facts = [
    subject.processes.length > 1 ? processNames(subject, structure.processes) : null,
    structure.type_name,
    structure.blocks,
    structure.fetch_share !== null ? `${count(structure.fetches)} fetches` : null,
    map && map.unused ? `${whole(map.unused)} pages never used, left out` : null,
  ];
  const title = h("h3", { class: "structure-title" }, h("code", {}, structure.name));
  const about = h("p", { class: "facts" }, facts.filter(Boolean).map((f) => h("span", {}, f)),
    site ? h("span", { title: site.file }, `${place(site.file, site.line)}${site.function ? ` in ${site.function}` : ""}`) : null);
  // A name like fft_plan+0x1b (libfft.so) is all that a program without debug information leaves.
  const called = structure.kind === "heap" || structure.kind === "mmap" || (structure.kind === "shared" && structure.name.includes("+0x"));
  const bare = !site && called
    ? h("p", { class: "soft" }, "No debug information names it: this is the call that allocates it, so many bytes into the function. Where debug symbols are installed, it has a line.")
    : null;
  const drawn = h("div", { class: "page-map" });
  const body = map
    ? [intro("Each column is a page and each row a thread: on top is who touched the page first, in the middle how often all threads used it, below how often each did; dashed lines mark the mean over pages and, beside the bars, over threads.",
        "The system puts a page where it was first touched: if the two patterns differ, threads work on far memory, and a page with strong colour in all rows has no right place."), drawn]
    : [h("p", { class: "missing" }, "Its pages are not drawn, for it is hardly used.")];
  if (map) void pictures(structure, map, subject).then((picture) => fill(drawn, picture));
  return [h("div", { class: "figure" }, title, about, site && quoted(subject, site.file, site.line), bare, body,
    users(structure, subject), firstTouch(structure, subject), lines(structure, subject))];
}

/// The threads that can use it: those of its processes, and whoever else does.
function concerned(structure: Structure, map: PageMap, subject: Subject): number[] {
  const all = subject.threads.map((_, at) => at);
  if (structure.kind === "shared") return all;
  const users = new Set(map.threads.map(([thread]) => thread));
  const processes = new Set(structure.processes);
  return all.filter((at) => processes.has(subject.threads[at].process) || users.has(at));
}

/// The same table with a row for each of `threads` only, which have all its cells.
function rowsOf(cells: Cells, threads: number[]): Cells {
  const place = new Uint32Array(cells.rows);
  threads.forEach((thread, at) => (place[thread] = at));
  return { ...cells, rows: threads.length, row: cells.row.map((thread) => place[thread]) };
}

async function pictures(structure: Structure, map: PageMap, subject: Subject): Promise<HTMLElement> {
  const [uses, touches] = await Promise.all([unpack(map.density), unpack(map.first_touch)]);
  const shown = [...new Set([...concerned(structure, map, subject), ...touches.row])].sort((a, b) => a - b);
  const [density, touch] = [rowsOf(uses, shown), rowsOf(touches, shown)];
  const { merged } = density;
  const threads = shown.length;
  const sums = columnSums(density);
  const most = sums.reduce((a, b) => Math.max(a, b), 0);
  let linear = false;
  const row = threads <= 16 ? 16 : threads <= 64 ? 8 : Math.max(0.5, 512 / threads);
  const touchRow = threads <= 16 ? 8 : threads <= 64 ? 4 : Math.max(0.25, 200 / threads);
  const label = (row: number) => threadName(subject, shown[row]);
  const totals = new Map(map.threads.map(([thread, reads, writes]) => [thread, reads + writes]));
  const means = shown.map((thread) => (totals.get(thread) ?? 0) / map.pages);
  const largest = Math.max(...means, 1e-9);
  const active = shown.filter((t) => subject.threads[t].reads + subject.threads[t].writes > 0).length;
  const mean = means.reduce((a, b) => a + b, 0) / Math.max(1, active);
  const touched = painter(touch);
  const bands: Band[] = [
    { title: "First touch", rows: threads, height: touchRow * threads, colours: () => single("warm"), label,
      paint: (view, out) => touched({ ...view, x0: view.x0 * merged, x1: view.x1 * merged }, out) },
    { title: "Accesses of all threads together", rows: 1, height: 56, fine: true, paint: skyline(sums, most), level: sums.reduce((a, b) => a + b, 0) / sums.length / Math.max(1, most),
      colours: () => single("bar"), label: () => "all" },
    { title: "Accesses by thread", rows: threads, height: row * threads, paint: painter(density), colours: () => ramp(linear), label,
      bars: { title: "mean per page", values: means.map((m) => m / largest), mean: mean / largest } },
  ];
  const heat = new Heat({
    label: `Pages of ${structure.name}: first touch and accesses of ${threads} threads on ${map.pages} pages. The table below has the sums.`,
    columns: density.columns,
    columnTitle: merged > 1 ? `page (${merged} to a column)` : "page",
    columnLabel: (column) => whole(column * merged),
    bands,
    square: false,
    describe: (band, column, row) => describe(density, touch, sums, column, band === 1 ? -1 : row, map.pages, label),
  });
  const key = legend("accesses by a thread");
  key.set(density.max, linear);
  const scale = choice("Scale", [["log", "Logarithmic"], ["linear", "Linear"]], "log", (value) => {
    linear = value === "linear";
    key.set(density.max, linear);
    heat.redraw();
  });
  return h("div", {}, h("div", { class: "controls" }, scale, key.element), heat.element);
}

function describe(density: Cells, touch: Cells, sums: Float64Array, column: number, row: number, pages: number, name: (row: number) => string): string {
  const { merged } = density;
  const page = column * merged;
  const where = merged > 1 ? `pages ${whole(page)} to ${whole(Math.min(pages, page + merged) - 1)}` : `${nth("page", page, pages)}`;
  const about = density.exact ? "" : "about ";
  const all = `all threads ${about}${whole(sums[column])}`;
  const k = touch.starts[page];
  const first = k < touch.starts[page + 1] ? `first touched by ${name(touch.row[k])}` : "first touch not seen";
  if (row < 0) return `${where}: ${all}; ${first}`;
  const value = valueAt(density, column, row);
  return `${where}, thread ${name(row)}: ${about}${whole(value)} accesses; ${all}; ${first}`;
}

/// Who uses it, who only reads, who never does.
function users(structure: Structure, subject: Subject): HTMLElement | null {
  const { map } = structure;
  if (!map) return null;
  const active = concerned(structure, map, subject).filter((t) => subject.threads[t].reads + subject.threads[t].writes > 0);
  const used = new Map(map.threads.map(([thread, reads, writes]) => [thread, { reads, writes }]));
  const names = (threads: number[]) => (threads.length === 0 ? "none" : threads.length === active.length ? "all" : ranges(threads));
  const never = active.filter((t) => !used.has(t));
  const readers = active.filter((t) => (used.get(t)?.reads ?? 0) > 0);
  const writers = active.filter((t) => (used.get(t)?.writes ?? 0) > 0);
  const fact = (name: string, threads: number[]) => h("div", {}, h("dt", {}, name), h("dd", {}, names(threads)));
  return h("div", {},
    h("dl", { class: "users" },
      fact("Read it", readers),
      fact("Never read it", active.filter((t) => !readers.includes(t))),
      fact("Write it", writers),
      fact("Never write it", active.filter((t) => !writers.includes(t))),
      fact("Never use it", never)),
    later("alternative", "As a table: accesses by thread", () => [
      table({
        caption: `Threads that use ${structure.name}`,
        rows: map.threads,
        shown: 16,
        columns: [
          { title: "Thread", number: true, value: ([t]) => t, cell: ([t]) => threadName(subject, t) },
          { title: "Reads", number: true, value: ([, r]) => r, cell: ([, r]) => whole(r) },
          { title: "Writes", number: true, value: ([, , w]) => w, cell: ([, , w]) => whole(w) },
          { title: "Mean per page", number: true, value: ([, r, w]) => (r + w) / map.pages, cell: ([, r, w]) => whole((r + w) / map.pages) },
        ],
      }),
      h("p", { class: "soft" }, "Counted on whole pages: what else lies on the first and last page is included.")]));
}

/// The line that decides where its pages lie, and how the program came there.
function firstTouch({ first_touch: touch }: Structure, subject: Subject): HTMLElement | null {
  if (!touch) return null;
  const { site, path, in_parallel } = touch;
  const region = in_parallel === null ? "" : in_parallel ? ", in a parallel region or a thread of its own" : ", outside of parallel regions";
  return h("div", { class: "first-touch-line" },
    h("h4", {}, "Line that touches most of its pages first"),
    h("p", {}, h("code", { title: site.file }, place(site.file, site.line)), site.function ? [" in ", h("code", {}, site.function)] : null,
      `: ${many(touch.pages, "page")}, most by thread ${threadName(subject, touch.thread)}${region}`),
    quoted(subject, site.file, site.line),
    path.length > 1 ? h("p", { class: "soft" }, "Called from ", path.slice(1).map((call, at) => [at ? ", " : null, h("code", {}, call)])) : null);
}

function lines(structure: Structure, subject: Subject): HTMLElement | null {
  if (!structure.lines.length) return null;
  return h("div", { class: "hot-lines" },
    h("h4", {}, "Lines that use it most"),
    table({
      caption: `Source lines that use ${structure.name}`,
      rows: structure.lines,
      columns: [
        { title: "Line", value: (l) => `${l.site.file}:${l.site.line}`, cell: (l) => (l.site.line ? h("code", { title: l.site.file }, place(l.site.file, l.site.line)) : [h("code", { title: l.site.file }, base(l.site.file) || "?"), h("span", { class: "soft" }, ", no line known")]) },
        ...(subject.quotes.length ? [{ title: "Source", only: "page" as const, minor: true, value: () => "", cell: (l: Line) => quotedLine(subject, l.site.file, l.site.line) }] : []),
        { title: "Function", value: (l) => l.site.function, cell: (l) => h("span", { class: "object" }, l.site.function) },
        { title: "Reads", hint: "From samples", number: true, value: (l) => l.reads, cell: (l) => count(l.reads) },
        { title: "Writes", hint: "From samples", number: true, value: (l) => l.writes, cell: (l) => count(l.writes) },
        ...(subject.run.fetches !== null ? [{ title: "Fetches", hint: "From samples: lines that it brings into a private cache", number: true, value: (l: Line) => l.fetches, cell: (l: Line) => count(l.fetches) }] : []),
      ],
    }));
}
