// Tables that can be sorted and copied as CSV.
import { copy, h, rich, type Children } from "./dom";

export interface Column<Row> {
  title: string;
  /// Explains the column where its title does not.
  hint?: string;
  number?: boolean;
  /// A class for the title.
  head?: string;
  /// Left out where there is little room; CSV has it all the same.
  minor?: boolean;
  /// Only in the table that is seen, or only in its copy.
  only?: "page" | "csv";
  /// What CSV and sorting go by.
  value(row: Row): string | number | null;
  /// What is shown, if it is not the value.
  cell?(row: Row): Children;
}

export interface TableOptions<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  /// Rows beyond are behind a button.
  shown?: number;
  /// Makes rows choosable: the first column becomes a button.
  choose?(row: Row): void;
  /// Of the row that is chosen at first.
  chosen?: Row;
}

export interface TableElement<Row> extends HTMLElement {
  mark(row: Row): void;
}

export function table<Row>(options: TableOptions<Row>): TableElement<Row> {
  const { caption } = options;
  const columns = options.columns.filter((column) => column.only !== "csv");
  let rows = options.rows;
  let chosen = options.chosen;
  let all = options.shown === undefined || rows.length <= options.shown + 1;
  const body = h("tbody");
  const more = h("button", { type: "button", class: "small", click: () => ((all = true), draw()) });
  const heads = columns.map((column, at) => {
    const sort = h("button", { type: "button", class: "sort", title: column.hint ?? null, click: () => order(at) }, rich(column.title));
    return h("th", { scope: "col", class: classes(column, column.head) }, sort);
  });
  const draw = () => {
    const some = all ? rows : rows.slice(0, options.shown);
    body.replaceChildren(...some.map((row) => line(columns, options, row, row === chosen)));
    more.hidden = all;
    more.textContent = `Show all ${rows.length}`;
  };
  let sorted = -1;
  const order = (at: number) => {
    const { value } = columns[at];
    const turned = sorted === at ? -1 : 1;
    const down = (columns[at].number ? -1 : 1) * turned;
    sorted = turned < 0 ? -2 : at;
    rows = [...options.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return Number(x === null) - Number(y === null);
      return down * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
    });
    heads.forEach((head, i) => {
      if (i === at) head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    draw();
  };
  const csv = h(
    "button",
    { type: "button", class: "small csv", click: () => copy(csvOf(options.columns, rows), caption) },
    "Copy as CSV",
  );
  const element = h(
    "div",
    { class: "table" },
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body)),
    h("div", { class: "table-tools" }, more, csv),
  );
  draw();
  return Object.assign(element, {
    mark(row: Row) {
      chosen = row;
      draw();
    },
  });
}

function line<Row>(columns: Column<Row>[], options: TableOptions<Row>, row: Row, chosen: boolean): HTMLElement {
  const cells = columns.map((column, at) => {
    const shown = column.cell ? column.cell(row) : column.value(row);
    const first = at === 0;
    const inside =
      first && options.choose
        ? h("button", { type: "button", class: "choose", "aria-pressed": String(chosen), click: () => options.choose!(row) }, shown)
        : shown;
    const place = { class: classes(column) };
    return first ? h("th", { scope: "row", ...place }, inside) : h("td", place, inside);
  });
  return h("tr", { class: chosen ? "chosen" : null }, cells);
}

function classes<Row>(column: Column<Row>, more = ""): string | null {
  return [column.number ? "number" : "", column.minor ? "minor" : "", more].join(" ").trim() || null;
}

export function csvOf<Row>(columns: Column<Row>[], rows: readonly Row[]): string {
  const kept = columns.filter((column) => column.only !== "page");
  const lines = rows.map((row) => kept.map((column) => field(column.value(row))).join(","));
  return [kept.map((column) => field(column.title)).join(","), ...lines].join("\n") + "\n";
}

/// Names are not ours: spreadsheets must not take one for a formula.
function field(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
