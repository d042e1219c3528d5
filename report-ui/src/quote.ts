// Lines of the program's source that the profile keeps.
import { h } from "./dom";
import type { Quote, Subject } from "./model";

/// The lines around a place, that place marked; nothing where they were not kept.
export function quoted(subject: Subject, file: string, line: number): HTMLElement | null {
  const quote = find(subject, file, line);
  if (!quote) return null;
  return h("pre", { class: "quote", tabindex: 0, "aria-label": `Source, line ${line}` }, quote.lines.map((l) =>
    h("span", { class: l.line === line ? "meant" : "" },
      h("span", { class: "line-number" }, l.line), h(l.line === line ? "mark" : "span", {}, l.text || " "), "\n")));
}

/// The line alone.
export function quotedLine(subject: Subject, file: string, line: number): HTMLElement | null {
  const text = find(subject, file, line)?.lines.find((l) => l.line === line)?.text.trim();
  return text ? h("code", { class: "quoted-line" }, text) : null;
}

const find = (subject: Subject, file: string, line: number): Quote | undefined =>
  subject.quotes.find((quote) => quote.line === line && quote.file === file);
