// A picture of one or several heat maps over one another that share their columns: canvas,
// zoom, keyboard, and a line that says in words what is under the pointer.
import { axisBottom } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { select, type Selection } from "d3-selection";
import { zoom, zoomIdentity, zoomTransform, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import { fresh, h, svg } from "./dom";
import { whole } from "./format";
import type { Paint, View } from "./paint";
import { colour, onTheme } from "./theme";

/// One heat map.
export interface Band {
  title: string;
  rows: number;
  /// CSS pixels.
  height: number;
  paint: Paint;
  /// Colours of codes, asked for at every drawing.
  colours(): Uint32Array;
  label(row: number): string;
  /// A bar to the right of each row, 0 to 1, and where to mark their mean.
  bars?: { title: string; values: number[]; mean: number };
  /// Drawn at its height in pixels, not in rows.
  fine?: boolean;
  /// A dashed line, 0 at the bottom, 1 at the top.
  level?: number;
  /// Lines before these rows (and columns, where both are zoomed).
  borders?: number[];
}

export interface HeatOptions {
  /// What the picture is, for those who do not see it.
  label: string;
  columns: number;
  columnTitle: string;
  columnLabel(column: number): string;
  bands: Band[];
  /// Rows are zoomed together with columns: for square tables of one band.
  square: boolean;
  describe(band: number, column: number, row: number): string;
}

const LEFT = 120;
const RIGHT = 92;
const AXIS = 40;
const GAP = 26;
/// CSS pixels of a cell at the closest zoom.
const CLOSEST = 28;
const STEP = 2;

/// CSS pixels from one label of a row to the next.
const LABEL = 13;

/// The next of 1, 2, 5, 10, 20, 50 ...
function round(n: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, n)));
  return power * [1, 2, 5, 10].find((step) => step * power >= n)!;
}

interface Cursor {
  band: number;
  column: number;
  row: number;
}

export class Heat {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas");
  private readonly over = svg("svg", { "aria-hidden": "true", preserveAspectRatio: "none" });
  private readonly plot: HTMLElement;
  private readonly readout = h("output", { class: "readout", "aria-live": "polite" });
  private readonly zoomer: ZoomBehavior<HTMLElement, unknown>;
  private readonly area: Selection<HTMLElement, unknown, null, undefined>;
  private options: HeatOptions;
  private width = 0;
  private margin = 30;
  private cursor: Cursor | null = null;
  private frame = 0;

  constructor(options: HeatOptions) {
    this.options = options;
    const hint = fresh("hint");
    this.plot = h("div", {
      class: "heat-plot",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "heat map",
      "aria-describedby": hint,
    });
    this.plot.append(this.canvas, this.over);
    const button = (name: string, text: string, act: () => void) =>
      h("button", { type: "button", class: "small", title: name, "aria-label": name, click: act }, text);
    const tools = h(
      "div",
      { class: "heat-tools" },
      button("Zoom in", "+", () => this.scale(STEP)),
      button("Zoom out", "\u2212", () => this.scale(1 / STEP)),
      button("Show all", "All", () => this.reset()),
      h("span", { class: "hint", id: hint },
        h("span", { class: "keys" }, "Ctrl + wheel, arrow keys, +, \u2212 and 0, or "), "pinch to zoom, drag to move"),
    );
    this.element = h("div", { class: "heat" }, this.plot, this.readout, tools);
    this.area = select<HTMLElement, unknown>(this.plot);
    this.zoomer = zoom<HTMLElement, unknown>()
      .filter((event) => this.zooms(event))
      .on("zoom", () => this.redraw());
    this.area.call(this.zoomer).on("wheel.page", (event: WheelEvent) => {
      if (event.ctrlKey || event.metaKey) event.preventDefault();
    });
    this.plot.addEventListener("pointermove", (event) => this.point(event));
    this.plot.addEventListener("pointerdown", (event) => this.point(event));
    this.plot.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.element);
    onTheme(() => this.redraw());
    this.show(options);
  }

  /// Shows something else, at its whole size unless `keep`.
  show(options: HeatOptions, keep = false): void {
    const same = keep && options.columns === this.options.columns;
    this.options = options;
    this.plot.setAttribute("aria-label", options.label);
    const lengths = options.bands.flatMap((b) => Array.from({ length: Math.min(b.rows, 2048) }, (_, row) => b.label(row).length));
    this.margin = 16 + Math.max(2, ...lengths) * 6.8;
    if (!same) {
      this.cursor = null;
      this.readout.textContent = "Point at a cell, or reach it with the arrow keys, to read it here.";
      this.readout.classList.add("waiting");
      this.resize(true);
      this.reset();
    }
    if (this.cursor) this.tell();
    this.redraw();
  }

  private zooms(event: any): boolean {
    if (event.type === "wheel") return event.ctrlKey || event.metaKey;
    if (event.type === "touchstart") return event.touches.length > 1 || this.transform().k > 1;
    return !event.button && !event.ctrlKey;
  }

  private transform(): ZoomTransform {
    return zoomTransform(this.plot);
  }

  private closest(): number {
    return Math.max(1, (this.options.columns * CLOSEST) / Math.max(1, this.inner()));
  }

  /// Room for the longest label.
  private left(): number {
    return Math.min(this.element.clientWidth < 520 ? 64 : LEFT, this.margin);
  }

  private right(): number {
    if (!this.options.bands.some((band) => band.bars)) return 12;
    return this.element.clientWidth < 520 ? 36 : RIGHT;
  }

  private inner(): number {
    const room = Math.max(40, this.width - this.left() - this.right());
    return this.options.square ? Math.min(room, this.options.bands[0].height) : room;
  }

  /// Height of a band; a square picture is as high as it is wide.
  private tall(band: Band): number {
    return this.options.square ? this.inner() : band.height;
  }

  private tops(): number[] {
    let top = 0;
    return this.options.bands.map((band) => {
      top += band.title ? GAP : 4;
      const mine = top;
      top += this.tall(band);
      return mine;
    });
  }

  private total(): number {
    const heights = this.options.bands.map((b) => this.tall(b) + (b.title ? GAP : 4));
    return heights.reduce((a, b) => a + b, 0) + AXIS;
  }

  private resize(force = false): void {
    const width = this.element.clientWidth;
    if (!force && width === this.width) return;
    this.width = width;
    const inner = this.inner();
    const height = this.options.square ? inner : 1;
    this.zoomer
      .scaleExtent([1, this.closest()])
      .extent([[0, 0], [inner, height]])
      .translateExtent([[0, 0], [inner, height]]);
    this.area.call(this.zoomer.transform, this.transform());
    this.redraw();
  }

  private reset(): void {
    this.area.call(this.zoomer.transform, zoomIdentity);
  }

  private scale(factor: number): void {
    const { cursor } = this;
    const inner = this.inner();
    const at: [number, number] = [inner / 2, this.tall(this.options.bands[0]) / 2];
    if (cursor) {
      const view = this.view(cursor.band);
      at[0] = ((cursor.column + 0.5 - view.x0) / (view.x1 - view.x0)) * inner;
      if (this.options.square) {
        const share = (cursor.row + 0.5 - view.y0) / (view.y1 - view.y0);
        at[1] = share * this.tall(this.options.bands[0]);
      }
    }
    this.area.call(this.zoomer.scaleBy, factor, at);
  }

  private view(band: number): View {
    const { columns, bands, square } = this.options;
    const { x, y, k } = this.transform();
    const inner = this.inner();
    const { rows } = bands[band];
    const height = this.tall(bands[band]);
    const span = columns / k;
    const x0 = Math.min(Math.max(0, (-x / k / inner) * columns), columns - span);
    const y0 = square ? Math.min(Math.max(0, (-y / k / height) * rows), rows - rows / k) : 0;
    const y1 = square ? y0 + rows / k : rows;
    return { x0, x1: x0 + span, y0, y1, width: inner, height };
  }

  redraw(): void {
    if (this.frame || !this.width) return;
    this.frame = requestAnimationFrame(() => this.finish());
  }

  private finish(): void {
    this.frame = 0;
    const start = performance.now();
    this.draw();
    const end = performance.now();
    this.element.dataset.drawn = (end - start).toFixed(1);
    this.element.dataset.first ??= end.toFixed(0);
  }

  private draw(): void {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [this.width, this.total()];
    const { canvas } = this;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d")!;
    context.imageSmoothingEnabled = false;
    const tops = this.tops();
    this.options.bands.forEach((band, at) => {
      this.heat(context, at, tops[at], ratio);
      if (band.bars) this.bars(context, band, tops[at], ratio);
    });
    this.overlay(tops);
    // What a test, or a curious reader, may want to know: columns seen, and where the last
    // band lies.
    const last = this.options.bands.length - 1;
    const view = this.view(last);
    this.element.dataset.view = `${view.x0} ${view.x1}`;
    this.element.dataset.frame = `${this.left()} ${view.width} ${tops[last]} ${view.height}`;
  }

  private heat(context: CanvasRenderingContext2D, at: number, top: number, ratio: number): void {
    const band = this.options.bands[at];
    const view = this.view(at);
    const width = Math.round(view.width * ratio);
    const full = Math.round(view.height * ratio);
    const height = this.options.square || band.fine ? full : Math.min(band.rows, full);
    const codes = new Uint8Array(width * height);
    band.paint({ ...view, width, height }, codes);
    const image = new ImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = band.colours();
    for (let p = 0; p < codes.length; p++) pixels[p] = colours[codes[p]];
    const sheet = document.createElement("canvas");
    sheet.width = width;
    sheet.height = height;
    sheet.getContext("2d")!.putImageData(image, 0, 0);
    const [x, y] = [Math.round(this.left() * ratio), Math.round(top * ratio)];
    context.fillStyle = colour("plot");
    context.fillRect(x, y, width, full);
    context.drawImage(sheet, x, y, width, full);
    if (band.level !== undefined) {
      const line = y + full * (1 - band.level);
      dashed(context, ratio, x, line, x + width, line);
    }
    context.strokeStyle = colour("soft");
    context.lineWidth = 1;
    for (const border of band.borders ?? []) {
      const line = Math.round(((border - view.y0) / (view.y1 - view.y0)) * full) + 0.5;
      if (line > 0 && line < full) stroke(context, x, y + line, x + width, y + line);
      const column = Math.round(((border - view.x0) / (view.x1 - view.x0)) * width) + 0.5;
      if (this.options.square && column > 0 && column < width) {
        stroke(context, x + column, y, x + column, y + full);
      }
    }
  }

  private bars(context: CanvasRenderingContext2D, band: Band, top: number, ratio: number): void {
    const { values, mean } = band.bars!;
    const x = (this.width - this.right() + 8) * ratio;
    const room = (this.right() - 12) * ratio;
    const line = (band.height * ratio) / band.rows;
    context.fillStyle = colour("bar");
    values.forEach((value, row) => {
      const gap = line >= 4 ? 1 : 0;
      context.fillRect(x, top * ratio + row * line + gap, value * room, Math.max(1, line - 2 * gap));
    });
    const at = x + mean * room;
    dashed(context, ratio, at, top * ratio - 3, at, (top + band.height) * ratio + 3);
  }

  private overlay(tops: number[]): void {
    const { bands, columns } = this.options;
    const left = this.left();
    const over = this.over;
    over.replaceChildren();
    over.setAttribute("viewBox", `0 0 ${this.width} ${this.total()}`);
    const view = this.view(0);
    bands.forEach((band, at) => this.labels(band, this.view(at), tops[at]));
    const scale = scaleLinear().domain([view.x0, view.x1]).range([0, view.width]);
    const bottom = this.total() - AXIS;
    const group = svg("g", { transform: `translate(${left},${bottom + 4})`, class: "axis" });
    over.append(group);
    const apart = this.options.square ? 30 : 90;
    const ticks = scale.ticks(Math.max(2, Math.min(this.options.square ? 40 : 9, view.width / apart)));
    const whole = ticks.filter((t) => Number.isInteger(t) && t < columns);
    const centre = view.width / (view.x1 - view.x0) > 6 ? 0.5 : 0;
    const axis = axisBottom(scaleLinear().domain([view.x0 - centre, view.x1 - centre]).range([0, view.width]))
      .tickValues(whole)
      .tickFormat((value) => this.options.columnLabel(Number(value)))
      .tickSizeOuter(0);
    select<SVGGElement, unknown>(group as SVGGElement).call(axis);
    const title = svg("text", { x: left + view.width / 2, y: bottom + AXIS - 3, class: "axis-title" }, this.options.columnTitle);
    over.append(title);
    if (this.cursor) this.mark(tops);
  }

  private labels(band: Band, view: View, top: number): void {
    const left = this.left();
    if (band.title) {
      this.over.append(svg("text", { x: left, y: top - 8, class: "band-title" }, band.title));
    }
    if (band.bars && this.width >= 520) {
      const x = this.width - this.right() + 8;
      this.over.append(svg("text", { x, y: top - 8, class: "bars-title" }, band.bars.title));
    }
    const line = view.height / (view.y1 - view.y0);
    const every = round(Math.ceil(LABEL / line));
    const longest = Math.floor((left - 6) / 6.4);
    for (let row = Math.ceil(view.y0 / every) * every; row < Math.min(view.y1, band.rows); row += every) {
      const y = top + (row + 0.5 - view.y0) * line;
      if (y < top || y > top + view.height) continue;
      const text = band.label(row);
      const short = text.length > longest ? `${text.slice(0, longest - 1)}\u2026` : text;
      this.over.append(svg("text", { x: left - 6, y: y + 3.5, class: "row-label" }, short));
    }
  }

  private mark(tops: number[]): void {
    const { band, column, row } = this.cursor!;
    const view = this.view(band);
    const { height } = view;
    const [w, t] = [view.width / (view.x1 - view.x0), height / (view.y1 - view.y0)];
    const x = this.left() + (column - view.x0) * w;
    const y = tops[band] + (row - view.y0) * t;
    if (x + w < this.left() || x > this.left() + view.width) return;
    if (y + t < tops[band] - 1 || y > tops[band] + height + 1) return;
    const box = { x: x - 1, y: y - 1, width: Math.max(w, 2) + 2, height: Math.max(t, 2) + 2 };
    this.over.append(svg("rect", { ...box, class: "mark" }));
  }

  private point(event: PointerEvent): void {
    const box = this.plot.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - this.left(), event.clientY - box.top];
    const tops = this.tops();
    const { bands } = this.options;
    const band = bands.findIndex((b, at) => y >= tops[at] && y < tops[at] + this.tall(b));
    if (band < 0 || x < 0 || x >= this.inner()) return;
    const view = this.view(band);
    const column = Math.floor(view.x0 + (x / view.width) * (view.x1 - view.x0));
    const row = Math.floor(view.y0 + ((y - tops[band]) / view.height) * (view.y1 - view.y0));
    this.cursor = { band, column, row };
    this.tell();
    this.redraw();
  }

  private tell(): void {
    const { band, column, row } = this.cursor!;
    this.readout.classList.remove("waiting");
    this.readout.textContent = this.options.describe(band, column, row);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const move = moves[event.key];
    if (move) this.move(move[0], move[1], event.shiftKey);
    else if (event.key === "+" || event.key === "=") this.scale(STEP);
    else if (event.key === "-") this.scale(1 / STEP);
    else if (event.key === "0") this.reset();
    else if (event.key === "Home") this.move(-Infinity, 0, false);
    else if (event.key === "End") this.move(Infinity, 0, false);
    else return;
    event.preventDefault();
  }

  /// Moves the cursor; a step is a pixel's worth of columns, ten with shift.
  private move(dx: number, dy: number, far: boolean): void {
    const { bands, columns } = this.options;
    const last = bands.length - 1;
    const start = { band: last, column: Math.floor(this.view(last).x0), row: 0 };
    const cursor = this.cursor ?? start;
    const view = this.view(cursor.band);
    const perPixel = Math.max(1, Math.ceil((view.x1 - view.x0) / view.width));
    const stride = perPixel * (far ? 10 : 1);
    let { band, row } = cursor;
    const column = Math.min(columns - 1, Math.max(0, cursor.column + (dx ? dx * stride : 0)));
    row += dy * (far ? 10 : 1);
    if (row < 0 && band > 0) row = bands[--band].rows - 1;
    if (row >= bands[band].rows && band < last) {
      band += 1;
      row = 0;
    }
    row = Math.min(bands[band].rows - 1, Math.max(0, row));
    this.cursor = { band, column, row };
    this.follow();
    this.tell();
    this.redraw();
  }

  /// Moves the picture so that the cursor is seen.
  private follow(): void {
    const { band, column, row } = this.cursor!;
    const view = this.view(band);
    const { k } = this.transform();
    const cell = this.inner() / (view.x1 - view.x0);
    let [dx, dy] = [0, 0];
    if (column < view.x0) dx = (view.x0 - column) * cell;
    if (column + 1 > view.x1) dx = (view.x1 - column - 1) * cell;
    if (this.options.square) {
      const line = view.height / (view.y1 - view.y0);
      if (row < view.y0) dy = (view.y0 - row) * line;
      if (row + 1 > view.y1) dy = (view.y1 - row - 1) * line;
    }
    if (dx || dy) this.area.call(this.zoomer.translateBy, dx / k, dy / k);
  }
}

function dashed(context: CanvasRenderingContext2D, ratio: number, x0: number, y0: number, x1: number, y1: number): void {
  context.strokeStyle = colour("warm");
  context.lineWidth = 1.5 * ratio;
  context.setLineDash([4 * ratio, 3 * ratio]);
  stroke(context, x0, y0, x1, y1);
  context.setLineDash([]);
}

function stroke(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/// `page 513 of 2,048`
export const nth = (what: string, at: number, of: number): string =>
  `${what} ${whole(at)} of ${whole(of)}`;
