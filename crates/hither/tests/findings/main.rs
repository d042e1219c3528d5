//! Findings of really traced programs: for each kind a program that has it and a twin that
//! has not.
mod data;
mod places;
mod run;
