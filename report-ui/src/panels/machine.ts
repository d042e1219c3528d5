// The machine as boxes in boxes, with the placement on it.
import { fill, h } from "../dom";
import { bytes, many, seconds } from "../format";
import type { Item, Machine, Part, PlacementPhase, Subject } from "../model";
import { ranges, threadName } from "../names";
import { table, type Column } from "../table";
import { choice, intro, later, picture, section } from "./section";

/// Above this many units they are drawn without their caches.
const DETAILED = 96;

export function machine(subject: Subject): HTMLElement {
  const { machine } = subject;
  if (!machine) {
    return section("machine", "Machine", h("p", { class: "missing" }, "The profile says nothing of the machine; --topology gives one."));
  }
  const { placement } = machine;
  const place = h("div", { class: "machine-drawing" });
  const draw = (phase: PlacementPhase | null) => fill(place, drawing(machine, phase, subject));
  draw(placement?.phases[0] ?? null);
  const phases = placement && placement.phases.length > 1
    ? choice("Phase", placement.phases.map((p, at): [string, string] => [String(at), `from ${seconds(p.start)}`]), "0",
        (at) => draw(placement.phases[Number(at)]))
    : null;
  const problem = placement
    ? "Threads that share much should stand in one box, and the memory of a node should be that of the threads in it."
    : "Threads in different packages pay for everything they share, so the fewer boxes lie between two threads the better.";
  return section("machine", "Machine",
    picture(machine.title,
      intro(`Boxes are packages, NUMA nodes and caches, inside each other as the hardware has them; a small square is a processing unit${machine.units.length <= DETAILED ? " with the kernel's number" : ""}${placement ? ", a filled one with the threads placed on it" : ""}.`, problem),
      h("p", { class: "soft" }, `${machine.source} ${caches(machine.root)}`),
      placement
        ? h("p", { class: "placed" }, h("b", {}, `Threads by ${placement.policy}${placement.data ? `, pages by ${placement.data}` : ""}. `), placement.why)
        : h("p", { class: "soft" }, "No placement is shown; make one with ", h("code", {}, "hither map"), " and give it with ", h("code", {}, "-p"), "."),
      phases, place, alternative(machine, subject)));
}

function drawing(machine: Machine, phase: PlacementPhase | null, subject: Subject): HTMLElement {
  const on = new Map<number, number[]>();
  for (const [thread, unit] of phase?.threads ?? []) on.set(unit, [...(on.get(unit) ?? []), thread]);
  const detailed = machine.units.length <= DETAILED;
  const hidden = detailed ? /^(L1|L2|PU)$/ : /^(L1|L2|Core|PU)$/;
  const taken = ({ units }: Part): boolean => {
    for (let at = units.start; at < units.end; at++) if (on.has(at)) return true;
    return false;
  };
  const unit = (at: number): HTMLElement => {
    const threads = on.get(at);
    const title = threads ? `PU ${machine.units[at]}: ${threads.map((t) => name(subject, t)).join(", ")}` : `PU ${machine.units[at]}`;
    return h("span", { class: threads ? "unit taken" : "unit", title }, threads ? threads.join(" ") : detailed ? machine.units[at] : "");
  };
  const units = (of: Part): HTMLElement =>
    h("span", { class: "units" }, Array.from({ length: of.units.end - of.units.start }, (_, i) => unit(of.units.start + i)));
  const inside = (of: Part, depth: number): HTMLElement => {
    if (!of.parts.length) return units(of);
    const cores = !detailed && of.parts.every((p) => !p.parts.length && p.items.every((item) => hidden.test(item.what)));
    return cores
      ? h("span", { class: "cores" }, of.parts.map(units))
      : h("span", { class: "parts" }, of.parts.map((p) => part(p, depth + 1)));
  };
  const part = (of: Part, depth: number): HTMLElement => {
    const shown = of.items.filter((item) => !hidden.test(item.what));
    const classes = ["part", `depth${Math.min(depth, 4)}`];
    const idle = on.size > 0 && !taken(of);
    if (idle) classes.push("idle");
    if (!of.parts.length) classes.push("leaf");
    if (of.units.start === of.units.end) classes.push("empty");
    if (shown.some((item) => item.what === "Node")) classes.push("node");
    const caches = of.items.filter((item) => item.bytes > 0).map((item) => `${item.what} ${bytes(item.bytes)}`).join(", ");
    const count = of.units.end - of.units.start;
    // What nobody uses of a large machine is only named.
    const short = idle && !detailed && count > 0;
    const title = shown.length || short
      ? h("span", { class: "part-title" }, shown.map((item) => itemText(item, phase)), short ? h("span", {}, `${many(count, "PU")}, unused`) : null)
      : null;
    return h("span", { class: classes.join(" "), title: caches || null }, title, short ? null : inside(of, depth));
  };
  return part(machine.root, 0);
}

function itemText(item: Item, phase: PlacementPhase | null): HTMLElement {
  const number = item.what.startsWith("L") || item.what === "Machine" ? "" : ` ${item.os ?? item.logical}`;
  const placed = item.what === "Node" && phase ? phase.node_bytes[item.logical] : 0;
  const memory = item.bytes > 0 ? ` ${bytes(item.bytes)}` : "";
  return h("span", {}, `${item.what}${number}${memory}`, placed > 0 ? h("b", { class: "placed-bytes" }, ` \u2190 ${bytes(placed)}`) : null);
}

const name = (subject: Subject, thread: number): string => `thread ${threadName(subject, thread)}`;

/// `Caches: 32 x L1 32 KiB, 4 x L3 18 MiB.`
function caches(root: Part): string {
  const counts = new Map<string, number>();
  const walk = (part: Part) => {
    for (const item of part.items) {
      if (!/^L\d$/.test(item.what) || !item.bytes) continue;
      const kind = `${item.what} ${bytes(item.bytes)}`;
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    part.parts.forEach(walk);
  };
  walk(root);
  const kinds = [...counts].sort().map(([kind, count]) => `${count}\u00a0\u00d7\u00a0${kind}`);
  return kinds.length ? `Caches: ${kinds.join(", ")}.` : "";
}

/// A node in one phase of the placement.
interface Row {
  start: number | null;
  node: number;
  units: number[];
  threads: number[];
  bytes: number;
}

/// The same in words: a row for each node, in every phase.
function alternative(machine: Machine, subject: Subject): HTMLElement {
  const nodes = nodesOf(machine.root).sort((a, b) => a - b);
  const phases = machine.placement?.phases ?? [];
  const row = (node: number, phase?: PlacementPhase): Row => ({
    start: phase?.start ?? null,
    node,
    units: machine.units.filter((_, at) => machine.unit_nodes[at] === node),
    threads: (phase?.threads ?? []).filter(([, unit]) => machine.unit_nodes[unit] === node).map(([t]) => t),
    bytes: phase?.node_bytes[node] ?? 0,
  });
  const rows = phases.length ? phases.flatMap((phase) => nodes.map((node) => row(node, phase))) : nodes.map((node) => row(node));
  const placed: Column<Row>[] = [
    { title: "Threads placed", value: (r) => r.threads.map((t) => name(subject, t)).join(", ") },
    { title: "Bytes placed", number: true, value: (r) => r.bytes, cell: (r) => bytes(r.bytes) },
  ];
  const start: Column<Row> = { title: "From (s)", number: true, value: (r) => r.start };
  return later("alternative", `As a table: ${many(nodes.length, "node")}, ${many(machine.units.length, "processing unit")}`, () => [
    table<Row>({
      caption: `Nodes of ${machine.title}`,
      rows,
      shown: 24,
      columns: [
        { title: "Node", value: (r) => r.node },
        { title: "PUs", value: (r) => ranges(r.units) },
        ...(phases.length > 1 ? [start] : []),
        ...(phases.length ? placed : []),
      ],
    })]);
}

/// All nodes by logical number, those without units too.
function nodesOf(part: Part): number[] {
  const mine = part.items.filter((item) => item.what === "Node").map((item) => item.logical);
  return [...mine, ...part.parts.flatMap(nodesOf)];
}
