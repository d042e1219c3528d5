// What changed since another profile: findings, metrics, data structures, what changed first.
import { h, rich, type Child, type Children } from "../dom";
import { bytes, count, many, percent, place, seconds, written } from "../format";
import type { Change, Comparison, FindingChange, MetricChange, Picture, Run, StructureChange, StructureFigures, Subject } from "../model";
import { table, type Column } from "../table";
import { KINDS } from "./findings";
import { intro, picture, section } from "./section";

/// A sign and a word, for the colour alone says nothing to many; in the order of interest.
const SIGNS: Record<Change, [string, string]> = {
  new: ["+", "new"],
  worse: ["\u2715", "worse"],
  gone: ["\u2713", "gone"],
  better: ["\u2713", "better"],
  changed: ["\u2260", "changed"],
  same: ["=", "same"],
};
const ORDER = Object.keys(SIGNS) as Change[];

type Changed = { change: Change };

export function comparison(changes: Comparison, subject: Subject, show: (picture: Picture) => void, go: (id: string) => void): HTMLElement {
  return section("comparison", "What changed",
    h("div", { class: "figure" },
      h("p", { class: "sentence" }, changes.sentence),
      h("div", { class: "sides" }, side("Before", changes.file, changes.run, changes.verdict.sentence), side("After", "this page", subject.run, subject.verdict.sentence)),
      changes.notes.length ? h("ul", { class: "plain" }, changes.notes.map((note) => h("li", {}, note))) : null),
    picture("Findings, before and after",
      intro("A row is a finding of either run, with the share of the run that it concerns in each.",
        "New and worse ones come first; what is gone has been mended, or the run no longer gets there."),
      changes.findings.length ? [summary(changes.findings), findings(changes.findings, go)] : h("p", { class: "missing" }, "Nothing wrong was found in either.")),
    picture("Metrics, before and after",
      intro("A row is a figure of both runs and their difference, in points where it is a share.",
        "It counts as better or worse only when it differs by more than runs of one program do."),
      summary(changes.metrics), metrics(changes.metrics)),
    picture("Data structures, before and after",
      intro("A row is a structure of either run: its part in the accesses, how exclusive its pages are, and how many of its accesses first touch puts right; choose one to see its pages after.",
        "A structure that is worse lost exclusivity, or lies on the wrong node more than before."),
      summary(changes.structures), structures(changes, show)));
}

function side(name: string, file: string, run: Run, verdict: string): HTMLElement {
  return h("div", { class: "side" },
    h("p", { class: "label" }, h("b", {}, name), ", ", h("code", {}, file)),
    h("p", {}, verdict),
    h("p", { class: "facts" }, [many(run.active_threads, "thread"), `${seconds(run.seconds)} ${run.online ? "observed while it ran" : "under the tracer"}`, `${count(run.reads + run.writes)} ${run.online ? "page faults" : "accesses"}`, `${bytes(run.footprint)} used`]
      .map((fact) => h("span", {}, fact))),
    h("p", { class: "soft" }, h("code", {}, run.command)));
}

/// How many of each.
function summary(rows: Changed[]): HTMLElement {
  const of = (change: Change) => rows.filter((row) => row.change === change).length;
  return h("ul", { class: "summary" }, ORDER.filter((change) => of(change)).map((change) => h("li", {}, mark(change, `${of(change)} ${SIGNS[change][1]}`))));
}

function mark(change: Change, text: string = SIGNS[change][1]): HTMLElement {
  return h("span", { class: `change ${change}` }, h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[change][0]), ` ${text}`);
}

const first = <Row extends Changed>(rows: Row[]): Row[] =>
  [...rows].sort((a, b) => ORDER.indexOf(a.change) - ORDER.indexOf(b.change));

/// As many as have changed, but not fewer than a few.
const worth = (rows: Changed[], least: number): number => Math.max(least, rows.filter((row) => row.change !== "same").length);

/// Before and after in one cell, and the two apart in the copy.
function sides<Row>(title: string, before: (row: Row) => number | null, after: (row: Row) => number | null, shown: (value: number | null) => string): Column<Row>[] {
  return [
    { title: `${title} before`, only: "csv", value: before },
    { title: `${title} after`, only: "csv", value: after },
    { title, only: "page", number: true, value: after, cell: (row) => pair(shown(before(row)), shown(after(row))) },
  ];
}

function pair(before: string, after: string): Children {
  if (before === after) return h("span", { class: "soft" }, after);
  return [h("span", { class: "soft" }, before), h("span", { class: "arrow", "aria-label": "to" }, " \u2192 "), h("b", {}, after)];
}

function findings(rows: FindingChange[], go: (id: string) => void): HTMLElement {
  const title = (f: FindingChange): Child =>
    f.finding === null ? f.title : h("button", { type: "button", class: "choose", click: () => go(`finding-${f.finding}`) }, f.title);
  return table<FindingChange>({
    caption: "Findings, before and after",
    rows: first(rows),
    shown: 20,
    columns: [
      { title: "Change", value: (f) => SIGNS[f.change][1], cell: (f) => mark(f.change) },
      { title: "Finding", value: (f) => f.title, cell: (f) => [title(f), f.change === "gone" ? h("span", { class: "was" }, f.evidence.join(" ")) : null] },
      { title: "Kind", minor: true, value: (f) => KINDS[f.kind] ?? f.kind },
      { title: "Structure", minor: true, value: (f) => f.structure, cell: (f) => (f.structure ? h("span", { class: "object" }, f.structure) : null) },
      ...sides<FindingChange>("Of accesses", (f) => f.before, (f) => f.after, (v) => (v === null ? "\u2013" : percent(v, 0))),
      { title: "Evidence before", only: "csv", value: (f) => f.evidence.join(" ") },
    ],
  });
}

function metrics(rows: MetricChange[]): HTMLElement {
  const sorted = first(rows);
  return table<MetricChange>({
    caption: "Metrics, before and after",
    rows: sorted,
    shown: worth(sorted, 4),
    columns: [
      { title: "Change", value: (m) => SIGNS[m.change][1], cell: (m) => [mark(m.change), m.within_error && h("span", { class: "was" }, "within the sampling error")] },
      { title: "Metric", value: (m) => m.name, cell: (m) => [rich(m.name), h("span", { class: "was" }, rich(m.meaning))] },
      { title: "Before", number: true, value: (m) => m.before, cell: (m) => written(m.unit, m.before) },
      { title: "After", number: true, value: (m) => m.after, cell: (m) => h("b", {}, written(m.unit, m.after)) },
      { title: "Difference", number: true, minor: true, value: (m) => (m.before === null || m.after === null ? null : m.after - m.before), cell: difference },
      { title: "Better is", minor: true, value: (m) => (m.better === "neither" ? "" : m.better) },
    ],
  });
}

function structures(changes: Comparison, show: (picture: Picture) => void): Children {
  const sorted = first(changes.structures);
  const columns = (title: string, of: (f: StructureFigures) => number | null, shown: (v: number | null) => string) =>
    sides<StructureChange>(title, (s) => s.before && of(s.before), (s) => s.after && of(s.after), shown);
  const name = (s: StructureChange): Child => {
    const text = h("span", { class: "object", title: s.type_name || s.name }, s.name);
    const { after } = s;
    return after ? h("button", { type: "button", class: "choose", click: () => show({ panel: "structure", object: after.object }) }, text) : text;
  };
  const some = (shown: (v: number) => string) => (v: number | null) => (v === null ? "\u2013" : shown(v));
  const list = table<StructureChange>({
    caption: "Data structures, before and after",
    rows: sorted,
    shown: worth(sorted, 12),
    columns: [
      { title: "Change", value: (s) => SIGNS[s.change][1], cell: (s) => mark(s.change) },
      { title: "Name", value: (s) => s.name, cell: name },
      { title: "Where", minor: true, value: (s) => (s.site ? `${s.site.file}:${s.site.line}` : ""), cell: (s) => s.site && h("span", { class: "object site", title: s.site.file }, place(s.site.file, s.site.line)) },
      ...columns("Size", (f) => f.size, some(bytes)).map((c) => ({ ...c, minor: true })),
      ...columns("Accesses", (f) => f.reads + f.writes, some(count)).map((c) => ({ ...c, minor: true })),
      ...columns("Share", (f) => f.share, (v) => percent(v)),
      ...columns("Exclusive", (f) => f.exclusivity, (v) => percent(v, 0)),
      ...columns("First touch right", (f) => f.accuracy, (v) => percent(v, 0)).map((c) => ({ ...c, head: "narrow" })),
    ],
  });
  const left = changes.structures_left;
  return [list, left > 0 ? h("p", { class: "soft" }, `${many(left, "structure")} with less than 0.01 % of the accesses left out.`) : null];
}

function difference(m: MetricChange): string {
  if (m.before === null || m.after === null) return "";
  const sign = (value: number) => `${value > 0 ? "+" : value < 0 ? "\u2212" : ""}${Math.abs(value).toFixed(1)}`;
  if (m.unit === "share") return `${sign((m.after - m.before) * 100)}\u00a0points`;
  if (m.unit === "percent") return `${sign(m.after - m.before)}\u00a0points`;
  if (m.after === m.before) return "=";
  return m.before === 0 ? "" : `${sign((m.after / m.before - 1) * 100)}\u00a0%`;
}
