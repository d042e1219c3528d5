// Making elements. Texts always become text nodes: what comes from a profile is never
// read as markup.

export type Child = Node | string | number | null | undefined | false;
export type Children = Child | Children[];
type Value = string | number | boolean | null | undefined | ((event: any) => void);

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: Children[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  add(element, children);
  return element;
}

export function add(parent: Node, children: Children[]): void {
  for (const child of children) {
    if (Array.isArray(child)) add(parent, child);
    else if (child !== null && child !== undefined && child !== false) parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function svg(
  tag: string,
  attributes: Record<string, string | number> = {},
  ...children: (SVGElement | string)[]
): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, String(value));
  }
  for (const child of children) {
    element.appendChild(child instanceof Node ? child : document.createTextNode(child));
  }
  return element;
}

/// Puts `node` in place of what `place` holds.
export function fill(place: Element, ...children: Children[]): void {
  place.replaceChildren();
  add(place, children);
}

/// Text with commands as such, and the symbols of metrics as they are written: C_H with a small H below.
export function rich(text: string): Child[] {
  return text.split(/`(hither [^`]*)`/).flatMap((part, at) => (at % 2 === 1 ? [h("code", {}, part)] : symbols(part)));
}

function symbols(text: string): Child[] {
  return text.split(/\b((?:C|E|B|R|Acc)_(?:H|A|app|page|comm)\b)/).map((part, at) => {
    if (at % 2 === 0) return part;
    const [symbol, index] = part.split("_");
    return h("span", { class: "symbol" }, symbol, h("sub", {}, index));
  });
}

let used = 0;
/// A fresh id, to tie labels to what they name.
export function fresh(prefix: string): string {
  used += 1;
  return `${prefix}-${used}`;
}

/// Says something to those who listen to the page, and shows it for a moment.
export function say(text: string): void {
  let place = document.getElementById("said");
  if (!place) {
    place = h("div", { id: "said", role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  place.textContent = text;
  place.classList.add("shown");
  window.setTimeout(() => place.classList.remove("shown"), 1800);
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without permission or a clipboard: the old way.
    const area = h("textarea", { readonly: true, class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(`${what} copied.`);
}
