// Numbers for people.
import type { Unit } from "./model";

const three = (value: number): string => {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
};

function scaled(value: number, step: number, units: string[]): string {
  let unit = 0;
  while (value >= step * 0.9995 && unit + 1 < units.length) {
    value /= step;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(value)}${units[0]}` : `${three(value)}${units[unit]}`;
}

/// `1.23 M`
export const count = (n: number): string =>
  scaled(n, 1000, ["", "\u00a0k", "\u00a0M", "\u00a0G", "\u00a0T", "\u00a0P", "\u00a0E"]);

/// `1.23 MiB`
export const bytes = (n: number): string =>
  tidy(scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].map((u) => `\u00a0${u}`)));

/// `30 k` for `30.0 k`, where figures are round.
export const tidy = (text: string): string => text.replace(/\.0+(?!\d)/, "");

/// All digits: `12,345`
export const whole = (n: number): string => Math.round(n).toLocaleString("en");

/// `12.3 %` of a share of 0 to 1.
export function percent(share: number | null, digits = 1): string {
  if (share === null) return "\u2013";
  const value = share * 100;
  if (value > 0 && value < 0.1) return "<\u00a00.1\u00a0%";
  return `${value.toFixed(value > 99.95 || value === 0 ? 0 : digits)}\u00a0%`;
}

/// A figure without unit.
export function figure(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 10_000) return count(value);
  if (size >= 0.095) return three(value);
  if (size >= 0.001) return value.toFixed(4);
  return value.toExponential(1);
}

/// A figure in its unit.
export function written(unit: Unit, value: number | null): string {
  if (value === null) return "\u2013";
  switch (unit) {
    case "share": return percent(value);
    case "percent": return `${figure(value)}\u00a0%`;
    case "bytes": return bytes(value);
    case "seconds": return seconds(value);
    case "count": return count(value);
    default: return figure(value);
  }
}

export function seconds(value: number): string {
  if (value >= 100) return `${value.toFixed(0)}\u00a0s`;
  if (value >= 1) return `${value.toFixed(2)}\u00a0s`;
  return `${(value * 1000).toFixed(value >= 0.1 ? 0 : 1)}\u00a0ms`;
}

/// `1 thread`, `8 threads`
export const many = (n: number, one: string, more = `${one}s`): string =>
  `${whole(n)}\u00a0${n === 1 ? one : more}`;

/// `file.c:12`, or as much of it as is known.
export function place(file: string, line: number): string {
  if (!file) return "?";
  return line > 0 ? `${base(file)}:${line}` : base(file);
}

/// The end of a path, which is what tells files apart.
export const base = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
