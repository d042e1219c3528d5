// What the colours of a heat map stand for.
import { fill, h } from "./dom";
import { count, tidy } from "./format";
import { DECADES } from "./grid";
import { gradient, onTheme } from "./theme";

export interface Legend {
  element: HTMLElement;
  set(max: number, linear: boolean): void;
}

export function legend(unit: string): Legend {
  const bar = h("span", { class: "ramp", "aria-hidden": "true" });
  const element = h("span", { class: "legend" });
  const colours = () => (bar.style.background = gradient());
  colours();
  onTheme(colours);
  return {
    element,
    set(max, linear) {
      const low = linear ? 0 : max / 10 ** DECADES;
      const least = low < 1 ? (linear ? "0" : "1") : `\u2264\u00a0${tidy(count(low))}`;
      fill(element, max > 0 ? [least, bar, `${tidy(count(max))} ${unit}`] : []);
    },
  };
}
