// Unpacking of the page's big tables, see Grid in model.ts.
import type { Grid } from "./model";

/// A sparse table: cells of column c are at starts[c] .. starts[c + 1].
export interface Cells {
  columns: number;
  rows: number;
  /// Pages or slices in each column.
  merged: number;
  exact: boolean;
  max: number;
  starts: Uint32Array;
  row: Uint32Array;
  /// See coderOf.
  code: Uint8Array;
  value(cell: number): number;
}

export async function unpack(grid: Grid): Promise<Cells> {
  return decode(grid, await inflate(grid.data));
}

function unbase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as any).fromBase64;
  if (native) return native(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(text: string): Promise<Uint8Array> {
  const packed = new Blob([unbase64(text)]).stream();
  const stream = packed.pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function decode(grid: Grid, bytes: Uint8Array): Cells {
  let at = 0;
  const next = (): number => {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
  };
  const starts = new Uint32Array(grid.columns + 1);
  for (let c = 0; c < grid.columns; c++) starts[c + 1] = starts[c] + next();
  const row = new Uint32Array(grid.cells);
  for (let c = 0; c < grid.columns; c++) {
    let before = 0;
    for (let k = starts[c]; k < starts[c + 1]; k++) row[k] = before += next();
  }
  const { columns, rows, merged, max, step, cells } = grid;
  const shared = { columns, rows, merged, max, starts, row };
  const coder = coderOf(max);
  if (step > 0) {
    const raw = bytes.subarray(at, at + cells);
    const known = Array.from({ length: 256 }, (_, b) => Math.round(Math.exp(b * step)));
    const codes = Uint8Array.from(known, coder);
    const code = new Uint8Array(cells);
    for (let k = 0; k < cells; k++) code[k] = codes[raw[k]];
    return { ...shared, exact: false, code, value: (k) => known[raw[k]] };
  }
  const counts = new Float64Array(cells);
  for (let k = 0; k < cells; k++) counts[k] = next();
  return { ...shared, exact: true, code: coded(counts, coder), value: (k) => counts[k] };
}

/// Decades that a logarithmic scale shows: what is below looks alike, but not like nothing.
export const DECADES = 3;

/// Count -> 1 (a thousandth of `max` or less) to 255 (`max`) by its logarithm; 0 -> 0.
export function coderOf(max: number): (count: number) => number {
  const scale = 254 / (DECADES * Math.LN10);
  return (count) => (count <= 0 ? 0 : Math.max(1, 255 + Math.round(Math.log(count / max) * scale)));
}

export function coded(counts: Float64Array, coder: (count: number) => number): Uint8Array {
  const codes = new Uint8Array(counts.length);
  for (let k = 0; k < counts.length; k++) codes[k] = coder(counts[k]);
  return codes;
}

/// The count of one cell, 0 where there is none.
export function valueAt(cells: Cells, column: number, row: number): number {
  let low = cells.starts[column];
  let high = cells.starts[column + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells.row[middle] < row) low = middle + 1;
    else high = middle;
  }
  const found = low < cells.starts[column + 1] && cells.row[low] === row;
  return found ? cells.value(low) : 0;
}

/// Sums of columns.
export function columnSums(cells: Cells): Float64Array {
  const sums = new Float64Array(cells.columns);
  for (let c = 0; c < cells.columns; c++) {
    for (let k = cells.starts[c]; k < cells.starts[c + 1]; k++) sums[c] += cells.value(k);
  }
  return sums;
}
