// Data structures: how large, how much used, and page by page by whom.
import { fill, h } from "../dom";
import { base, bytes, count, many, percent, place, whole } from "../format";
import { columnSums, unpack, valueAt, type Cells } from "../grid";
import { Heat, nth, type Band } from "../heat";
import type { ObjectKind, PageMap, Structure, Subject } from "../model";
import { legend } from "../legend";
import { painter, skyline } from "../paint";
import { table } from "../table";
import { ramp, single } from "../theme";
import { choice, intro, figure, later, section } from "./section";

const KINDS: Record<ObjectKind, string> = {
  static: "static",
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
    figure("How large, how much used",
      intro("One row is a variable or a place that allocates, with its size and how often it was read and written; choose one to see its pages below.",
        "A structure with many accesses that is only read can be copied to every node, and one that first touch puts in the wrong place shows a low figure under \u201cright\u201d."),
      list,
      folded.length
        ? later("folded", `${many(folded.length, "structure")} with less than 0.01 % of the accesses each`,
            () => [overview(subject, folded, "Little used data structures")])
        : null,
      rest.structures > 0
        ? h("p", { class: "soft" }, `${many(rest.structures, "more structure")} not listed: ${bytes(rest.size)}, ${percent(rest.accesses / Math.max(1, accesses))} of the accesses.`)
        : null),
    detail);
  const show = (object: number) => {
    const row = rows.find((r) => r.object === object);
    if (row) choose(row);
  };
  return { element, show };
}

function overview(subject: Subject, rows: Structure[], caption: string, choose?: (s: Structure) => void) {
  const several = subject.processes.length > 1;
  const most = Math.max(1, ...rows.map((s) => s.reads + s.writes));
  const largest = Math.max(1, ...rows.map((s) => s.size));
  return table<Structure>({
    caption,
    rows,
    shown: 12,
    choose,
    columns: [
      { title: "Name", value: (s) => s.name, cell: (s) => h("span", { class: "object", title: s.type_name || s.name }, s.name) },
      { title: "Kind", minor: true, value: (s) => KINDS[s.kind] ?? s.kind },
      ...(several ? [{ title: "Process", number: true, minor: true, value: (s: Structure) => s.process }] : []),
      { title: "Where", minor: true, value: (s) => (s.site ? `${s.site.file}:${s.site.line}` : ""), cell: (s) => s.site && h("span", { class: "object site", title: s.site.file }, place(s.site.file, s.site.line)) },
      { title: "Size", number: true, minor: true, value: (s) => s.size, cell: (s) => bar(bytes(s.size), [[s.size / largest, "size"]], "") },
      { title: "Reads + writes", head: "reads-writes", hint: "Reads, then writes", number: true, value: (s) => s.reads + s.writes,
        cell: (s) => bar(`${s.estimated ? "~" : ""}${count(s.reads)} + ${count(s.writes)}`, [[s.reads / most, "reads"], [s.writes / most, "writes"]], `${whole(s.reads)} reads, ${whole(s.writes)} writes`) },
      { title: "Share", hint: "Of all accesses", number: true, value: (s) => s.share, cell: (s) => percent(s.share) },
      { title: "E", hint: "Exclusivity: share of accesses by each page's main node", number: true, value: (s) => s.exclusivity, cell: (s) => percent(s.exclusivity, 0) },
      { title: "Right", hint: "Share of accesses to pages that first touch puts on the right node", number: true, value: (s) => s.accuracy, cell: (s) => percent(s.accuracy, 0) },
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
    structure.type_name,
    structure.count > 1 ? `${bytes(structure.size)} in ${many(structure.count, "block")}` : bytes(structure.size),
    map && map.unused ? `${whole(map.unused)} pages never used, left out` : null,
  ];
  const title = h("h3", { class: "structure-title" }, h("code", {}, structure.name));
  const about = h("p", { class: "facts" }, facts.filter(Boolean).map((f) => h("span", {}, f)),
    site ? h("span", { title: site.file }, `${place(site.file, site.line)}${site.function ? ` in ${site.function}` : ""}`) : null);
  const drawn = h("div", { class: "page-map" });
  if (map) void pictures(structure, map, subject).then((picture) => fill(drawn, picture));
  else drawn.append(h("p", { class: "missing" }, "Its pages are not drawn, for it is hardly used."));
  return [h("div", { class: "figure" }, title, about,
    intro("Each column is a page and each row a thread: on top is who touched the page first, in the middle how often all threads used it, below how often each did; dashed lines mark the mean over pages and, beside the bars, over threads.",
      "The system puts a page where it was first touched: if the two patterns differ, threads work on far memory, and a page with strong colour in all rows has no right place."),
    drawn, users(structure, subject), lines(structure))];
}

async function pictures(structure: Structure, map: PageMap, subject: Subject): Promise<HTMLElement> {
  const [density, touch] = await Promise.all([unpack(map.density), unpack(map.first_touch)]);
  const threads = subject.threads.length;
  const sums = columnSums(density);
  const most = sums.reduce((a, b) => Math.max(a, b), 0);
  let linear = false;
  const row = threads <= 16 ? 16 : threads <= 64 ? 8 : Math.max(0.5, 512 / threads);
  const touchRow = threads <= 16 ? 8 : threads <= 64 ? 4 : Math.max(0.25, 200 / threads);
  const label = (thread: number) => threadLabel(subject, thread);
  const means = new Array<number>(threads).fill(0);
  for (const [thread, reads, writes] of map.threads) means[thread] = (reads + writes) / map.pages;
  const largest = Math.max(...means, 1e-9);
  const mean = means.reduce((a, b) => a + b, 0) / Math.max(1, subject.run.active_threads);
  const bands: Band[] = [
    { title: "First touch", rows: threads, height: touchRow * threads, paint: painter(touch), colours: () => single("warm"), label },
    { title: "Accesses of all threads together", rows: 1, height: 56, fine: true, paint: skyline(sums, most), level: sums.reduce((a, b) => a + b, 0) / sums.length / Math.max(1, most),
      colours: () => single("bar"), label: () => "all" },
    { title: "Accesses by thread", rows: threads, height: row * threads, paint: painter(density), colours: () => ramp(linear), label,
      bars: { title: "mean per page", values: means.map((m) => m / largest), mean: mean / largest } },
  ];
  const heat = new Heat({
    label: `Pages of ${structure.name}: first touch and accesses of ${threads} threads on ${map.pages} pages. The table below has the sums.`,
    columns: density.columns,
    columnTitle: density.merged > 1 ? `page (${density.merged} to a column)` : "page",
    columnLabel: (column) => whole(column * density.merged),
    bands: density.merged > 1 ? bands.slice(1) : bands,
    square: false,
    describe: (band, column, row) => describe(density, touch, sums, subject, column, band === 1 ? -1 : row, map.pages),
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

function describe(density: Cells, touch: Cells, sums: Float64Array, subject: Subject, column: number, row: number, pages: number): string {
  const { merged } = density;
  const page = column * merged;
  const where = merged > 1 ? `pages ${whole(page)} to ${whole(Math.min(pages, page + merged) - 1)}` : `${nth("page", page, pages)}`;
  const about = density.exact ? "" : "about ";
  const all = `all threads ${about}${whole(sums[column])}`;
  const k = touch.starts[page];
  const first = k < touch.starts[page + 1] ? `first touched by ${threadLabel(subject, touch.row[k])}` : "first touch not seen";
  if (row < 0) return `${where}: ${all}; ${first}`;
  const value = valueAt(density, column, row);
  return `${where}, thread ${threadLabel(subject, row)}: ${about}${whole(value)} accesses; ${all}; ${first}`;
}

function threadLabel(subject: Subject, thread: number): string {
  const { name, process } = subject.threads[thread];
  const executable = subject.processes[process]?.executable ?? "";
  const known = name && base(executable) !== name;
  return known ? `${thread} ${name}` : String(thread);
}

/// Who uses it, who only reads, who never does.
function users(structure: Structure, subject: Subject): HTMLElement | null {
  const { map } = structure;
  if (!map) return null;
  const active = subject.threads.map((t, at) => ({ at, accesses: t.reads + t.writes })).filter((t) => t.accesses > 0).map((t) => t.at);
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
          { title: "Thread", number: true, value: ([t]) => t, cell: ([t]) => threadLabel(subject, t) },
          { title: "Reads", number: true, value: ([, r]) => r, cell: ([, r]) => whole(r) },
          { title: "Writes", number: true, value: ([, , w]) => w, cell: ([, , w]) => whole(w) },
          { title: "Mean per page", number: true, value: ([, r, w]) => (r + w) / map.pages, cell: ([, r, w]) => whole((r + w) / map.pages) },
        ],
      }),
      h("p", { class: "soft" }, "Counted on whole pages: what else lies on the first and last page is included.")]));
}

function ranges(numbers: number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length; ) {
    let end = i;
    while (numbers[end + 1] === numbers[end] + 1) end += 1;
    parts.push(end > i ? `${numbers[i]}\u2013${numbers[end]}` : String(numbers[i]));
    i = end + 1;
  }
  return parts.join(", ");
}

function lines(structure: Structure): HTMLElement | null {
  if (!structure.lines.length) return null;
  return h("div", { class: "hot-lines" },
    h("h4", {}, "Lines that use it most"),
    table({
      caption: `Source lines that use ${structure.name}`,
      rows: structure.lines,
      columns: [
        { title: "Line", value: (l) => `${l.site.file}:${l.site.line}`, cell: (l) => h("code", { title: l.site.file }, place(l.site.file, l.site.line)) },
        { title: "Function", value: (l) => l.site.function, cell: (l) => h("span", { class: "object" }, l.site.function) },
        { title: "Reads", hint: "From samples", number: true, value: (l) => l.reads, cell: (l) => count(l.reads) },
        { title: "Writes", hint: "From samples", number: true, value: (l) => l.writes, cell: (l) => count(l.writes) },
      ],
    }));
}
