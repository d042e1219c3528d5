// The head of the page and its first sentence.
import { h, rich, type Child } from "../dom";
import { bytes, count, figure, many, percent, seconds, written } from "../format";
import type { RunFigure, Subject } from "../model";
import { table } from "../table";
import { section } from "./section";

export function head(subject: Subject): HTMLElement {
  const { run } = subject;
  const facts = [
    many(subject.threads.length, "thread"),
    many(subject.processes.length, "process", "processes"),
    `${seconds(run.seconds)} ${run.online ? "observed while it ran" : "under the tracer"}`,
    `${count(run.reads + run.writes)} ${run.online ? "page faults, a sample of its accesses" : "accesses"}`,
    run.fetches === null ? null : `${count(run.fetches)} fetches`,
    `${bytes(run.footprint)} used`,
    run.end,
  ];
  const when = new Date(run.started * 1000);
  const made = `${run.host}, ${when.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}`;
  return h("header", { class: "head" },
    h("p", { class: "brand" }, "hither report"),
    h("h1", { title: run.command }, run.command || "A profile"),
    h("p", { class: "facts" }, facts.filter(Boolean).map((fact) => h("span", {}, fact))),
    h("p", { class: "facts made" }, h("span", {}, made), run.cpu ? h("span", {}, run.cpu) : null),
  );
}

export function verdict(subject: Subject): HTMLElement {
  const { verdict } = subject;
  const badge = (what: string, yes: boolean, undecided = false) =>
    h("li", { class: yes ? "yes" : "no" },
      h("span", { class: "sign", "aria-hidden": "true" }, yes ? "\u2192" : undecided ? "?" : "="),
      h("b", {}, what), yes ? " worth placing" : undecided ? " cannot tell" : " leave as they are");
  return section("verdict", "Verdict",
    h("p", { class: "sentence" }, verdict.sentence),
    h("ul", { class: "badges" }, badge("Threads", verdict.threads, verdict.threads_undecided), badge("Pages", verdict.data, verdict.data_undecided)),
    tiles(subject),
    h("div", { class: "columns" },
      h("div", {}, h("h3", {}, "Why"), list(verdict.reasons)),
      h("div", {}, h("h3", {}, "What can be gained"), list(verdict.gain))),
    verdict.figures.length ? deciding(verdict.figures) : null,
  );
}

const list = (texts: string[]): HTMLElement =>
  h("ul", { class: "plain" }, texts.map((text) => h("li", {}, rich(text))));

/// All that the verdict goes by.
function deciding(figures: RunFigure[]): HTMLElement {
  return h("div", { class: "figure" },
    h("h3", {}, "Figures that decide"),
    table<RunFigure>({
      caption: "Figures that decide",
      rows: figures,
      columns: [
        { title: "Figure", value: (f) => f.name, cell: (f) => [rich(f.name), h("span", { class: "was" }, rich(f.meaning))] },
        { title: "Value", number: true, value: (f) => f.value, cell: (f) => h("b", {}, written(f.unit, f.value)) },
        { title: "It takes", value: (f) => f.required ?? "" },
      ],
    }));
}

/// The main ones as pictures, each with its threshold.
function tiles(subject: Subject): HTMLElement {
  const { run, pages, communication } = subject;
  const c = communication.figures;
  const first = pages?.sizes[0]?.first_touch ?? null;
  const best = pages?.sizes[0]?.best.app ?? null;
  const log = (value: number, low: number, high: number) =>
    value <= 0 ? 0 : Math.min(1, Math.max(0, Math.log(value / low) / Math.log(high / low)));
  return h("div", { class: "tiles" },
    first && best !== null
      ? tile("Local accesses", [percent(first.local, 0), h("small", {}, " \u2192 "), percent(best, 0)],
          meter(first.local, best, `from ${percent(first.local)} to ${percent(best)}`),
          `by first touch \u2192 at most, ${many(run.nodes, "node")}`)
      : null,
    tile("Heterogeneity C_H", [figure(c.heterogeneity)],
      meter(log(c.heterogeneity, 1, 2500), log(c.least_heterogeneity, 1, 2500), "against the threshold"),
      `worth placing threads from ${figure(c.least_heterogeneity)}`),
    tile("Communication C_A", [count(c.amount_per_second), h("small", {}, " per second")],
      meter(log(c.amount_per_second, 1, 1e6), log(c.least_amount_per_second, 1, 1e6), "against the threshold"),
      `worth placing threads from ${figure(c.least_amount_per_second)}`),
    tile("Memory used", [bytes(run.footprint)],
      run.cache_bytes > 0
        ? meter(log(run.footprint, 4096, run.cache_bytes * 256), log(run.cache_bytes, 4096, run.cache_bytes * 256), "against the caches")
        : null,
      run.cache_bytes > 0 ? `all caches hold ${bytes(run.cache_bytes)}` : "the caches are not known"),
  );
}

function tile(title: string, value: Child[], picture: Child, note: string): HTMLElement {
  return h("div", { class: "tile" },
    h("p", { class: "name" }, rich(title)), h("p", { class: "value" }, value), picture, h("p", { class: "note" }, note));
}

/// A bar with a tick: shares of 0 to 1.
function meter(value: number, tick: number, label: string): HTMLElement {
  const bar = h("span", { class: "fill" });
  bar.style.width = `${(value * 100).toFixed(1)}%`;
  const mark = h("span", { class: "tick" });
  mark.style.left = `${(tick * 100).toFixed(1)}%`;
  return h("div", { class: "meter", role: "img", "aria-label": label }, bar, mark);
}
