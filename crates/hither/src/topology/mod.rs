//! The machine model, on hwloc.
