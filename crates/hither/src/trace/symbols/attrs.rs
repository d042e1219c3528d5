//! The attributes of a DWARF entry that this folder uses, picked into a struct.
use gimli::AttributeValue as Value;

pub type DwarfReader = gimli::EndianArcSlice<gimli::RunTimeEndian>;

/// Attributes of one entry; `None` where it has none.
#[derive(Clone, Default)]
pub struct DieAttrs {
    pub name: Option<Value<DwarfReader>>,
    pub linkage_name: Option<Value<DwarfReader>>,
    pub location: Option<Value<DwarfReader>>,
    pub type_: Option<Value<DwarfReader>>,
    /// DW_AT_specification or DW_AT_abstract_origin.
    pub origin: Option<Value<DwarfReader>>,
    pub size: Option<u64>,
    pub file: Option<u64>,
    pub line: Option<u32>,
    pub lower: Option<Value<DwarfReader>>,
    pub upper: Option<Value<DwarfReader>>,
    pub count: Option<Value<DwarfReader>>,
    pub member_at: Option<u64>,
    pub low: Option<Value<DwarfReader>>,
    pub high: Option<Value<DwarfReader>>,
    pub ranges: Option<Value<DwarfReader>>,
    pub allocated: bool,
    pub associated: bool,
    pub artificial: bool,
}

impl DieAttrs {
    pub fn from_attributes(attributes: &[gimli::Attribute<DwarfReader>]) -> DieAttrs {
        let mut found = DieAttrs::default();
        for a in attributes {
            let value = a.value();
            match a.name() {
                gimli::DW_AT_name => found.name = Some(value),
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    found.linkage_name = Some(value)
                }
                gimli::DW_AT_location => found.location = Some(value),
                gimli::DW_AT_type => found.type_ = Some(value),
                gimli::DW_AT_specification | gimli::DW_AT_abstract_origin => {
                    found.origin = Some(value)
                }
                gimli::DW_AT_byte_size => found.size = value.udata_value(),
                gimli::DW_AT_decl_file => {
                    found.file = match value {
                        Value::FileIndex(index) => Some(index),
                        other => other.udata_value(),
                    }
                }
                gimli::DW_AT_decl_line => {
                    found.line = value.udata_value().and_then(|l| l.try_into().ok())
                }
                gimli::DW_AT_lower_bound => found.lower = Some(value),
                gimli::DW_AT_upper_bound => found.upper = Some(value),
                gimli::DW_AT_count => found.count = Some(value),
                gimli::DW_AT_data_member_location => found.member_at = value.udata_value(),
                gimli::DW_AT_low_pc => found.low = Some(value),
                gimli::DW_AT_high_pc => found.high = Some(value),
                gimli::DW_AT_ranges => found.ranges = Some(value),
                gimli::DW_AT_allocated => found.allocated = true,
                gimli::DW_AT_associated => found.associated = true,
                gimli::DW_AT_artificial => found.artificial = true,
                _ => {}
            }
        }
        found
    }
}
