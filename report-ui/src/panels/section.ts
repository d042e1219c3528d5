// What all panels share: a heading, and two sentences before each picture.
import { add, h, rich, type Child, type Children } from "../dom";

export function section(id: string, title: string, ...children: Children[]): HTMLElement {
  const heading = h("h2", { id: `${id}-title` }, title);
  return h("section", { id, "aria-labelledby": `${id}-title`, tabindex: -1 }, heading, ...children);
}

/// How to read a picture, and what problem it shows.
export function intro(read: string, problem: string): HTMLElement {
  return h("p", { class: "intro" }, rich(read), " ", rich(problem));
}

export function picture(title: string, about: HTMLElement, ...children: Children[]): HTMLElement {
  return h("div", { class: "figure" }, h("h3", {}, title), about, ...children);
}

/// What is only made when somebody opens it, for it may be long.
export function later(kind: string, summary: string, make: () => Child[]): HTMLDetailsElement {
  const details = h("details", { class: kind }, h("summary", {}, summary));
  details.addEventListener("toggle", () => add(details, make()), { once: true });
  return details;
}

/// A choice of one of several, as radio buttons that look like a switch.
export function choice<T extends string>(
  name: string,
  values: [T, string][],
  start: T,
  act: (value: T) => void,
): HTMLElement {
  const group = `${name}-${Math.random().toString(36).slice(2, 8)}`;
  const buttons = values.map(([value, text]) =>
    h("label", {}, h("input", { type: "radio", name: group, value, checked: value === start, change: () => act(value) }), h("span", {}, text)),
  );
  return h("fieldset", { class: "choice" }, h("legend", {}, name), buttons);
}
