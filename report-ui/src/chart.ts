// Lines over time, on uPlot: colours of the page, phases as bands, a step that is chosen.
import uPlot from "uplot";
import { h, rich } from "./dom";
import { figure, tidy } from "./format";
import { colour, onTheme } from "./theme";

export interface Series {
  label: string;
  values: number[];
  colour: "accent" | "warm" | "good" | "soft";
  bars?: boolean;
  dashed?: boolean;
}

export interface ChartOptions {
  /// What is drawn, and in which unit; above the picture.
  title: string;
  label: string;
  x: number[];
  series: Series[];
  height: number;
  /// Starts of phases, in seconds.
  bands?: number[];
  /// Lowest and highest value, where they are given by nature.
  range?: [number, number];
  format?(value: number): string;
  /// A point was clicked.
  choose?(index: number): void;
  sync?: string;
}

export class Chart {
  readonly element: HTMLElement;
  private readonly place: HTMLElement;
  private plot: uPlot | null = null;
  private chosen: [number, number] | null = null;
  private readonly options: ChartOptions;

  constructor(options: ChartOptions) {
    this.options = options;
    this.place = h("div", { class: "plot", role: "img", "aria-label": options.label });
    this.element = h("div", { class: "chart" }, h("p", { class: "chart-title" }, rich(options.title)), this.place);
    new ResizeObserver(() => this.size()).observe(this.place);
    onTheme(() => this.make());
  }

  /// Marks the points from .. to (not included).
  mark(range: [number, number] | null): void {
    this.chosen = range;
    this.plot?.redraw();
  }

  private size(): void {
    const width = this.place.clientWidth;
    if (!width) return;
    if (this.plot) this.plot.setSize({ width, height: this.options.height });
    else this.make();
  }

  private make(): void {
    const width = this.place.clientWidth;
    if (!width) return;
    this.plot?.destroy();
    const { options } = this;
    const format = options.format ?? figure;
    const axis = {
      stroke: colour("soft"),
      grid: { stroke: colour("line"), width: 1 },
      ticks: { stroke: colour("line"), width: 1, size: 4 },
      font: "11px system-ui, sans-serif",
    };
    const data = [options.x, ...options.series.map((s) => s.values)] as uPlot.AlignedData;
    this.plot = new uPlot(
      {
        width,
        height: options.height,
        padding: [8, 18, 0, 0],
        scales: { x: { time: false }, y: options.range ? { range: options.range } : { range: (_u, _min, max) => [0, max > 0 ? max * 1.08 : 1] } },
        cursor: { y: false, drag: { x: true, y: false, setScale: true }, sync: options.sync ? { key: options.sync } : undefined, points: { size: 6 } },
        legend: { live: true, isolate: false },
        axes: [
          { ...axis, size: 28, values: (_u, ticks) => ticks.map((t) => `${+t.toFixed(6)} s`) },
          { ...axis, size: 56, values: (_u, ticks) => ticks.map((t) => tidy(format(t))) },
        ],
        series: [
          { label: "Time", value: (_u, v) => (v === null ? "\u2013" : `${v.toFixed(3)} s`) },
          ...options.series.map((s) => this.series(s, format)),
        ],
        hooks: {
          drawClear: [(u) => this.behind(u)],
          init: [(u) => this.listen(u)],
        },
      },
      data,
      this.place,
    );
  }

  private series(s: Series, format: (v: number) => string): uPlot.Series {
    const stroke = colour(s.colour);
    return {
      label: h("span", {}, rich(s.label)),
      stroke,
      width: s.bars ? 0 : 1.5,
      dash: s.dashed ? [5, 4] : undefined,
      fill: s.bars ? stroke : undefined,
      paths: s.bars ? uPlot.paths.bars!({ size: [0.9, 40], align: 1 }) : undefined,
      points: { show: s.values.length < 40 && !s.bars, size: 5, fill: stroke },
      value: (_u, v) => (v === null ? "\u2013" : format(v)),
    };
  }

  private listen(u: uPlot): void {
    let pressed = 0;
    u.over.addEventListener("mousedown", (event) => (pressed = event.clientX));
    u.over.addEventListener("click", (event) => {
      // A drag zooms; only a click chooses.
      if (Math.abs(event.clientX - pressed) > 3 || u.cursor.idx == null) return;
      this.options.choose?.(this.index(u.posToVal(u.cursor.left ?? 0, "x")));
    });
  }

  /// The step that a time falls into.
  private index(time: number): number {
    const { x } = this.options;
    let at = x.findIndex((start) => start > time);
    if (at < 0) at = x.length;
    return Math.max(0, at - 1);
  }

  /// The longer text where there is room, or the shorter, or none.
  private name(u: uPlot, long: string, short: string, left: number, wide: number): void {
    const ratio = window.devicePixelRatio || 1;
    u.ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    u.ctx.fillStyle = colour("soft");
    const text = [long, short].find((t) => u.ctx.measureText(t).width + 8 * ratio < wide);
    if (text) u.ctx.fillText(text, left + 4 * ratio, u.bbox.top + 11 * ratio);
  }

  private behind(u: uPlot): void {
    const { left, top, width, height } = u.bbox;
    const at = (time: number) => Math.min(left + width, Math.max(left, u.valToPos(time, "x", true)));
    const { bands, x } = this.options;
    u.ctx.save();
    if (bands && bands.length > 1) {
      bands.forEach((start, i) => {
        const end = bands[i + 1] ?? Infinity;
        const wide = at(Math.min(end, u.scales.x.max ?? end)) - at(start);
        u.ctx.fillStyle = colour("band");
        if (i % 2 === 1) u.ctx.fillRect(at(start), top, wide, height);
        this.name(u, `Phase ${i + 1}`, String(i + 1), at(start), wide);
      });
    }
    if (this.chosen) {
      const [from, to] = this.chosen;
      const end = to < x.length ? x[to] : x[x.length - 1] + (x.length > 1 ? x[1] - x[0] : 1);
      u.ctx.fillStyle = colour("chosen");
      u.ctx.fillRect(at(x[from]), top, Math.max(2, at(end) - at(x[from])), height);
    }
    u.ctx.restore();
  }
}
