// Who shares with whom: the matrix, its figures, and how it changes.
import { Chart } from "../chart";
import { copy, fill, h, rich } from "../dom";
import { count, figure, many, percent, seconds, whole } from "../format";
import { coded, coderOf, unpack, type Cells } from "../grid";
import { Heat, type HeatOptions } from "../heat";
import type { CommunicationFigures, OrderBy, Phase, Subject, Timeline } from "../model";
import { legend } from "../legend";
import { threadName } from "../names";
import { pairPainter } from "../paint";
import { csvOf, table } from "../table";
import { ramp } from "../theme";
import { choice, intro, later, picture, section } from "./section";

const ORDERS: Record<OrderBy, string> = { thread: "Thread", process: "Process", placement: "Placement", cluster: "Cluster" };
const SIDE = 460;

/// Pairs of threads with what they share.
interface Pairs {
  i: Uint32Array;
  j: Uint32Array;
  events: Float64Array;
  max: number;
  total: number;
}

export interface CommunicationPanel {
  element: HTMLElement;
  timeline: HTMLElement;
}

export function communication(subject: Subject): CommunicationPanel {
  const shown = new Shown(subject);
  const timeline = shown.timeline();
  const element = section("communication", "Communication",
    picture("Who shares with whom",
      intro("A cell is a pair of threads, and the stronger its colour the more often both used the same cache line at about the same time; the diagonal is empty.",
        "Strong cells far from the diagonal are threads that share much and that a placement by number keeps apart; an even tone means that no placement can help."),
      shown.controls, shown.selected, h("div", { class: "matrix" }, shown.place, shown.figures), shown.text),
    timeline);
  return { element, timeline };
}

class Shown {
  readonly place = h("div", { class: "matrix-picture" });
  readonly selected = h("div", { class: "selected" });
  readonly text = h("div");
  readonly figures = h("div");
  readonly controls: HTMLElement;
  private order: OrderBy;
  private linear = true;
  private readonly legend = legend("events");
  private heat: Heat | null = null;
  private run: Pairs | null = null;
  private pairs: Pairs | null = null;
  private steps: Cells | null = null;
  private range: [number, number] | null = null;
  private readonly charts: Chart[] = [];
  private readonly subject: Subject;

  constructor(subject: Subject) {
    this.subject = subject;
    const { orders } = subject.communication;
    // Threads of several processes are numbered as they came, which nobody can read.
    this.order = orders.some((o) => o.by === "process") ? "process" : "thread";
    this.controls = h("div", { class: "controls" },
      choice("Order", orders.map((o): [OrderBy, string] => [o.by, ORDERS[o.by]]), this.order, (by) => {
        this.order = by;
        this.draw();
      }),
      choice("Scale", [["linear", "Linear"], ["log", "Logarithmic"]], "linear", (value) => {
        this.linear = value === "linear";
        this.draw();
      }),
      this.legend.element);
    void this.load();
  }

  private async load(): Promise<void> {
    const { communication, threads } = this.subject;
    const cells = await unpack(communication.matrix);
    this.run = pairsOf(cells, threads.length, 0, cells.columns, true);
    this.pairs = this.run;
    this.select(null);
  }

  /// Shows the steps from .. to, or the whole run.
  async select(range: [number, number] | null): Promise<void> {
    const { communication, threads } = this.subject;
    this.range = range;
    if (range) {
      this.steps ??= await unpack(communication.timeline.matrices);
      this.pairs = pairsOf(this.steps, threads.length, range[0], range[1], false);
    } else {
      this.pairs = this.run;
    }
    this.charts.forEach((chart) => chart.mark(range));
    this.announce();
    const phase = communication.phases[this.phase()];
    fill(this.figures, h("h4", {}, phase ? `Figures of phase ${this.phase() + 1}` : "Figures of the whole run"),
      figures(phase?.figures ?? communication.figures, this.title()));
    this.draw();
  }

  /// The phase that is shown, -1 if none.
  private phase(): number {
    const { range } = this;
    const { phases } = this.subject.communication;
    return range && phases.length > 1 ? phases.findIndex((p) => p.first === range[0] && p.end === range[1]) : -1;
  }

  /// Shows what was chosen below, where that cannot be seen.
  private async go(range: [number, number]): Promise<void> {
    await this.select(range);
    const box = this.place.getBoundingClientRect();
    if (box.bottom < box.height / 2) this.selected.scrollIntoView({ block: "start" });
  }

  private announce(): void {
    const { timeline } = this.subject.communication;
    const steps = timeline.start.length;
    const step = (by: number) => {
      const from = this.range ? this.range[by < 0 ? 0 : 1] + Math.min(by, 0) : by < 0 ? steps - 1 : 0;
      if (from >= 0 && from < steps) void this.select([from, from + 1]);
    };
    const button = (text: string, label: string, act: () => void, off = false) =>
      h("button", { type: "button", class: "small", "aria-label": label, disabled: off, click: act }, text);
    const events = this.pairs?.total ?? 0;
    fill(this.selected,
      h("span", { role: "status" }, h("b", {}, this.title()), `, ${count(events)} events`),
      steps > 1 ? h("span", { class: "steps" },
        button("\u2190", "Previous slice", () => step(-1)),
        button("\u2192", "Next slice", () => step(1)),
        button("Whole run", "Show the whole run", () => void this.select(null), !this.range)) : null);
  }

  private title(): string {
    const { timeline } = this.subject.communication;
    if (!this.range) return "Whole run";
    const [from, to] = this.range;
    const phase = this.phase();
    const start = seconds(timeline.start[from]);
    if (phase >= 0) return `Phase ${phase + 1}, from ${start}`;
    const last = to < timeline.slice.length ? timeline.slice[to] - 1 : null;
    const first = timeline.slice[from];
    return last !== null && last > first ? `Slices ${first}\u2013${last}, from ${start}` : `Slice ${first}, from ${start}`;
  }

  private draw(): void {
    if (!this.pairs) return;
    const { threads, communication } = this.subject;
    const order = communication.orders.find((o) => o.by === this.order)!.threads;
    const at = new Uint32Array(threads.length);
    order.forEach((thread, place) => (at[thread] = place));
    const { i, j, events, max } = this.pairs;
    const code = coded(events, coderOf(max));
    const name = (place: number) => threadName(this.subject, order[place]);
    const options: HeatOptions = {
      label: `Communication matrix, ${this.title()}, ${threads.length} by ${threads.length} threads, by ${this.order}. The table below has the pairs.`,
      columns: threads.length,
      columnTitle: "thread",
      columnLabel: (column) => String(order[column] ?? ""),
      square: true,
      bands: [{
        title: "",
        rows: threads.length,
        height: Math.min(SIDE, Math.max(240, threads.length * 54)),
        paint: pairPainter(i, j, code, at, threads.length),
        colours: () => ramp(this.linear),
        label: name,
        borders: borders(this.subject, order),
      }],
      describe: (_band, column, row) => this.describe(order[row], order[column]),
    };
    this.legend.set(max, this.linear);
    if (this.heat) this.heat.show(options, true);
    else {
      this.heat = new Heat(options);
      fill(this.place, this.heat.element);
    }
    const opened = this.text.querySelector("details")?.open ?? false;
    const table = this.alternative();
    table.open = opened;
    fill(this.text, table);
  }

  private describe(a: number, b: number): string {
    const { pairs } = this;
    const names = `${threadName(this.subject, a)} and ${threadName(this.subject, b)}`;
    if (a === b) return `${threadName(this.subject, a)} with itself`;
    const [low, high] = [Math.min(a, b), Math.max(a, b)];
    let events = 0;
    for (let k = 0; k < pairs!.i.length; k++) {
      if (pairs!.i[k] === low && pairs!.j[k] === high) events += pairs!.events[k];
    }
    return `${names}: ${whole(events)} events, ${percent(events / Math.max(1, pairs!.total))} of all`;
  }

  private alternative(): HTMLDetailsElement {
    const { i, j, events, total } = this.pairs!;
    const title = this.title();
    return later("alternative", `As a table: ${many(i.length, "pair")} that share`, () => {
      const rows = Array.from(i, (_, k) => k).sort((a, b) => events[b] - events[a]);
      return [table({
        caption: `Communication, ${title}`,
        rows,
        shown: 12,
        columns: [
          { title: "Thread", value: (k) => threadName(this.subject, i[k]) },
          { title: "Thread", value: (k) => threadName(this.subject, j[k]) },
          { title: "Events", number: true, value: (k) => events[k], cell: (k) => whole(events[k]) },
          { title: "Share", number: true, value: (k) => events[k] / total, cell: (k) => percent(events[k] / total) },
        ],
      })];
    });
  }

  timeline(): HTMLElement {
    const { timeline: t, phases, too_short } = this.subject.communication;
    if (t.start.length < 2) {
      return h("div", { class: "figure", id: "timeline" }, h("h3", {}, "Over time"), h("p", { class: "missing" }, "The run is shorter than two slices."));
    }
    const merged = t.slices_per_step > 1;
    const bands = phases.map((p) => p.start);
    const chart = (about: string, label: string, mean: number[], most: number[], colour: "accent" | "good") =>
      new Chart({
        title: about,
        label: `${label} over time. The slices can be reached with the buttons beside the matrix.`,
        x: t.start,
        series: [
          { label: merged ? `${label}, mean` : label, values: mean, colour },
          ...(merged ? [{ label: "highest", values: most, colour: "soft" as const, dashed: true }] : []),
        ],
        height: 130,
        bands,
        sync: "time",
        choose: (index) => void this.go([index, index + 1]),
      });
    this.charts.push(chart("Amount C_A: events per cell of the matrix", "C_A", t.amount, t.amount_most, "accent"), chart("Heterogeneity C_H: 0 when all share alike, at most 2500", "C_H", t.heterogeneity, t.heterogeneity_most, "good"));
    const about = too_short
      ? "The run is too short to tell phases apart: that takes 100 slices."
      : phases.length > 1
        ? `${many(phases.length, "phase")}: choose one to see its matrix.`
        : "One phase: communication does not change enough for a second placement.";
    const timeline = picture("Over time",
      intro(`Above is how much the threads share (C_A), below how unevenly (C_H), slice by slice${merged ? `, ${t.slices_per_step} slices to a point` : ""}; click a point to see the matrix of that moment, drag to zoom, double-click to see all.`,
        "Where C_H jumps the pattern changes, and one placement for the whole run serves neither part well."),
      this.charts.map((c) => c.element),
      h("p", { class: "soft" }, about),
      phases.length > 1 ? this.phases(phases) : null,
      later("alternative", `As a table: ${many(t.start.length, merged ? "step" : "slice")}`, () => [sliceTable(t, (at) => void this.go([at, at + 1]))]));
    timeline.id = "timeline";
    return timeline;
  }

  private phases(phases: Phase[]): HTMLElement {
    const made = table<Phase>({
      caption: "Phases of communication",
      rows: phases,
      shown: 12,
      choose: (phase) => {
        made.mark(phase);
        void this.go([phase.first, phase.end]);
      },
      columns: [
        { title: "Phase", value: (p) => phases.indexOf(p) + 1, cell: (p) => `Phase ${phases.indexOf(p) + 1}` },
        { title: "From", number: true, value: (p) => p.start, cell: (p) => seconds(p.start) },
        { title: "Length", number: true, value: (p) => p.seconds, cell: (p) => seconds(p.seconds) },
        { title: "Events", number: true, value: (p) => p.figures.events, cell: (p) => count(p.figures.events) },
        { title: "C_A per second", number: true, value: (p) => p.figures.amount_per_second, cell: (p) => figure(p.figures.amount_per_second) },
        { title: "C_H", number: true, value: (p) => p.figures.heterogeneity, cell: (p) => figure(p.figures.heterogeneity) },
        { title: "C_H pairs", number: true, value: (p) => p.figures.heterogeneity_pairs, cell: (p) => figure(p.figures.heterogeneity_pairs) },
      ],
    });
    return made;
  }
}

function sliceTable(t: Timeline, show: (at: number) => void): HTMLElement {
  const made = table<number>({
    caption: "Communication over time",
    rows: t.start.map((_, at) => at),
    shown: 12,
    choose: (at) => {
      made.mark(at);
      show(at);
    },
    columns: [
      { title: "Slice", value: (at) => t.slice[at], cell: (at) => `Slice ${t.slice[at]}` },
      { title: "From (s)", number: true, value: (at) => t.start[at], cell: (at) => t.start[at].toFixed(3) },
      { title: "C_A", number: true, value: (at) => t.amount[at], cell: (at) => figure(t.amount[at]) },
      { title: "C_H", number: true, value: (at) => t.heterogeneity[at], cell: (at) => figure(t.heterogeneity[at]) },
      { title: "Threads", number: true, value: (at) => t.threads[at] },
    ],
  });
  return made;
}

/// Places where one process ends and another begins.
function borders(subject: Subject, order: number[]): number[] {
  const process = (place: number) => subject.threads[order[place]].process;
  const lines = order.map((_, place) => place).filter((place) => place > 0 && process(place) !== process(place - 1));
  // Where threads of processes alternate, lines between them say nothing.
  return lines.length < subject.processes.length ? lines : [];
}

/// Sums columns from .. to; `square` tables have a thread in each column, others pairs in rows.
function pairsOf(cells: Cells, threads: number, from: number, to: number, square: boolean): Pairs {
  const sums = new Map<number, number>();
  for (let c = from; c < to; c++) {
    for (let k = cells.starts[c]; k < cells.starts[c + 1]; k++) {
      const key = square ? c * threads + cells.row[k] : cells.row[k];
      sums.set(key, (sums.get(key) ?? 0) + cells.value(k));
    }
  }
  const keys = [...sums.keys()];
  const events = Float64Array.from(sums.values());
  let [max, total] = [0, 0];
  for (const value of events) {
    max = Math.max(max, value);
    total += value;
  }
  return {
    i: Uint32Array.from(keys, (key) => Math.floor(key / threads)),
    j: Uint32Array.from(keys, (key) => key % threads),
    events, max, total,
  };
}

interface Figure {
  name: string;
  value: number;
  shown: string;
  equation: string;
  meaning: string;
}

/// The metrics, with what they are computed from and what they mean.
function figures(c: CommunicationFigures, of: string): HTMLElement[] {
  const rows: Figure[] = [
    { name: "Heterogeneity C_H", value: c.heterogeneity, shown: figure(c.heterogeneity), equation: "mean over i of var(M[i]), max M = 100",
      meaning: `From ${figure(c.least_heterogeneity)} on it matters who is whose neighbour.` },
    { name: "C_H between pairs", value: c.heterogeneity_pairs, shown: figure(c.heterogeneity_pairs), equation: "the same without the diagonal",
      meaning: "0 when all share alike, whatever C_H says." },
    { name: "Amount C_A", value: c.amount_per_second, shown: `${count(c.amount_per_second)}\u00a0/s`, equation: "sum of M / T\u00b2, per second",
      meaning: `Below ${figure(c.least_amount_per_second)} there is too little to gain.` },
    { name: "Balance B_comm", value: c.balance / 100, shown: `${figure(c.balance)}\u00a0%`, equation: "(max / mean \u2212 1) of events per thread",
      meaning: "High: a few threads communicate much more; keep them apart." },
    { name: "Ratio R_comm", value: c.ratio, shown: figure(c.ratio), equation: "C_A / accesses", meaning: "Small: mostly private data." },
    { name: "Load balance", value: c.load_balance / 100, shown: `${figure(c.load_balance)}\u00a0%`, equation: "(max / mean \u2212 1) of instructions",
      meaning: "High: some threads work much more." },
  ];
  const list = h("dl", { class: "metrics" }, rows.map((row) =>
    h("div", { class: "metric" }, h("dt", {}, rich(row.name)), h("dd", { class: "value" }, row.shown),
      h("dd", { class: "equation" }, rich(row.equation)), h("dd", { class: "meaning" }, rich(row.meaning)))));
  const text = () => csvOf([
    { title: "Metric", value: (r) => r.name },
    { title: of, value: (r) => r.value },
    { title: "Equation", value: (r) => r.equation },
  ], rows);
  return [list, h("div", { class: "table-tools" }, h("button", { type: "button", class: "small csv", click: () => copy(text(), "Figures") }, "Copy as CSV"))];
}
