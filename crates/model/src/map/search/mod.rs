//! The search behind the thread policy `locality`: from a communication graph and a machine to
//! homes for threads. Only `space` knows the machine, only `links` the graph.
pub mod bisect;
pub mod coarsen;
pub mod fm;
pub mod kick;
pub mod links;
pub mod recut;
pub mod relabel;
pub mod space;
pub mod state;
pub mod subtrees;
pub mod swap;
pub mod topdown;
