// What placements are predicted to do, machine by machine.
import { h, type Child } from "../dom";
import { count, figure, many, percent, seconds } from "../format";
import type { Amounts, Forecast, Predicted, Ratio } from "../model";
import { table, type Column } from "../table";
import { intro, later, picture, section } from "./section";

export function prediction(forecasts: Forecast[]): HTMLElement {
  return section("prediction", "What placements would do", forecasts.map(machine));
}

function machine(forecast: Forecast): HTMLElement {
  const { sample, placements } = forecast;
  const first = placements[0].name;
  const facts = `Simulated by hither sim on a model of ${forecast.title}: ${many(sample.windows, "window")} of ${sample.windows_recorded}, ${count(sample.accesses)} accesses, of which ${percent(sample.warm_up, 0)} only warm the caches. Pages without a place of their own: ${forecast.pages}.`;
  return h("div", { class: "figure" },
    picture(`On ${forecast.title}`,
      intro(`A bar is the time that a placement takes, as a share of what ${first} takes; the line at its end is the 95 % confidence interval.`,
        "Where the line of a placement reaches the end of another's bar, the two may be equally good."),
      h("p", { class: "sentence" }, forecast.verdict),
      bars(forecast),
      later("alternative", "As a table", () => [times(forecast)])),
    h("h4", {}, "Why"),
    why(forecast),
    later("alternative", "Misses by level and kind", () => [levels(forecast)]),
    h("p", { class: "soft" }, facts),
    forecast.notes.length ? h("ul", { class: "plain soft" }, forecast.notes.map((note) => h("li", {}, note))) : null);
}

const low = (ratio: Ratio): number => ratio.value - (ratio.half_width ?? 0);
const high = (ratio: Ratio): number => ratio.value + (ratio.half_width ?? 0);

/// What a placement is, where its name does not say.
const made = (p: Predicted): string =>
  p.name === "joint" || p.file !== null ? `${p.thread_policy}${p.data_policy ? `+${p.data_policy}` : ""}` : "";

function bars(forecast: Forecast): HTMLElement {
  const known = forecast.placements.filter((p) => p.relative.time !== null);
  const most = Math.max(1, ...known.map((p) => high(p.relative.time!)));
  const at = (value: number) => `${((Math.max(0, value) / most) * 100).toFixed(2)}%`;
  const rows = forecast.placements.map((p, index) => {
    const time = p.relative.time;
    const best = index === forecast.best;
    const fill = h("span", { class: "fill" });
    const range = h("span", { class: "range" });
    if (time) {
      fill.style.width = at(time.value);
      range.style.left = at(low(time));
      range.style.width = at(high(time) - Math.max(0, low(time)));
    }
    const text = time ? `${percent(time.value)}${time.half_width === null ? "" : ` \u00b1 ${percent(time.half_width)}`}` : "\u2013";
    return h("div", { class: best ? "placed best" : "placed", role: "listitem" },
      h("span", { class: "name", title: made(p) || p.name }, best ? h("b", {}, p.name) : p.name, best ? h("span", { class: "sign" }, " fastest") : null),
      h("span", { class: "track", "aria-hidden": "true" }, fill, range),
      h("span", { class: "value" }, text));
  });
  return h("div", { class: "bars", role: "list", "aria-label": "Time of each placement" }, rows);
}

function ratio(title: string, of: (p: Predicted) => Ratio | null): Column<Predicted> {
  return { title, number: true, value: (p) => of(p)?.value ?? null, cell: (p) => share(of(p)) };
}

const share = (value: Ratio | null): Child => (value === null ? "\u2013" : percent(value.value, 0));

function name(forecast: Forecast): Column<Predicted> {
  const best = forecast.placements[forecast.best];
  return {
    title: "Placement",
    value: (p) => p.name,
    cell: (p) => [p === best ? h("b", {}, p.name) : p.name, made(p) ? h("span", { class: "was" }, made(p)) : null],
  };
}

function times(forecast: Forecast): HTMLElement {
  const half = (p: Predicted) => p.relative.time?.half_width ?? null;
  return table<Predicted>({
    caption: `Time of each placement on ${forecast.title}`,
    rows: forecast.placements,
    columns: [
      name(forecast),
      ratio("Time", (p) => p.relative.time),
      { title: "95 %", number: true, value: half, cell: (p) => (half(p) === null ? "\u2013" : `\u00b1\u00a0${percent(half(p))}`) },
      { title: "Of the windows", number: true, value: (p) => p.amounts.time, cell: (p) => seconds(p.amounts.time) },
      { title: "Seeds", number: true, minor: true, value: (p) => p.seeds },
    ],
  });
}

const dram = (a: Amounts): number => a.nodes.reduce((sum, n) => sum + n.local_reads + n.remote_reads + n.local_writes + n.remote_writes, 0);
const far = (a: Amounts): number => a.nodes.reduce((sum, n) => sum + n.remote_reads + n.remote_writes, 0);
const remote = (a: Amounts): number | null => (dram(a) > 0 ? far(a) / dram(a) : null);

/// What the time comes from.
function why(forecast: Forecast): HTMLElement {
  const last = forecast.levels.length - 1;
  return table<Predicted>({
    caption: `What placements do on ${forecast.title}`,
    rows: forecast.placements,
    columns: [
      name(forecast),
      ratio("Time", (p) => p.relative.time),
      { title: "IPC", hint: "Instructions per cycle", number: true, value: (p) => p.amounts.ipc, cell: (p) => figure(p.amounts.ipc) },
      { title: `${forecast.levels[last] ?? "Cache"} MPKI`, hint: "Misses per thousand instructions", number: true, value: (p) => p.amounts.levels[last]?.mpki ?? null, cell: (p) => figure(p.amounts.levels[last]?.mpki ?? 0) },
      { ...ratio("Invalidations", (p) => p.relative.invalidations), minor: true },
      ratio("Cache to cache", (p) => p.relative.transfers),
      ratio("Links", (p) => p.relative.link_bytes),
      ratio("DRAM", (p) => p.relative.dram),
      { title: "Remote", hint: "Share of DRAM's lines that another node asked for", number: true, value: (p) => remote(p.amounts), cell: (p) => percent(remote(p.amounts), 0) },
      ratio("Energy", (p) => p.relative.energy),
    ],
  });
}

function levels(forecast: Forecast): HTMLElement {
  const rows = forecast.placements.flatMap((p) => p.amounts.levels.map((level, at) => ({ p, level, name: forecast.levels[at] })));
  type Row = (typeof rows)[number];
  const kind = (title: string, of: (row: Row) => number): Column<Row> => ({ title, number: true, value: of, cell: (row) => count(of(row)) });
  return table<Row>({
    caption: `Misses by level and kind on ${forecast.title}`,
    rows,
    columns: [
      { title: "Placement", value: (row) => row.p.name },
      { title: "Level", value: (row) => row.name },
      { title: "MPKI", number: true, value: (row) => row.level.mpki, cell: (row) => figure(row.level.mpki) },
      kind("Cold", (row) => row.level.cold),
      kind("Capacity", (row) => row.level.capacity),
      kind("Invalidation", (row) => row.level.invalidation),
      kind("Replication", (row) => row.level.replication),
    ],
  });
}
