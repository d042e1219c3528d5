// Page usage: exclusivity by page size, first touch, moves over time.
import { Chart } from "../chart";
import { h, rich } from "../dom";
import { bytes, many, percent, whole } from "../format";
import type { PageSizeFigures, Subject } from "../model";
import { table } from "../table";
import { choice, intro, later, picture, section } from "./section";

export function pages(subject: Subject): HTMLElement {
  const { pages, run } = subject;
  if (!pages) return section("pages", "Pages", h("p", { class: "missing" }, "No page use was recorded."));
  const counted = h("p", { class: "soft" }, `Counted on ${many(run.nodes, "NUMA node")}, ${run.nodes_from}.`);
  return section("pages", "Pages", counted, exclusivity(pages.sizes), firstTouch(pages.sizes), overTime(subject));
}

function exclusivity(sizes: PageSizeFigures[]): HTMLElement {
  const place = h("div", { class: "histograms" });
  const draw = (weighted: boolean) => place.replaceChildren(...sizes.map((size) => histogram(size, weighted)));
  draw(false);
  return picture("How exclusive pages are",
    intro("The further right a bar, the more of a page's accesses come from the threads of one node; each picture has another size of page.",
      "Pages on the right have a node where they belong, those on the left are shared by all, and bars that move left as pages grow say that large pages mix what threads use apart."),
    choice("Count", [["pages", "Pages"], ["accesses", "Accesses"]], "pages", (value) => draw(value === "accesses")),
    place,
    later("alternative", "As a table", () => [table({
      caption: "Pages by exclusivity",
      rows: sizes.flatMap((size) => size.best.histogram_pages.map((_, bin) => ({ size, bin }))),
      shown: 11,
      columns: [
        { title: "Page size", value: (r) => bytes(r.size.bytes) },
        { title: "Exclusivity", number: true, value: (r) => r.bin / 10, cell: (r) => percent(r.bin / 10, 0) },
        { title: "Pages", number: true, value: (r) => r.size.best.histogram_pages[r.bin], cell: (r) => whole(r.size.best.histogram_pages[r.bin]) },
        { title: "Accesses", number: true, value: (r) => r.size.best.histogram_accesses[r.bin], cell: (r) => whole(r.size.best.histogram_accesses[r.bin]) },
      ],
    })]));
}

function histogram(size: PageSizeFigures, weighted: boolean): HTMLElement {
  const values = weighted ? size.best.histogram_accesses : size.best.histogram_pages;
  const total = Math.max(1, values.reduce((a, b) => a + b, 0));
  const most = Math.max(...values, 1);
  const bars = values.map((value, bin) => {
    const bar = h("i", { class: value > 0 ? "some" : "" });
    bar.style.height = `${(value / most) * 100}%`;
    const share = value / total;
    return h("span", { class: "bin", title: `${bin * 10} %: ${whole(value)} (${percent(share)})` },
      h("small", {}, share >= 0.005 ? percent(share, 0) : ""), bar);
  });
  const label = `Exclusivity of ${bytes(size.bytes)} pages: ${values.map((v, bin) => `${bin * 10} %: ${whole(v)}`).filter((_, i) => values[i] > 0).join("; ")}`;
  return h("div", { class: "histogram" },
    h("p", { class: "name" }, h("b", {}, `${bytes(size.bytes)} pages`), `, ${many(size.pages, "page")}`),
    h("div", { class: "bins", role: "img", "aria-label": label }, bars),
    h("div", { class: "bin-axis", "aria-hidden": "true" }, h("span", {}, "0\u00a0%"), h("span", {}, "exclusivity"), h("span", {}, "100\u00a0%")),
    h("p", { class: "note" }, rich("E_app "), h("b", {}, percent(size.best.app)), ", threads placed worst ", h("b", {}, percent(size.worst.app))));
}

function firstTouch(sizes: PageSizeFigures[]): HTMLElement {
  return picture("How right first touch is",
    intro("\u201cOf pages\u201d is the share of pages that lie on the node that uses them most, \u201cof accesses\u201d the same weighted with how much they are used, and \u201clocal\u201d the share of accesses that stay on their node.",
      "If \u201cof accesses\u201d is well below \u201cof pages\u201d, a few busy pages are in the wrong place; the gap between \u201clocal\u201d and \u201cat most\u201d is what a placement of pages can win."),
    table({
      caption: "Accuracy of first touch",
      rows: sizes,
      columns: [
        { title: "Page size", value: (s) => s.bytes, cell: (s) => bytes(s.bytes) },
        { title: "Of pages", hint: "Acc_page", number: true, value: (s) => s.first_touch?.page ?? null, cell: (s) => percent(s.first_touch?.page ?? null) },
        { title: "Of accesses", hint: "Acc_app", number: true, value: (s) => s.first_touch?.app ?? null, cell: (s) => percent(s.first_touch?.app ?? null) },
        { title: "Local", number: true, value: (s) => s.first_touch?.local ?? null, cell: (s) => percent(s.first_touch?.local ?? null) },
        { title: "At most", hint: "E_app, threads at their best", number: true, value: (s) => s.best.app, cell: (s) => percent(s.best.app) },
      ],
    }));
}

function overTime(subject: Subject): HTMLElement {
  const { timeline: t } = subject.pages!;
  const read = intro("Above is the share of accesses that could be local in each moment (E_app), below how many pages would have to move then to be where they are used.",
    "Moves that go on through the whole run mean that no fixed place is right; a burst at the start is what placing pages once can save.");
  if (t.start.length < 2) {
    return picture("Over time", h("p", { class: "missing" }, "Page use was kept for the whole run only, so it cannot be shown over time."));
  }
  const exclusive = new Chart({ title: "E_app: accesses that could be local", label: "E_app over time. The table below has its figures.", x: t.start, height: 150, sync: "time", range: [0, 1],
    series: [{ label: "E_app", values: t.exclusivity, colour: "accent" }], format: (v) => `${Math.round(v * 100)} %` });
  const moves = new Chart({ title: "Pages that would have to move", label: "Page moves over time. The table below has its figures.", x: t.start, height: 150, sync: "time",
    series: [{ label: "pages that move", values: t.migrations, colour: "warm", bars: true }], format: (v) => whole(v) });
  return picture("Over time", read, exclusive.element, moves.element,
    h("p", { class: "soft" }, `${many(t.total, "move")} in all: ${many(t.moved_once, "page")} once, ${whole(t.moved_more)} more often.`),
    later("alternative", "As a table", () => [table({
      caption: "Pages over time",
      rows: t.start.map((_, at) => at),
      shown: 12,
      columns: [
        { title: "From (s)", number: true, value: (at) => t.start[at], cell: (at) => t.start[at].toFixed(3) },
        { title: "E_app", number: true, value: (at) => t.exclusivity[at], cell: (at) => percent(t.exclusivity[at]) },
        { title: "Pages that move", number: true, value: (at) => t.migrations[at], cell: (at) => whole(t.migrations[at]) },
      ],
    })]));
}
