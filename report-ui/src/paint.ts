// Cells -> codes of pixels. A pixel that stands for many cells takes the largest, so that a
// hot one is seen at any zoom.
import type { Cells } from "./grid";

/// Which part is drawn how large: columns x0..x1 and rows y0..y1 on width x height pixels.
export interface View {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  width: number;
  height: number;
}

export type Paint = (view: View, out: Uint8Array) => void;

/// First pixel of every cell, and behind them that of the cell after the last: cells
/// `from..to` of one axis on `length` pixels. A cell has a pixel at least.
export function pixels(from: number, to: number, length: number, cells: number): Int32Array {
  const scale = length / (to - from);
  const starts = new Int32Array(cells + 1);
  for (let c = 0; c <= cells; c++) {
    const at = Math.floor((c - from) * scale + 1e-9);
    starts[c] = at < 0 ? 0 : at > length ? length : at;
  }
  return starts;
}

/// A sparse table, columns from left to right.
export function painter(cells: Cells): Paint {
  const coarse = cells.code.length > MANY ? pooled(cells) : null;
  return (view, out) => {
    const { width, height } = view;
    const rows = pixels(view.y0, view.y1, height, cells.rows);
    const scale = width / (view.x1 - view.x0);
    // Half a pixel of a merged column cannot be told from its place.
    if (coarse && scale * coarse.merged <= 0.5) {
      drawPooled(coarse, view, rows, out);
      return;
    }
    const first = Math.max(0, Math.floor(view.x0));
    const last = Math.min(cells.columns, Math.ceil(view.x1));
    const { starts, row, code } = cells;
    for (let c = first; c < last; c++) {
      let k = starts[c];
      const end = starts[c + 1];
      if (k === end) continue;
      const from = Math.max(0, Math.floor((c - view.x0) * scale));
      const to = Math.min(width, Math.max(from + 1, Math.floor((c + 1 - view.x0) * scale)));
      for (; k < end; k++) {
        const value = code[k];
        const top = rows[row[k]];
        if (top >= height) continue;
        const bottom = Math.max(rows[row[k] + 1], top + 1);
        for (let y = top; y < bottom; y++) {
          const line = y * width;
          for (let x = from; x < to; x++) if (out[line + x] < value) out[line + x] = value;
        }
      }
    }
  };
}

/// Above this many cells the whole is drawn from a table with merged columns.
const MANY = 500_000;
/// Columns of that table at most: some for each pixel.
const POOLED = 8192;

/// Largest codes of `merged` columns together, row by row.
interface Pooled {
  merged: number;
  columns: number;
  rows: number;
  codes: Uint8Array;
}

function pooled(cells: Cells): Pooled {
  const merged = 2 ** Math.ceil(Math.log2(Math.max(1, cells.columns / POOLED)));
  const columns = Math.ceil(cells.columns / merged);
  const codes = new Uint8Array(columns * cells.rows);
  const { starts, row, code } = cells;
  for (let c = 0; c < cells.columns; c++) {
    const column = Math.floor(c / merged);
    for (let k = starts[c]; k < starts[c + 1]; k++) {
      const at = row[k] * columns + column;
      if (codes[at] < code[k]) codes[at] = code[k];
    }
  }
  return { merged, columns, rows: cells.rows, codes };
}

function drawPooled(table: Pooled, view: View, rows: Int32Array, out: Uint8Array): void {
  const { merged, columns, codes } = table;
  const { x0, x1, width, height } = view;
  const first = Math.max(0, Math.floor(x0 / merged));
  const last = Math.min(columns, Math.ceil(x1 / merged));
  const scale = width / (x1 - x0);
  const at = new Int32Array(columns);
  for (let c = first; c < last; c++) {
    at[c] = Math.min(width - 1, Math.max(0, Math.floor(((c + 0.5) * merged - x0) * scale)));
  }
  for (let r = 0; r < table.rows; r++) {
    const top = rows[r];
    if (top >= height) continue;
    const bottom = Math.max(rows[r + 1], top + 1);
    for (let y = top; y < bottom; y++) {
      const line = y * width;
      for (let c = first, k = r * columns + first; c < last; c++, k++) {
        if (out[line + at[c]] < codes[k]) out[line + at[c]] = codes[k];
      }
    }
  }
}

/// One row of values as columns of their height, `most` being full.
export function skyline(values: Float64Array, most: number): Paint {
  return ({ x0, x1, width, height }, out) => {
    const scale = width / (x1 - x0);
    const last = Math.min(values.length, Math.ceil(x1));
    const highest = new Float64Array(width);
    for (let c = Math.max(0, Math.floor(x0)); c < last; c++) {
      const from = Math.max(0, Math.floor((c - x0) * scale));
      const to = Math.min(width, Math.max(from + 1, Math.floor((c + 1 - x0) * scale)));
      for (let x = from; x < to; x++) if (highest[x] < values[c]) highest[x] = values[c];
    }
    for (let x = 0; x < width; x++) {
      if (highest[x] <= 0) continue;
      const top = height - Math.max(1, Math.round((highest[x] / most) * height));
      for (let y = top; y < height; y++) out[y * width + x] = 255;
    }
  };
}

/// Pairs of a symmetric table at the places `at` of their threads.
export function pairPainter(
  i: Uint32Array,
  j: Uint32Array,
  code: Uint8Array,
  at: Uint32Array,
  size: number,
): Paint {
  return (view, out) => {
    const { width, height } = view;
    const xs = pixels(view.x0, view.x1, width, size);
    const ys = pixels(view.y0, view.y1, height, size);
    const cell = (column: number, line: number, value: number) => {
      if (column + 1 < view.x0 || column > view.x1 || line + 1 < view.y0 || line > view.y1) return;
      const right = Math.min(width, Math.max(xs[column + 1], xs[column] + 1));
      const bottom = Math.min(height, Math.max(ys[line + 1], ys[line] + 1));
      for (let y = ys[line]; y < bottom; y++) {
        for (let x = xs[column]; x < right; x++) {
          if (out[y * width + x] < value) out[y * width + x] = value;
        }
      }
    };
    for (let k = 0; k < code.length; k++) {
      const [a, b] = [at[i[k]], at[j[k]]];
      cell(a, b, code[k]);
      cell(b, a, code[k]);
    }
  };
}
