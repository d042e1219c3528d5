//! Profile -> figures. Pure.
