// The page's data: the mirror of crates/hither/src/report/page.rs, where every field is
// explained. test/sample.ts, which Rust writes, has to fit these types.
import type { Forecast } from "./prediction_model";

export type * from "./prediction_model";

export interface Page {
  format: number;
  writer: string;
  subject: Subject;
  comparison: Comparison | null;
}

export interface Subject {
  run: Run;
  verdict: Verdict;
  findings: Finding[];
  machine: Machine | null;
  threads: Thread[];
  processes: Process[];
  communication: Communication;
  structures: Structures;
  pages: Pages | null;
  predictions: Forecast[];
  quotes: Quote[];
  unseen: Unseen[];
}

export interface Run {
  command: string;
  directory: string;
  started: number;
  seconds: number;
  host: string;
  cpu: string;
  kernel: string;
  active_threads: number;
  instructions: number;
  reads: number;
  writes: number;
  fetches: number | null;
  footprint: number;
  cache_bytes: number;
  end: string;
  sampling_error: number;
  /** Counts are page faults seen while it ran. */
  online: boolean;
  nodes: number;
  nodes_from: string;
}

export interface Verdict {
  sentence: string;
  threads: boolean;
  threads_undecided: boolean;
  data: boolean;
  data_undecided: boolean;
  reasons: string[];
  figures: RunFigure[];
  gain: string[];
}

export type FindingKind =
  | "first-touch"
  | "shared-by-all"
  | "concentrated"
  | "false-sharing"
  | "read-mostly"
  | "node-imbalance"
  | "remote-accesses"
  | "communication-imbalance"
  | "unstable-phases"
  | "fits-in-caches"
  | "large-pages";

export interface Finding {
  kind: FindingKind;
  severity: number;
  severity_of: "accesses" | "fetches";
  title: string;
  evidence: string[];
  object: number | null;
  lines: FindingLine[];
  fixes: Fix[];
  picture: Picture;
}

export interface FindingLine {
  file: string;
  line: number;
  function: string;
  share: number;
}

export interface Fix {
  what: string;
  copy: string;
}

export type Picture =
  | { panel: "machine" | "communication" | "timeline" | "pages" }
  | { panel: "structure"; object: number };

export interface Thread {
  name: string;
  process: number;
  instructions: number;
  reads: number;
  writes: number;
  node: number;
}

export interface Process {
  rank: number | null;
  executable: string;
}

export interface Grid {
  columns: number;
  rows: number;
  cells: number;
  merged: number;
  step: number;
  max: number;
  data: string;
}

export interface Communication {
  figures: CommunicationFigures;
  matrix: Grid;
  orders: Order[];
  timeline: Timeline;
  phases: Phase[];
  too_short: boolean;
}

export interface CommunicationFigures {
  events: number;
  heterogeneity: number;
  heterogeneity_pairs: number;
  heterogeneity_residual: number;
  heterogeneity_raw: number;
  amount: number;
  amount_per_second: number;
  balance: number;
  ratio: number;
  load_balance: number;
  least_heterogeneity: number;
  least_amount_per_second: number;
}

export type OrderBy = "thread" | "process" | "placement" | "cluster";

export interface Order {
  by: OrderBy;
  threads: number[];
}

export interface Timeline {
  slices_per_step: number;
  start: number[];
  slice: number[];
  amount: number[];
  amount_most: number[];
  heterogeneity: number[];
  heterogeneity_most: number[];
  threads: number[];
  matrices: Grid;
}

export interface Phase {
  first: number;
  end: number;
  start: number;
  seconds: number;
  figures: CommunicationFigures;
}

export interface Structures {
  rows: Structure[];
  folded_from: number;
  rest: Rest;
  accesses: number;
}

export interface Rest {
  structures: number;
  size: number;
  accesses: number;
}

export type ObjectKind = "static" | "heap" | "mmap" | "stack" | "shared" | "thread-local";

export interface Structure {
  objects: number[];
  name: string;
  type_name: string;
  kind: ObjectKind;
  processes: number[];
  size: number;
  blocks: string;
  site: Site | null;
  reads: number;
  writes: number;
  share: number;
  fetches: number;
  fetch_share: number | null;
  estimated: boolean;
  exclusivity: number | null;
  accuracy: number | null;
  lines: Line[];
  first_touch: FirstTouch | null;
  map: PageMap | null;
}

export interface Site {
  file: string;
  line: number;
  function: string;
}

export interface FirstTouch {
  site: Site;
  pages: number;
  thread: number;
  path: string[];
  in_parallel: boolean | null;
}

/// Lines of source around the one that is meant.
export interface Quote {
  file: string;
  line: number;
  lines: { line: number; text: string }[];
}

export interface Line {
  site: Site;
  reads: number;
  writes: number;
  fetches: number;
}

export interface PageMap {
  pages: number;
  unused: number;
  density: Grid;
  first_touch: Grid;
  threads: [number, number, number][];
}

export interface Pages {
  sizes: PageSizeFigures[];
  timeline: PageTimeline;
}

export interface PageSizeFigures {
  bytes: number;
  pages: number;
  best: Exclusivity;
  worst: Exclusivity;
  first_touch: Accuracy | null;
}

export interface Exclusivity {
  app: number;
  page_mean: number;
  histogram_pages: number[];
  histogram_accesses: number[];
}

export interface Accuracy {
  page: number;
  app: number;
  local: number;
  remote: number;
  pages: number;
}

export interface PageTimeline {
  start: number[];
  exclusivity: number[];
  migrations: number[];
  total: number;
  moved_once: number;
  moved_more: number;
}

export interface Machine {
  title: string;
  source: string;
  root: Part;
  units: number[];
  unit_nodes: number[];
  placement: Placement | null;
}

export interface Part {
  items: Item[];
  units: { start: number; end: number };
  parts: Part[];
}

export interface Item {
  what: string;
  logical: number;
  os: number | null;
  bytes: number;
}

export interface Placement {
  file: string;
  policy: string;
  data: string | null;
  why: string;
  phases: PlacementPhase[];
}

export interface PlacementPhase {
  start: number;
  threads: [number, number][];
  node_bytes: number[];
}

export interface Unseen {
  what: string;
  effect: string;
}

export interface Comparison {
  file: string;
  run: Run;
  verdict: Verdict;
  sentence: string;
  notes: string[];
  findings: FindingChange[];
  metrics: MetricChange[];
  structures: StructureChange[];
  structures_left: number;
}

export type Change = "new" | "worse" | "changed" | "same" | "better" | "gone";

export interface FindingChange {
  change: Change;
  kind: FindingKind;
  title: string;
  structure: string;
  before: number | null;
  after: number | null;
  evidence: string[];
  finding: number | null;
}

export type Unit = "share" | "percent" | "bytes" | "seconds" | "count" | "number";

export interface RunFigure {
  name: string;
  meaning: string;
  unit: Unit;
  better: "higher" | "lower" | "neither";
  spread: number;
  required?: string;
  value: number | null;
}

export interface MetricChange extends Pick<RunFigure, "name" | "meaning" | "unit" | "better"> {
  before: number | null;
  after: number | null;
  change: Change;
  within_error: boolean;
}

export interface StructureChange {
  change: Change;
  name: string;
  type_name: string;
  kind: ObjectKind;
  site: Site | null;
  before: StructureFigures | null;
  after: StructureFigures | null;
}

export interface StructureFigures {
  object: number;
  size: number;
  reads: number;
  writes: number;
  share: number;
  exclusivity: number | null;
  accuracy: number | null;
}
