//! The search behind the thread policy `locality`: from a communication graph and a machine to
//! anchors for threads. Only `search_space` knows the machine, only `csr_graph` the graph.
pub mod bisect;
pub mod coarsen;
pub mod csr_graph;
pub mod fm_refinement;
pub mod iterated_local_search;
pub mod local_search;
pub mod recursive_bisection;
pub mod recut;
pub mod relabel;
pub mod search_space;
pub mod search_state;
pub mod subtrees;
