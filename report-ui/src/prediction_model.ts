// What `hither sim` predicts: the mirror of crates/profile/src/prediction.rs, where every field is
// explained.

export interface Forecast {
  source: { file: string; command: string[] };
  started_unix: number;
  machine: { name: string; fingerprint: string; units: number; cores: number; nodes: number[] };
  title: string;
  machine_file: string;
  frequency: number;
  levels: string[];
  links: { from: number; to: number; between_packages: boolean }[];
  threads: string[];
  structures: string[];
  sample: {
    windows_recorded: number;
    windows: number;
    accesses_recorded: number;
    accesses: number;
    warm_up: number;
    warm_up_change: number | null;
  };
  pages: string;
  placements: Predicted[];
  best: number;
  verdict: string;
  notes: string[];
}

export interface Predicted {
  name: string;
  thread_policy: string;
  data_policy: string | null;
  file: string | null;
  seeds: number;
  relative: {
    time: Ratio | null;
    first_level_misses: Ratio | null;
    last_level_misses: Ratio | null;
    invalidations: Ratio | null;
    transfers: Ratio | null;
    link_bytes: Ratio | null;
    dram: Ratio | null;
    remote_dram: Ratio | null;
    read_time: Ratio | null;
    energy: Ratio | null;
    static_energy: Ratio | null;
    dynamic_energy: Ratio | null;
  };
  amounts: Amounts;
  by_thread: PredictedPart[];
  by_structure: PredictedPart[];
  over_time: Moment[];
}

export interface Ratio {
  value: number;
  half_width: number | null;
}

export interface Amounts {
  instructions: number;
  accesses: number;
  time: number;
  ipc: number;
  levels: {
    accesses: number;
    cold: number;
    capacity: number;
    invalidation: number;
    replication: number;
    mpki: number;
    prefetches: number;
    useful: number;
  }[];
  invalidations: number;
  transfers_inside: number;
  transfers_between: number;
  link_bytes: number[];
  nodes: { local_reads: number; remote_reads: number; local_writes: number; remote_writes: number; rows: number }[];
  reads: number;
  read_time: number;
  energy: {
    total: number;
    per_instruction: number;
    parts: { name: string; at_rest: number; dynamic: number }[];
  };
}

export interface PredictedPart {
  accesses: number;
  instructions: number;
  first_level_misses: number;
  last_level_misses: number;
  transfers: number;
  local_reads: number;
  remote_reads: number;
  read_time: number;
}

export interface Moment {
  start: number;
  time: number;
  instructions: number;
  last_level_misses: number;
  transfers: number;
  link_bytes: number;
  dram: number;
  remote_dram: number;
  energy: number;
}
