use crate::topology::{named, select, Restrictions};

mod shipped;
