//! A thread of ours inside the program (`tracer/agent`), for the samplers `move` and
//! `write-protect`: how it is injected, its orders and reports, and which memory is fit for it.
pub mod agent_fitness;
pub mod agent_hosts;
pub mod connection;
pub mod exit_pages;
pub mod inject;
pub mod movable_regions;
pub mod open_regions;
pub mod protocol;
#[cfg(test)]
mod tests;
