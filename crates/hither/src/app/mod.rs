//! The stages joined: what a verb does, with typed options, without arguments and printing.
pub mod text;
