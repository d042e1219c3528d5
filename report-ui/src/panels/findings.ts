// What was found, worst first.
import { copy, h, rich } from "../dom";
import { many, percent, place } from "../format";
import type { Finding, FindingKind, FindingLine, Fix, Picture, Subject } from "../model";
import { structureOf } from "../names";
import { quoted, quotedLine } from "../quote";
import { table } from "../table";
import { later, section } from "./section";

export const KINDS: Record<FindingKind, string> = {
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

const PLACES: Record<Picture["panel"], string> = {
  machine: "Show the machine",
  communication: "Show the matrix",
  timeline: "Show it over time",
  pages: "Show page usage",
  structure: "Show its pages",
};

export function findings(subject: Subject, show: (picture: Picture) => void): HTMLElement {
  const number = new Map(subject.findings.map((finding, at) => [finding, at]));
  const found = [...subject.findings].sort((a, b) => b.severity - a.severity);
  if (!found.length) {
    return section("findings", "Findings", h("p", { class: "nothing" },
      h("span", { class: "sign", "aria-hidden": "true" }, "\u2713"), " Nothing wrong was found in this profile."));
  }
  return section("findings", "Findings",
    h("p", { class: "soft" }, "Worst first, by the share of the run that a finding concerns; that is not the time it costs."),
    h("ol", { class: "findings" }, found.map((finding) => card(finding, number.get(finding)!, subject, show))),
    later("alternative", `As a table: ${many(found.length, "finding")}`, () => [list(found, subject)]));
}

function card(finding: Finding, number: number, subject: Subject, show: (picture: Picture) => void): HTMLElement {
  const { severity } = finding;
  const level = severity >= 0.5 ? "high" : severity >= 0.1 ? "middle" : severity > 0 ? "low" : "settled";
  return h("li", { class: `finding ${level}`, id: `finding-${number}` },
    h("p", { class: "kind" }, KINDS[finding.kind] ?? finding.kind, share(finding)),
    h("h3", {}, rich(finding.title)),
    h("ul", { class: "evidence" }, finding.evidence.map((text) => h("li", {}, rich(text)))),
    where(finding, subject),
    finding.kind === "first-touch" ? touched(finding, subject) : null,
    finding.lines.length ? [h("p", { class: "label" }, "Used most at"), lines(finding.lines, subject)] : null,
    finding.fixes.length ? h("p", { class: "label" }, "What to change") : null,
    finding.fixes.map(fix),
    h("button", { type: "button", class: "link", click: () => show(finding.picture) }, PLACES[finding.picture.panel], h("span", { "aria-hidden": "true" }, " \u2193")),
  );
}

/// How bad it is; what is settled is not bad.
function share({ severity, severity_of: unit }: Finding): HTMLElement {
  if (severity <= 0) return h("span", { class: "share" }, h("span", { class: "sign", "aria-hidden": "true" }, "\u2713"), " Nothing to mend");
  const bar = h("span", { class: "fill" });
  bar.style.width = `${Math.max(2, Math.round(severity * 100))}%`;
  return h("span", { class: "share" }, h("span", { class: "severity", "aria-hidden": "true" }, bar), ` ${percent(severity, 0)} of ${unit}`);
}

function where(finding: Finding, subject: Subject): HTMLElement[] | null {
  const structure = structureOf(subject, finding.object);
  if (!structure) return null;
  const { site } = structure;
  const about = h("p", { class: "where" }, h("code", {}, structure.name), structure.type_name ? [" ", h("code", { class: "soft" }, structure.type_name)] : null,
    `, ${structure.blocks}`,
    site ? [" at ", h("code", { title: site.file }, place(site.file, site.line)), site.function ? [" in ", h("code", {}, site.function)] : null] : null);
  const quote = site && quoted(subject, site.file, site.line);
  return quote ? [about, quote] : [about];
}

/// The line to change.
function touched(finding: Finding, subject: Subject): HTMLElement[] | null {
  const touch = structureOf(subject, finding.object)?.first_touch;
  const quote = touch && quoted(subject, touch.site.file, touch.site.line);
  return quote ? [h("p", { class: "label" }, "First touched at"), quote] : null;
}

const lines = (rows: FindingLine[], subject: Subject): HTMLElement =>
  h("ul", { class: "lines" }, rows.map((line) =>
    h("li", {}, h("span", { class: "number" }, percent(line.share, 0)), " ",
      h("code", { title: line.file }, place(line.file, line.line)), line.function ? [" ", h("code", { class: "soft" }, line.function)] : null,
      quotedLine(subject, line.file, line.line))));

const fix = (fix: Fix): HTMLElement =>
  h("div", { class: "fix" }, h("p", {}, fix.what),
    fix.copy ? h("div", { class: "code" }, h("pre", { tabindex: 0 }, fix.copy),
      h("button", { type: "button", class: "small", "aria-label": `Copy: ${fix.what}`, click: () => copy(fix.copy, "The fix") }, "Copy")) : null);

function list(found: Finding[], subject: Subject): HTMLElement {
  const name = (f: Finding) => structureOf(subject, f.object)?.name ?? "";
  return table<Finding>({
    caption: "Findings",
    rows: found,
    columns: [
      { title: "Finding", value: (f) => KINDS[f.kind] ?? f.kind },
      { title: "Structure", value: name, cell: (f) => h("span", { class: "object" }, name(f)) },
      { title: "Share", number: true, value: (f) => f.severity, cell: (f) => `${percent(f.severity)} of ${f.severity_of}` },
      { title: "Share of", only: "csv", value: (f) => f.severity_of },
      { title: "What", minor: true, value: (f) => f.title },
      { title: "Evidence", only: "csv", value: (f) => f.evidence.join(" ") },
      { title: "Fix", only: "csv", value: (f) => f.fixes.map((fix) => [fix.what, fix.copy].filter(Boolean).join("\n")).join("\n") },
    ],
  });
}
