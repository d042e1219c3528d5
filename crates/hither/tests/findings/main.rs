//! Findings of really traced programs: for each kind a program that has it and a twin that
//! has not.
mod data;
mod lines;
mod places;
mod run;
#[path = "../common/workloads.rs"]
mod workloads;
