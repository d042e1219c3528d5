// What changed since another profile: findings, metrics, data structures.
import { h } from "../dom";
import { bytes, count, figure as number, many, percent, place, seconds } from "../format";
import type { Change, Comparison, FindingChange, MetricChange, StructureChange, StructureFigures, Unit } from "../model";
import { table, type Column } from "../table";
import { figure, intro, section } from "./section";

const WORDS: Record<Change, string> = {
  new: "new",
  worse: "worse",
  changed: "changed",
  same: "same",
  better: "better",
  gone: "gone",
};

export function comparison(changes: Comparison): HTMLElement {
  const { run, verdict } = changes;
  return section("comparison", "What changed",
    h("p", { class: "sentence" }, changes.sentence),
    h("p", {}, "Compared with ", h("code", {}, changes.file), `, a run of ${seconds(run.seconds)} under the tracer with ${many(run.active_threads, "thread")} by `, h("code", {}, run.command), "."),
    h("p", {}, `Its verdict: ${verdict.sentence}`),
    changes.notes.length ? h("ul", {}, changes.notes.map((note) => h("li", {}, note))) : null,
    figure("Findings, before and after",
      intro("A row is a finding of either run, with the share of what it is about in each.",
        "New and worse ones come first; what is gone has been repaired, or the run no longer gets there."),
      changes.findings.length ? findings(changes.findings) : h("p", { class: "nothing" }, "Nothing wrong was found in either.")),
    figure("Metrics, before and after",
      intro("A row is a figure of both runs and their difference, in points where it is a share.",
        "It counts as better or worse only when it differs by more than runs of one program do."),
      metrics(changes.metrics)),
    figure("Data structures, before and after",
      intro("A row is a structure of either run: its part in the accesses, how exclusive its pages are, and how many first touch puts right.",
        "A structure that is worse lost exclusivity or lies on the wrong node more than before."),
      structures(changes)));
}

function mark(change: Change, text: string = WORDS[change]): HTMLElement {
  return h("span", { class: `change ${change}` }, text);
}

function findings(rows: FindingChange[]): HTMLElement {
  return table<FindingChange>({
    caption: "Findings, before and after",
    rows,
    shown: 20,
    columns: [
      { title: "Finding", value: (f) => f.title },
      { title: "Kind", minor: true, value: (f) => f.kind },
      { title: "Structure", minor: true, value: (f) => f.structure },
      { title: "Change", value: (f) => WORDS[f.change], cell: (f) => mark(f.change) },
      { title: "Before", number: true, value: (f) => f.before, cell: (f) => percent(f.before) },
      { title: "After", number: true, value: (f) => f.after, cell: (f) => percent(f.after) },
    ],
  });
}

function metrics(rows: MetricChange[]): HTMLElement {
  return table<MetricChange>({
    caption: "Metrics, before and after",
    rows,
    columns: [
      { title: "Metric", value: (m) => m.name, cell: (m) => h("span", { title: m.meaning }, m.name) },
      { title: "Before", number: true, value: (m) => m.before, cell: (m) => written(m.unit, m.before) },
      { title: "After", number: true, value: (m) => m.after, cell: (m) => written(m.unit, m.after) },
      { title: "Difference", number: true, value: (m) => (m.before === null || m.after === null ? null : m.after - m.before), cell: difference },
      { title: "Change", value: (m) => WORDS[m.change], cell: (m) => mark(m.change, m.within_error ? "within the sampling error" : WORDS[m.change]) },
      { title: "Meaning", minor: true, value: (m) => m.meaning },
    ],
  });
}

function structures(changes: Comparison): HTMLElement[] {
  const side = (title: string, value: (f: StructureFigures) => number | null, shown: (v: number | null) => string): Column<StructureChange>[] => [
    { title: `${title} before`, number: true, value: (s) => s.before && value(s.before), cell: (s) => shown(s.before && value(s.before)) },
    { title: "after", number: true, value: (s) => s.after && value(s.after), cell: (s) => shown(s.after && value(s.after)) },
  ];
  const counted = (v: number | null) => (v === null ? "\u2013" : count(v));
  const list = table<StructureChange>({
    caption: "Data structures, before and after",
    rows: changes.structures,
    shown: 12,
    columns: [
      { title: "Name", value: (s) => s.name, cell: (s) => h("span", { class: "object", title: s.type_name || s.name }, s.name) },
      { title: "Where", minor: true, value: (s) => (s.site ? `${s.site.file}:${s.site.line}` : ""), cell: (s) => s.site && h("span", { class: "object site", title: s.site.file }, place(s.site.file, s.site.line)) },
      { title: "Change", value: (s) => WORDS[s.change], cell: (s) => mark(s.change) },
      ...side("Share", (f) => f.share, (v) => percent(v)),
      ...side("Reads", (f) => f.reads, counted),
      ...side("Writes", (f) => f.writes, counted),
      ...side("E", (f) => f.exclusivity, (v) => percent(v, 0)),
      ...side("Right", (f) => f.accuracy, (v) => percent(v, 0)),
    ],
  });
  const left = changes.structures_left;
  return left > 0 ? [list, h("p", { class: "soft" }, `${many(left, "structure")} with less than 0.01 % of the accesses left out.`)] : [list];
}

function written(unit: Unit, value: number | null): string {
  if (value === null) return "\u2013";
  switch (unit) {
    case "share": return percent(value);
    case "percent": return `${number(value)}\u00a0%`;
    case "bytes": return bytes(value);
    case "seconds": return seconds(value);
    case "count": return count(value);
    default: return number(value);
  }
}

function difference(m: MetricChange): string {
  if (m.before === null || m.after === null) return "";
  const sign = (value: number) => `${value > 0 ? "+" : ""}${value.toFixed(1)}`;
  if (m.unit === "share") return `${sign((m.after - m.before) * 100)} points`;
  if (m.unit === "percent") return `${sign(m.after - m.before)} points`;
  if (m.after === m.before) return "=";
  return m.before === 0 ? "" : `${sign((m.after / m.before - 1) * 100)}\u00a0%`;
}
