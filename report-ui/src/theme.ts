// Light and dark, and the colours of pictures. Ramps grow evenly from the paper's colour to
// the farthest from it, so that they read the same without hue: colour-blind or printed.

import { DECADES } from "./grid";

type Rgb = [number, number, number];

const RAMPS: Record<"light" | "dark", Rgb[]> = {
  light: [
    [226, 234, 242],
    [168, 198, 222],
    [96, 148, 193],
    [44, 95, 155],
    [24, 52, 104],
    [14, 20, 48],
  ],
  dark: [
    [36, 48, 66],
    [34, 82, 122],
    [38, 130, 142],
    [88, 180, 130],
    [190, 220, 96],
    [255, 250, 200],
  ],
};

/// Whether the page is dark now.
export function dark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen === "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

/// A colour of the style sheet.
export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/// 256 colours as the canvas has them, the first transparent.
export function ramp(linear: boolean): Uint32Array {
  const stops = RAMPS[dark() ? "dark" : "light"];
  const colours = new Uint32Array(256);
  for (let code = 1; code < 256; code++) {
    const log = (code - 1) / 254;
    const share = linear ? 10 ** ((log - 1) * DECADES) : log;
    const at = share * (stops.length - 1);
    const below = Math.min(Math.floor(at), stops.length - 2);
    const mix = (i: number) =>
      Math.round(stops[below][i] + (stops[below + 1][i] - stops[below][i]) * (at - below));
    colours[code] = packed([mix(0), mix(1), mix(2)]);
  }
  return colours;
}

/// One colour for whatever is there.
export function single(name: string): Uint32Array {
  const colours = new Uint32Array(256);
  colours.fill(packed(rgb(colour(name))), 1);
  return colours;
}

/// For the legend: CSS of the ramp from left to right.
export function gradient(): string {
  const stops = RAMPS[dark() ? "dark" : "light"].map((c) => `rgb(${c.join(" ")})`);
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

function packed([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

function rgb(text: string): Rgb {
  const hex = /^#(..)(..)(..)$/.exec(text);
  return hex ? [parseInt(hex[1], 16), parseInt(hex[2], 16), parseInt(hex[3], 16)] : [0, 0, 0];
}

const listeners: (() => void)[] = [];

/// Calls back when colours change.
export function onTheme(callback: () => void): void {
  listeners.push(callback);
}

const changed = () => listeners.forEach((callback) => callback());

export function choose(theme: "light" | "dark" | null): void {
  const root = document.documentElement;
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  changed();
}

/// Follows the system, and prints on white.
export function watch(): void {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  let before: string | undefined;
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    choose("light");
  });
  window.addEventListener("afterprint", () => choose((before as "light" | "dark") ?? null));
}
