// Written by crates/hither/src/report/tests/sample.rs; HITHER_WRITE=1 cargo test writes it anew.
import type { Page } from "../src/model";

export const page: Page = {
  "format": 1,
  "writer": "0.0.0",
  "subject": {
    "run": {
      "command": "sample 4",
      "directory": "",
      "started": 0,
      "seconds": 0.4,
      "host": "",
      "cpu": "",
      "kernel": "",
      "active_threads": 4,
      "instructions": 0,
      "reads": 4000,
      "writes": 1000,
      "fetches": 1200,
      "footprint": 32768,
      "cache_bytes": 4096,
      "end": "exited with 0",
      "sampling_error": 0.0,
      "online": false,
      "nodes": 2,
      "nodes_from": ""
    },
    "verdict": {
      "sentence": "Suitable for thread mapping and data mapping.",
      "threads": true,
      "threads_undecided": false,
      "data": true,
      "data_undecided": false,
      "reasons": [
        "Threads: C_H 1875."
      ],
      "figures": [
        {
          "name": "C_H residual",
          "meaning": "beside how much each thread shares",
          "unit": "number",
          "better": "neither",
          "spread": 0.0,
          "required": "at least 100",
          "value": 1875.0
        }
      ],
      "gain": [
        "First touch makes 25 % of the accesses local."
      ]
    },
    "findings": [
      {
        "kind": "first-touch",
        "severity": 0.9,
        "severity_of": "accesses",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": 0,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "structure",
          "object": 0
        }
      },
      {
        "kind": "shared-by-all",
        "severity": 0.8200000000000001,
        "severity_of": "fetches",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": null,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "machine"
        }
      },
      {
        "kind": "concentrated",
        "severity": 0.74,
        "severity_of": "accesses",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": 0,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "communication"
        }
      },
      {
        "kind": "false-sharing",
        "severity": 0.66,
        "severity_of": "fetches",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": null,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "timeline"
        }
      },
      {
        "kind": "read-mostly",
        "severity": 0.5800000000000001,
        "severity_of": "accesses",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": 0,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "pages"
        }
      },
      {
        "kind": "node-imbalance",
        "severity": 0.5,
        "severity_of": "fetches",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": null,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "structure",
          "object": 0
        }
      },
      {
        "kind": "remote-accesses",
        "severity": 0.42000000000000004,
        "severity_of": "accesses",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": 0,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "machine"
        }
      },
      {
        "kind": "communication-imbalance",
        "severity": 0.33999999999999997,
        "severity_of": "fetches",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": null,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "communication"
        }
      },
      {
        "kind": "unstable-phases",
        "severity": 0.26,
        "severity_of": "accesses",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": 0,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "timeline"
        }
      },
      {
        "kind": "fits-in-caches",
        "severity": 0.18000000000000005,
        "severity_of": "fetches",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": null,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "pages"
        }
      },
      {
        "kind": "large-pages",
        "severity": 0.09999999999999998,
        "severity_of": "accesses",
        "title": "Thread 0 touches first what all threads use",
        "evidence": [
          "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them.",
          "75 % of the accesses come from other nodes."
        ],
        "object": 0,
        "lines": [
          {
            "file": "/src/sample.c",
            "line": 42,
            "function": "step",
            "share": 0.6
          }
        ],
        "fixes": [
          {
            "what": "Initialise it in parallel, with the schedule of the loops that use it.",
            "copy": "#pragma omp parallel for schedule(static)"
          }
        ],
        "picture": {
          "panel": "structure",
          "object": 0
        }
      }
    ],
    "machine": {
      "title": "Two nodes",
      "source": "Made up.",
      "root": {
        "items": [
          {
            "what": "Machine",
            "logical": 0,
            "os": null,
            "bytes": 0
          }
        ],
        "units": {
          "start": 0,
          "end": 4
        },
        "parts": [
          {
            "items": [
              {
                "what": "Node",
                "logical": 0,
                "os": 0,
                "bytes": 0
              },
              {
                "what": "L3",
                "logical": 0,
                "os": null,
                "bytes": 0
              }
            ],
            "units": {
              "start": 0,
              "end": 2
            },
            "parts": []
          },
          {
            "items": [
              {
                "what": "Node",
                "logical": 0,
                "os": 1,
                "bytes": 0
              },
              {
                "what": "L3",
                "logical": 0,
                "os": null,
                "bytes": 0
              }
            ],
            "units": {
              "start": 2,
              "end": 4
            },
            "parts": []
          }
        ]
      },
      "units": [
        0,
        1,
        2,
        3
      ],
      "unit_nodes": [
        0,
        0,
        1,
        1
      ],
      "placement": {
        "file": "sample.place.json",
        "policy": "locality",
        "data": "most-access",
        "why": "It costs less.",
        "phases": [
          {
            "start": 0.0,
            "threads": [
              [
                0,
                0
              ],
              [
                1,
                1
              ],
              [
                2,
                2
              ],
              [
                3,
                3
              ]
            ],
            "node_bytes": [
              16384,
              16384
            ]
          }
        ]
      }
    },
    "threads": [
      {
        "name": "",
        "process": 0,
        "instructions": 0,
        "reads": 0,
        "writes": 0,
        "node": 0
      },
      {
        "name": "",
        "process": 0,
        "instructions": 0,
        "reads": 0,
        "writes": 0,
        "node": 0
      },
      {
        "name": "",
        "process": 0,
        "instructions": 0,
        "reads": 0,
        "writes": 0,
        "node": 0
      },
      {
        "name": "",
        "process": 0,
        "instructions": 0,
        "reads": 0,
        "writes": 0,
        "node": 0
      }
    ],
    "processes": [
      {
        "rank": null,
        "executable": "/opt/sample"
      }
    ],
    "communication": {
      "figures": {
        "events": 1200,
        "heterogeneity": 1200.0,
        "heterogeneity_pairs": 0.0,
        "heterogeneity_residual": 0.0,
        "heterogeneity_raw": 0.0,
        "amount": 0.0,
        "amount_per_second": 0.0,
        "balance": 0.0,
        "ratio": 0.0,
        "load_balance": 0.0,
        "least_heterogeneity": 100.0,
        "least_amount_per_second": 150.0
      },
      "matrix": {
        "columns": 4,
        "rows": 4,
        "cells": 3,
        "merged": 1,
        "step": 0.0,
        "max": 400,
        "data": "Y2RkZGBkYp4AhgA="
      },
      "orders": [
        {
          "by": "thread",
          "threads": [
            0,
            1,
            2,
            3
          ]
        },
        {
          "by": "placement",
          "threads": [
            0,
            1,
            2,
            3
          ]
        },
        {
          "by": "cluster",
          "threads": [
            0,
            1,
            2,
            3
          ]
        }
      ],
      "timeline": {
        "slices_per_step": 1,
        "start": [
          0.0,
          0.1,
          0.2,
          0.3
        ],
        "slice": [
          0,
          1,
          2,
          3
        ],
        "amount": [
          10.0,
          10.0,
          10.0,
          10.0
        ],
        "amount_most": [
          10.0,
          10.0,
          10.0,
          10.0
        ],
        "heterogeneity": [
          1875.0,
          1875.0,
          1875.0,
          1875.0
        ],
        "heterogeneity_most": [
          1875.0,
          1875.0,
          1875.0,
          1875.0
        ],
        "threads": [
          4,
          4,
          4,
          4
        ],
        "matrices": {
          "columns": 4,
          "rows": 16,
          "cells": 12,
          "merged": 1,
          "step": 0.0,
          "max": 100,
          "data": "Y2ZmZmZkZYWjFCQAAA=="
        }
      },
      "phases": [
        {
          "first": 0,
          "end": 2,
          "start": 0.0,
          "seconds": 0.2,
          "figures": {
            "events": 1200,
            "heterogeneity": 1200.0,
            "heterogeneity_pairs": 0.0,
            "heterogeneity_residual": 0.0,
            "heterogeneity_raw": 0.0,
            "amount": 0.0,
            "amount_per_second": 0.0,
            "balance": 0.0,
            "ratio": 0.0,
            "load_balance": 0.0,
            "least_heterogeneity": 100.0,
            "least_amount_per_second": 150.0
          }
        },
        {
          "first": 2,
          "end": 4,
          "start": 0.2,
          "seconds": 0.2,
          "figures": {
            "events": 1200,
            "heterogeneity": 1200.0,
            "heterogeneity_pairs": 0.0,
            "heterogeneity_residual": 0.0,
            "heterogeneity_raw": 0.0,
            "amount": 0.0,
            "amount_per_second": 0.0,
            "balance": 0.0,
            "ratio": 0.0,
            "load_balance": 0.0,
            "least_heterogeneity": 100.0,
            "least_amount_per_second": 150.0
          }
        }
      ],
      "too_short": false
    },
    "structures": {
      "rows": [
        {
          "objects": [
            0
          ],
          "name": "data_Static",
          "type_name": "double [512]",
          "kind": "static",
          "processes": [
            0
          ],
          "size": 32768,
          "blocks": "32.0 KiB",
          "site": {
            "file": "/src/sample.c",
            "line": 12,
            "function": "main"
          },
          "reads": 800,
          "writes": 200,
          "share": 0.2,
          "fetches": 0,
          "fetch_share": 0.4,
          "estimated": false,
          "exclusivity": 0.9,
          "accuracy": 0.25,
          "lines": [
            {
              "site": {
                "file": "/src/sample.c",
                "line": 42,
                "function": "step"
              },
              "reads": 500,
              "writes": 100,
              "fetches": 0
            }
          ],
          "first_touch": {
            "site": {
              "file": "/src/sample.c",
              "line": 12,
              "function": "main"
            },
            "pages": 8,
            "thread": 0,
            "path": [
              "main (sample.c:12)"
            ],
            "in_parallel": false
          },
          "map": {
            "pages": 8,
            "unused": 0,
            "density": {
              "columns": 8,
              "rows": 4,
              "cells": 32,
              "merged": 1,
              "step": 0.0,
              "max": 401,
              "data": "fYZBCgAACIOS7f/Qj4u6T1C0nwKSreWiuAM="
            },
            "first_touch": {
              "columns": 8,
              "rows": 4,
              "cells": 8,
              "merged": 1,
              "step": 0.0,
              "max": 1,
              "data": "Y2SEAAYogHIZAQ=="
            },
            "threads": [
              [
                0,
                812,
                8
              ],
              [
                1,
                812,
                8
              ],
              [
                2,
                812,
                8
              ],
              [
                3,
                812,
                8
              ]
            ]
          }
        },
        {
          "objects": [
            1
          ],
          "name": "data_Heap",
          "type_name": "double [512]",
          "kind": "heap",
          "processes": [
            0
          ],
          "size": 32768,
          "blocks": "32.0 KiB",
          "site": {
            "file": "/src/sample.c",
            "line": 12,
            "function": "main"
          },
          "reads": 800,
          "writes": 200,
          "share": 0.2,
          "fetches": 0,
          "fetch_share": null,
          "estimated": false,
          "exclusivity": null,
          "accuracy": null,
          "lines": [],
          "first_touch": null,
          "map": null
        },
        {
          "objects": [
            2
          ],
          "name": "data_Mmap",
          "type_name": "double [512]",
          "kind": "mmap",
          "processes": [
            0
          ],
          "size": 32768,
          "blocks": "32.0 KiB",
          "site": {
            "file": "/src/sample.c",
            "line": 12,
            "function": "main"
          },
          "reads": 800,
          "writes": 200,
          "share": 0.2,
          "fetches": 0,
          "fetch_share": null,
          "estimated": false,
          "exclusivity": null,
          "accuracy": null,
          "lines": [],
          "first_touch": null,
          "map": null
        },
        {
          "objects": [
            3
          ],
          "name": "data_Stack",
          "type_name": "double [512]",
          "kind": "stack",
          "processes": [
            0
          ],
          "size": 32768,
          "blocks": "32.0 KiB",
          "site": {
            "file": "/src/sample.c",
            "line": 12,
            "function": "main"
          },
          "reads": 800,
          "writes": 200,
          "share": 0.2,
          "fetches": 0,
          "fetch_share": null,
          "estimated": false,
          "exclusivity": null,
          "accuracy": null,
          "lines": [],
          "first_touch": null,
          "map": null
        },
        {
          "objects": [
            4
          ],
          "name": "data_Shared",
          "type_name": "double [512]",
          "kind": "shared",
          "processes": [
            0
          ],
          "size": 32768,
          "blocks": "32.0 KiB",
          "site": {
            "file": "/src/sample.c",
            "line": 12,
            "function": "main"
          },
          "reads": 800,
          "writes": 200,
          "share": 0.2,
          "fetches": 0,
          "fetch_share": null,
          "estimated": false,
          "exclusivity": null,
          "accuracy": null,
          "lines": [],
          "first_touch": null,
          "map": null
        }
      ],
      "folded_from": 5,
      "rest": {
        "structures": 0,
        "size": 0,
        "accesses": 0
      },
      "accesses": 5000
    },
    "pages": {
      "sizes": [
        {
          "bytes": 4096,
          "pages": 8,
          "best": {
            "app": 0.9,
            "page_mean": 0.8,
            "histogram_pages": [
              0,
              0,
              0,
              0,
              0,
              1,
              1,
              2,
              0,
              0,
              4
            ],
            "histogram_accesses": [
              0,
              0,
              0,
              0,
              0,
              10,
              10,
              20,
              0,
              0,
              900
            ]
          },
          "worst": {
            "app": 0.9,
            "page_mean": 0.8,
            "histogram_pages": [
              0,
              0,
              0,
              0,
              0,
              1,
              1,
              2,
              0,
              0,
              4
            ],
            "histogram_accesses": [
              0,
              0,
              0,
              0,
              0,
              10,
              10,
              20,
              0,
              0,
              900
            ]
          },
          "first_touch": {
            "page": 0.25,
            "app": 0.25,
            "local": 0.3,
            "remote": 0.7,
            "pages": 8
          }
        }
      ],
      "timeline": {
        "start": [
          0.0,
          0.2
        ],
        "exclusivity": [
          0.9,
          0.8
        ],
        "migrations": [
          6,
          0
        ],
        "total": 6,
        "moved_once": 6,
        "moved_more": 0
      }
    },
    "predictions": [
      {
        "source": {
          "file": "sample.hither",
          "command": [
            "sample",
            "4"
          ]
        },
        "started_unix": 1700000000,
        "machine": {
          "name": "xeon-x7550x4",
          "fingerprint": "0123456789abcdef",
          "units": 64,
          "cores": 32,
          "nodes": [
            0,
            1
          ]
        },
        "title": "4 x Intel Xeon X7550",
        "machine_file": "xeon-x7550x4.toml",
        "frequency": 2.0,
        "levels": [
          "L1d",
          "L3"
        ],
        "links": [
          {
            "from": 0,
            "to": 1,
            "between_packages": true
          }
        ],
        "threads": [
          "sample"
        ],
        "structures": [
          "data"
        ],
        "sample": {
          "windows_recorded": 40,
          "windows": 20,
          "accesses_recorded": 4000000,
          "accesses": 2000000,
          "warm_up": 0.125,
          "warm_up_change": 0.004
        },
        "pages": "first-touch",
        "placements": [
          {
            "name": "os",
            "thread_policy": "os",
            "data_policy": null,
            "file": null,
            "seeds": 5,
            "relative": {
              "time": {
                "value": 1.0,
                "half_width": null
              },
              "first_level_misses": null,
              "last_level_misses": {
                "value": 1.0,
                "half_width": null
              },
              "invalidations": null,
              "transfers": null,
              "link_bytes": null,
              "dram": null,
              "remote_dram": null,
              "read_time": null,
              "energy": null,
              "static_energy": null,
              "dynamic_energy": null
            },
            "amounts": {
              "instructions": 0.0,
              "accesses": 0.0,
              "time": 1.0,
              "ipc": 0.9,
              "levels": [
                {
                  "accesses": 0.0,
                  "cold": 100.0,
                  "capacity": 50.0,
                  "invalidation": 0.0,
                  "replication": 0.0,
                  "mpki": 1.5,
                  "prefetches": 0.0,
                  "useful": 0.0
                },
                {
                  "accesses": 0.0,
                  "cold": 100.0,
                  "capacity": 50.0,
                  "invalidation": 0.0,
                  "replication": 0.0,
                  "mpki": 1.5,
                  "prefetches": 0.0,
                  "useful": 0.0
                }
              ],
              "invalidations": 0.0,
              "transfers_inside": 0.0,
              "transfers_between": 0.0,
              "link_bytes": [
                64000.0
              ],
              "nodes": [
                {
                  "local_reads": 300.0,
                  "remote_reads": 100.0,
                  "local_writes": 0.0,
                  "remote_writes": 0.0,
                  "rows": 0.0
                }
              ],
              "reads": 0.0,
              "read_time": 0.0,
              "energy": {
                "total": 2.5,
                "per_instruction": 1.25,
                "parts": [
                  {
                    "name": "cores",
                    "at_rest": 1.5,
                    "dynamic": 1.0
                  }
                ]
              }
            },
            "by_thread": [],
            "by_structure": [],
            "over_time": []
          },
          {
            "name": "locality+most-access",
            "thread_policy": "locality",
            "data_policy": "most-access",
            "file": "sample.place.json",
            "seeds": 1,
            "relative": {
              "time": {
                "value": 0.88,
                "half_width": 0.02
              },
              "first_level_misses": {
                "value": 0.88,
                "half_width": 0.02
              },
              "last_level_misses": {
                "value": 0.88,
                "half_width": 0.02
              },
              "invalidations": {
                "value": 0.88,
                "half_width": 0.02
              },
              "transfers": {
                "value": 0.88,
                "half_width": 0.02
              },
              "link_bytes": {
                "value": 0.88,
                "half_width": 0.02
              },
              "dram": {
                "value": 0.88,
                "half_width": 0.02
              },
              "remote_dram": {
                "value": 0.88,
                "half_width": 0.02
              },
              "read_time": {
                "value": 0.88,
                "half_width": 0.02
              },
              "energy": {
                "value": 0.88,
                "half_width": 0.02
              },
              "static_energy": {
                "value": 0.88,
                "half_width": 0.02
              },
              "dynamic_energy": {
                "value": 0.88,
                "half_width": 0.02
              }
            },
            "amounts": {
              "instructions": 0.0,
              "accesses": 0.0,
              "time": 0.88,
              "ipc": 0.9,
              "levels": [
                {
                  "accesses": 0.0,
                  "cold": 100.0,
                  "capacity": 50.0,
                  "invalidation": 0.0,
                  "replication": 0.0,
                  "mpki": 1.5,
                  "prefetches": 0.0,
                  "useful": 0.0
                },
                {
                  "accesses": 0.0,
                  "cold": 100.0,
                  "capacity": 50.0,
                  "invalidation": 0.0,
                  "replication": 0.0,
                  "mpki": 1.5,
                  "prefetches": 0.0,
                  "useful": 0.0
                }
              ],
              "invalidations": 0.0,
              "transfers_inside": 0.0,
              "transfers_between": 0.0,
              "link_bytes": [
                64000.0
              ],
              "nodes": [
                {
                  "local_reads": 300.0,
                  "remote_reads": 100.0,
                  "local_writes": 0.0,
                  "remote_writes": 0.0,
                  "rows": 0.0
                }
              ],
              "reads": 0.0,
              "read_time": 0.0,
              "energy": {
                "total": 2.5,
                "per_instruction": 1.25,
                "parts": [
                  {
                    "name": "cores",
                    "at_rest": 1.5,
                    "dynamic": 1.0
                  }
                ]
              }
            },
            "by_thread": [
              {
                "accesses": 0.0,
                "instructions": 0.0,
                "first_level_misses": 0.0,
                "last_level_misses": 0.0,
                "transfers": 0.0,
                "local_reads": 0.0,
                "remote_reads": 0.0,
                "read_time": 0.0
              }
            ],
            "by_structure": [
              {
                "accesses": 0.0,
                "instructions": 0.0,
                "first_level_misses": 0.0,
                "last_level_misses": 0.0,
                "transfers": 0.0,
                "local_reads": 0.0,
                "remote_reads": 0.0,
                "read_time": 0.0
              }
            ],
            "over_time": [
              {
                "start": 0,
                "time": 0.0,
                "instructions": 0.0,
                "last_level_misses": 0.0,
                "transfers": 0.0,
                "link_bytes": 0.0,
                "dram": 0.0,
                "remote_dram": 0.0,
                "energy": 0.0
              }
            ]
          }
        ],
        "best": 1,
        "verdict": "locality+most-access is predicted to take 12.0 % less time than os (95 % confidence: 10.0 % to 14.0 %).",
        "notes": [
          "Turbo is not simulated."
        ]
      }
    ],
    "quotes": [
      {
        "file": "/src/sample.c",
        "line": 12,
        "lines": [
          {
            "line": 11,
            "text": "int main(void) {"
          },
          {
            "line": 12,
            "text": "    data = malloc(32768);"
          }
        ]
      }
    ],
    "unseen": [
      {
        "what": "Something.",
        "effect": "Nothing much."
      }
    ]
  },
  "comparison": {
    "file": "before.hither",
    "run": {
      "command": "",
      "directory": "",
      "started": 0,
      "seconds": 0.0,
      "host": "",
      "cpu": "",
      "kernel": "",
      "active_threads": 0,
      "instructions": 0,
      "reads": 0,
      "writes": 0,
      "fetches": null,
      "footprint": 0,
      "cache_bytes": 0,
      "end": "",
      "sampling_error": 0.0,
      "online": false,
      "nodes": 0,
      "nodes_from": ""
    },
    "verdict": {
      "sentence": "",
      "threads": false,
      "threads_undecided": false,
      "data": false,
      "data_undecided": false,
      "reasons": [],
      "figures": [],
      "gain": []
    },
    "sentence": "1 finding is gone.",
    "notes": [
      "The commands differ."
    ],
    "findings": [
      {
        "change": "new",
        "kind": "first-touch",
        "title": "Thread 0 touches first what all threads use",
        "structure": "data_Static",
        "before": null,
        "after": 0.9,
        "evidence": [
          "It was 60 %."
        ],
        "finding": 0
      },
      {
        "change": "worse",
        "kind": "shared-by-all",
        "title": "Thread 0 touches first what all threads use",
        "structure": "data_Static",
        "before": 0.2,
        "after": 0.82,
        "evidence": [
          "It was 60 %."
        ],
        "finding": 1
      },
      {
        "change": "changed",
        "kind": "concentrated",
        "title": "Thread 0 touches first what all threads use",
        "structure": "data_Static",
        "before": 0.5,
        "after": 0.7,
        "evidence": [
          "It was 60 %."
        ],
        "finding": 2
      },
      {
        "change": "same",
        "kind": "false-sharing",
        "title": "Thread 0 touches first what all threads use",
        "structure": "data_Static",
        "before": 0.6,
        "after": 0.61,
        "evidence": [
          "It was 60 %."
        ],
        "finding": 3
      },
      {
        "change": "better",
        "kind": "read-mostly",
        "title": "Thread 0 touches first what all threads use",
        "structure": "data_Static",
        "before": 0.6,
        "after": 0.1,
        "evidence": [
          "It was 60 %."
        ],
        "finding": 4
      },
      {
        "change": "gone",
        "kind": "node-imbalance",
        "title": "Thread 0 touches first what all threads use",
        "structure": "data_Static",
        "before": 0.3,
        "after": null,
        "evidence": [
          "It was 60 %."
        ],
        "finding": null
      }
    ],
    "metrics": [
      {
        "name": "E_app best",
        "meaning": "accesses by each page's main node",
        "unit": "share",
        "better": "higher",
        "before": null,
        "after": 0.9,
        "change": "new",
        "within_error": false
      },
      {
        "name": "E_app best",
        "meaning": "accesses by each page's main node",
        "unit": "percent",
        "better": "lower",
        "before": 0.2,
        "after": 0.82,
        "change": "worse",
        "within_error": false
      },
      {
        "name": "E_app best",
        "meaning": "accesses by each page's main node",
        "unit": "bytes",
        "better": "neither",
        "before": 0.5,
        "after": 0.7,
        "change": "changed",
        "within_error": false
      },
      {
        "name": "E_app best",
        "meaning": "accesses by each page's main node",
        "unit": "seconds",
        "better": "higher",
        "before": 0.6,
        "after": 0.61,
        "change": "same",
        "within_error": true
      },
      {
        "name": "E_app best",
        "meaning": "accesses by each page's main node",
        "unit": "count",
        "better": "lower",
        "before": 0.6,
        "after": 0.1,
        "change": "better",
        "within_error": false
      },
      {
        "name": "E_app best",
        "meaning": "accesses by each page's main node",
        "unit": "number",
        "better": "neither",
        "before": 0.3,
        "after": null,
        "change": "gone",
        "within_error": false
      }
    ],
    "structures": [
      {
        "change": "new",
        "name": "data",
        "type_name": "double [512]",
        "kind": "static",
        "site": {
          "file": "",
          "line": 0,
          "function": ""
        },
        "before": null,
        "after": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.9,
          "exclusivity": 0.9,
          "accuracy": null
        }
      },
      {
        "change": "worse",
        "name": "data",
        "type_name": "double [512]",
        "kind": "heap",
        "site": null,
        "before": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.2,
          "exclusivity": 0.2,
          "accuracy": null
        },
        "after": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.82,
          "exclusivity": 0.82,
          "accuracy": null
        }
      },
      {
        "change": "changed",
        "name": "data",
        "type_name": "double [512]",
        "kind": "mmap",
        "site": {
          "file": "",
          "line": 0,
          "function": ""
        },
        "before": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.5,
          "exclusivity": 0.5,
          "accuracy": null
        },
        "after": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.7,
          "exclusivity": 0.7,
          "accuracy": null
        }
      },
      {
        "change": "same",
        "name": "data",
        "type_name": "double [512]",
        "kind": "stack",
        "site": null,
        "before": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.6,
          "exclusivity": 0.6,
          "accuracy": null
        },
        "after": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.61,
          "exclusivity": 0.61,
          "accuracy": null
        }
      },
      {
        "change": "better",
        "name": "data",
        "type_name": "double [512]",
        "kind": "shared",
        "site": {
          "file": "",
          "line": 0,
          "function": ""
        },
        "before": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.6,
          "exclusivity": 0.6,
          "accuracy": null
        },
        "after": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.1,
          "exclusivity": 0.1,
          "accuracy": null
        }
      },
      {
        "change": "gone",
        "name": "data",
        "type_name": "double [512]",
        "kind": "static",
        "site": null,
        "before": {
          "object": 0,
          "size": 32768,
          "reads": 800,
          "writes": 200,
          "share": 0.3,
          "exclusivity": 0.3,
          "accuracy": null
        },
        "after": null
      }
    ],
    "structures_left": 3
  }
};
