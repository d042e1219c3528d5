// What was found, worst first.
import { copy, h } from "../dom";
import { percent, place } from "../format";
import type { Finding, FindingKind, Picture, Subject } from "../model";
import { section } from "./section";

const KINDS: Record<FindingKind, string> = {
  "first-touch": "First touch",
  "shared-by-all": "Shared by all",
  concentrated: "Few hot pages",
  "false-sharing": "False sharing",
  "read-mostly": "Read mostly",
  "node-imbalance": "Nodes out of balance",
  "remote-accesses": "Remote accesses",
  "communication-imbalance": "Communication out of balance",
  "unstable-phases": "Unstable phases",
  "fits-in-caches": "Fits in the caches",
  "large-pages": "Large pages",
};

const PLACES: Record<string, string> = {
  machine: "Show the machine",
  communication: "Show the matrix",
  timeline: "Show it over time",
  pages: "Show page usage",
  structure: "Show its pages",
};

export function findings(subject: Subject, show: (picture: Picture) => void): HTMLElement {
  const found = [...subject.findings].sort((a, b) => b.severity - a.severity);
  const body = found.length
    ? h("ol", { class: "findings" }, found.map((finding) => card(finding, subject, show)))
    : h("p", { class: "nothing" }, h("span", { class: "sign", "aria-hidden": "true" }, "\u2713"),
        " Nothing wrong was found in this profile.");
  return section("findings", "Findings", body);
}

function card(finding: Finding, subject: Subject, show: (picture: Picture) => void): HTMLElement {
  const structure = subject.structures.rows.find((row) => row.object === finding.object);
  const level = finding.severity >= 0.5 ? "high" : finding.severity >= 0.1 ? "middle" : "low";
  const bar = h("span", { class: "fill" });
  bar.style.width = `${Math.round(finding.severity * 100)}%`;
  return h("li", { class: `finding ${level}` },
    h("p", { class: "kind" }, KINDS[finding.kind] ?? finding.kind,
      h("span", { class: "share" }, h("span", { class: "severity", "aria-hidden": "true" }, bar),
        ` ${percent(finding.severity, 0)} of ${finding.measured}`)),
    h("h3", {}, finding.title),
    h("ul", { class: "evidence" }, finding.evidence.map((text) => h("li", {}, text))),
    structure
      ? h("p", { class: "where" }, h("code", {}, structure.name), structure.type_name ? [" ", h("code", { class: "soft" }, structure.type_name)] : null,
          structure.site ? [" at ", h("code", { title: structure.site.file }, place(structure.site.file, structure.site.line)),
            structure.site.function ? ` in ${structure.site.function}` : null] : null)
      : null,
    finding.lines.length
      ? [h("p", { class: "label" }, "Used most at"), h("ul", { class: "lines" }, finding.lines.map((line) =>
          h("li", {}, h("span", { class: "number" }, percent(line.share, 0)), " ",
            h("code", { title: line.file }, place(line.file, line.line)), line.function ? ` ${line.function}` : null)))]
      : null,
    finding.fixes.length ? h("p", { class: "label" }, "What to change") : null,
    finding.fixes.map((fix) =>
      h("div", { class: "fix" }, h("p", {}, fix.what),
        fix.copy ? h("div", { class: "code" }, h("pre", { tabindex: 0 }, fix.copy),
          h("button", { type: "button", class: "small", click: () => copy(fix.copy, "The fix") }, "Copy")) : null)),
    h("button", { type: "button", class: "link", click: () => show(finding.picture) }, `${PLACES[finding.picture.panel]} \u2193`),
  );
}
