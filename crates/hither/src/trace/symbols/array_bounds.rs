//! Dimensions of arrays. Fortran counts from 1 where it does not say.
use super::attrs::DwarfReader;
use super::dwarf::{for_each_child, DebugInfo, DieRef};
use gimli::AttributeValue as Value;

const MAX_DIMENSIONS: usize = 15;

pub struct ArrayBounds {
    lower: i64,
    upper: Option<i64>,
    default_lower: i64,
}

impl ArrayBounds {
    pub fn count(&self) -> Option<u64> {
        let count = i128::from(self.upper?) - i128::from(self.lower) + 1;
        u64::try_from(count.max(0)).ok()
    }

    pub fn to_fortran(&self) -> String {
        match self.upper {
            None => ":".into(),
            Some(upper) if self.lower == self.default_lower => upper.to_string(),
            Some(upper) => format!("{}:{upper}", self.lower),
        }
    }
}

pub fn read_bounds(debug: &DebugInfo, at: DieRef, fortran: bool) -> Vec<ArrayBounds> {
    let default_lower = i64::from(fortran);
    let mut found = Vec::new();
    for_each_child(debug, at, |_, tag, attrs| {
        if tag == gimli::DW_TAG_subrange_type || tag == gimli::DW_TAG_enumeration_type {
            let lower = constant_value(&attrs.lower).unwrap_or(default_lower);
            let count =
                constant_value(&attrs.count).and_then(|n| lower.checked_add(n)?.checked_sub(1));
            found.push(ArrayBounds {
                lower,
                upper: count.or_else(|| constant_value(&attrs.upper)),
                default_lower,
            });
        }
        found.len() < MAX_DIMENSIONS
    });
    found
}

fn constant_value(value: &Option<Value<DwarfReader>>) -> Option<i64> {
    match value.as_ref()? {
        Value::Sdata(n) => Some(*n),
        // An "upper bound" of all ones is how `int a[0]` and `int a[]` come out.
        Value::Data4(u32::MAX) => Some(-1),
        other => other.udata_value().map(|n| n as i64),
    }
}
