//! DWARF as the rest of this folder reads it: units by number, entries by
//! (unit, offset), attributes picked into a struct. Nothing is parsed before it is asked.
use super::attrs::{DieAttrs, DwarfReader};
use super::elf::ElfImage;
use crate::trace::symbolizer::StaticObject;
use gimli::{AttributeValue as Value, Operation, Reader};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

pub type DwarfUnit = gimli::Unit<DwarfReader>;
pub type DieOffset = gimli::UnitOffset<usize>;

const MAX_UNITS: usize = 1 << 20;
const MAX_RANGES: usize = 1 << 22;
/// Deeper than any compiler nests; what recurses on entries must not go deeper.
pub const MAX_DEPTH: isize = 256;
pub const MAX_NAME: usize = 512;

/// One entry of the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DieRef {
    pub unit: usize,
    pub offset: DieOffset,
}

pub struct DebugInfo {
    pub dwarf: Arc<gimli::Dwarf<DwarfReader>>,
    sections: DebugSections,
    slots: Vec<UnitSlot>,
    /// Type signature -> entry, for -fdebug-types-section.
    signatures: HashMap<u64, DieRef>,
    /// (low, high, unit, highest `high` so far), sorted by `low`.
    ranges: OnceCell<Vec<(u64, u64, usize, u64)>>,
}

struct UnitSlot {
    header: gimli::UnitHeader<DwarfReader>,
    /// While it is in use, see [`DebugInfo::forget`].
    unit: RefCell<Option<Arc<DwarfUnit>>>,
    shape: OnceCell<UnitShape>,
    language: OnceCell<Option<gimli::DwLang>>,
}

/// What one pass over the entries of a unit tells.
#[derive(Clone, Copy, Default)]
struct UnitShape {
    /// The entries nest no deeper than [`MAX_DEPTH`].
    shallow: bool,
    /// None of them refers to another unit.
    self_contained: bool,
}

/// Debug sections by name, and the byte order of their file.
struct DebugSections {
    bytes: HashMap<&'static str, Arc<[u8]>>,
    endian: gimli::RunTimeEndian,
}

impl DebugSections {
    fn reader(&self, id: gimli::SectionId) -> DwarfReader {
        let empty = || Arc::new([]) as Arc<[u8]>;
        let bytes = self.bytes.get(id.name()).cloned().unwrap_or_else(empty);
        DwarfReader::new(bytes, self.endian)
    }
}

impl DebugInfo {
    pub fn new(elf: &ElfImage) -> Option<DebugInfo> {
        if !elf.has_dwarf() {
            return None;
        }
        let endian = match elf.little_endian {
            true => gimli::RunTimeEndian::Little,
            false => gimli::RunTimeEndian::Big,
        };
        let sections = DebugSections {
            bytes: elf.sections.clone(),
            endian,
        };
        let load = |id| Ok::<_, gimli::Error>(sections.reader(id));
        let mut dwarf = gimli::Dwarf::load(load).ok()?;
        // Units of one object file share a table.
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let dwarf = Arc::new(dwarf);
        let mut slots = Vec::new();
        let mut units = dwarf.units();
        while let (Ok(Some(header)), true) = (units.next(), slots.len() < MAX_UNITS) {
            slots.push(UnitSlot::new(header));
        }
        let mut types = dwarf.type_units();
        while let (Ok(Some(header)), true) = (types.next(), slots.len() < MAX_UNITS) {
            slots.push(UnitSlot::new(header));
        }
        let mut signatures = HashMap::new();
        for (unit, slot) in slots.iter().enumerate() {
            if let gimli::UnitType::Type {
                type_signature: signature,
                type_offset: offset,
            } = slot.header.type_()
            {
                signatures.insert(signature.0, DieRef { unit, offset });
            }
        }
        Some(DebugInfo {
            dwarf,
            sections,
            slots,
            signatures,
            ranges: OnceCell::new(),
        })
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn unit(&self, index: usize) -> Option<Arc<DwarfUnit>> {
        let slot = self.slots.get(index)?;
        let mut kept = slot.unit.borrow_mut();
        if kept.is_none() {
            *kept = self.dwarf.unit(slot.header.clone()).ok().map(Arc::new);
        }
        kept.clone()
    }

    /// Drops what was parsed of a unit; it is parsed again when asked for.
    pub fn forget(&self, index: usize) {
        if let Some(slot) = self.slots.get(index) {
            slot.unit.take();
        }
    }

    /// The units whose tables are in memory.
    #[cfg(test)]
    pub fn parsed_units(&self) -> usize {
        let parsed = |s: &&UnitSlot| s.unit.borrow().is_some();
        self.slots.iter().filter(parsed).count()
    }

    /// Whether the entries of a unit nest no deeper than [`MAX_DEPTH`].
    pub fn is_shallow(&self, index: usize) -> bool {
        self.shape(index).shallow
    }

    /// Whether nothing in a unit refers to another one.
    pub fn is_self_contained(&self, index: usize) -> bool {
        self.shape(index).self_contained
    }

    fn shape(&self, index: usize) -> UnitShape {
        let read = || self.read_shape(index).unwrap_or_default();
        let slot = self.slots.get(index);
        slot.map_or_else(UnitShape::default, |s| *s.shape.get_or_init(read))
    }

    fn read_shape(&self, index: usize) -> Option<UnitShape> {
        let unit = self.unit(index)?;
        let mut raw = unit.entries_raw(None).ok()?;
        let mut shape = UnitShape {
            shallow: true,
            self_contained: true,
        };
        while !raw.is_empty() {
            let Some(abbreviation) = raw.read_abbreviation().ok()? else {
                continue;
            };
            if raw.next_depth() >= MAX_DEPTH {
                return None;
            }
            let attributes = abbreviation.attributes();
            shape.self_contained &= !attributes.iter().any(|a| may_leave_unit(a.form()));
            raw.skip_attributes(attributes).ok()?;
        }
        Some(shape)
    }

    /// The sections with this compilation unit as the only one.
    pub fn dwarf_of_unit(&self, index: usize) -> Option<gimli::Dwarf<DwarfReader>> {
        let header = &self.slots.get(index)?.header;
        let start = header.debug_info_offset()?.0;
        let load = |id| {
            let whole = self.sections.reader(id);
            Ok::<_, gimli::Error>(match id {
                gimli::SectionId::DebugInfo => {
                    whole.range(start..start + header.length_including_self())
                }
                // It says where units are, which is elsewhere now.
                gimli::SectionId::DebugAranges => whole.range(0..0),
                _ => whole,
            })
        };
        gimli::Dwarf::load(load).ok()
    }

    /// The attributes and tag of one entry.
    pub fn entry(&self, die: DieRef) -> Option<(gimli::DwTag, DieAttrs)> {
        let unit = self.unit(die.unit)?;
        let mut raw = unit.entries_raw(Some(die.offset)).ok()?;
        let mut entry = gimli::DebuggingInformationEntry::null();
        raw.read_entry(&mut entry).ok()?.then_some(())?;
        Some((entry.tag(), DieAttrs::from_attributes(entry.attrs())))
    }

    /// The entry an attribute of `unit` points to.
    pub fn referenced_die(
        &self,
        unit: usize,
        value: &Option<Value<DwarfReader>>,
    ) -> Option<DieRef> {
        match *value.as_ref()? {
            Value::UnitRef(offset) => Some(DieRef { unit, offset }),
            Value::DebugInfoRef(at) => {
                let holds = |s: &UnitSlot| at.to_unit_offset(&s.header);
                let start =
                    |s: &UnitSlot| s.header.debug_info_offset().is_some_and(|o| o.0 <= at.0);
                let unit = self.slots.partition_point(start).checked_sub(1)?;
                let offset = holds(&self.slots[unit])?;
                Some(DieRef { unit, offset })
            }
            Value::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    pub fn attribute_text(
        &self,
        unit: usize,
        value: &Option<Value<DwarfReader>>,
    ) -> Option<String> {
        let value = value.as_ref()?.clone();
        let unit = self.unit(unit)?;
        let mut slice = self.dwarf.attr_string(&unit, value).ok()?;
        if slice.len() > MAX_NAME {
            slice.truncate(MAX_NAME).ok()?;
        }
        Some(slice.to_string_lossy().ok()?.into_owned())
    }

    pub fn language(&self, unit: usize) -> Option<gimli::DwLang> {
        let slot = self.slots.get(unit)?;
        *slot.language.get_or_init(|| self.read_language(unit))
    }

    fn read_language(&self, unit: usize) -> Option<gimli::DwLang> {
        let unit = self.unit(unit)?;
        let mut raw = unit.entries_raw(None).ok()?;
        let mut entry = gimli::DebuggingInformationEntry::null();
        raw.read_entry(&mut entry).ok()?;
        match entry.attr_value(gimli::DW_AT_language)? {
            Value::Language(language) => Some(language),
            _ => None,
        }
    }

    /// The path of file number `index` of a unit's line table.
    pub fn file_name(&self, unit: usize, index: u64) -> Option<String> {
        let parsed = self.unit(unit)?;
        let header = parsed.line_program.as_ref()?.header();
        // Numbers count from 1 in DWARF 4, where 0 means "none".
        if header.version() <= 4 && index == 0 {
            return None;
        }
        let file = header.file(index)?;
        let name = self.attribute_text(unit, &Some(file.path_name()))?;
        let dir = self
            .attribute_text(unit, &file.directory(header))
            .unwrap_or_default();
        let root = parsed
            .comp_dir
            .as_ref()
            .and_then(|d| d.to_string_lossy().ok());
        let mut path = std::path::PathBuf::from(root.as_deref().unwrap_or(""));
        path.push(dir);
        path.push(name);
        Some(path.to_string_lossy().into_owned())
    }

    /// The address ranges an entry covers.
    pub fn address_ranges(&self, unit: usize, attrs: &DieAttrs) -> Vec<(u64, u64)> {
        let Some(parsed) = self.unit(unit) else {
            return Vec::new();
        };
        if let Some(value) = attrs.ranges.clone() {
            let mut found = Vec::new();
            if let Ok(Some(mut list)) = self.dwarf.attr_ranges(&parsed, value) {
                while let (Ok(Some(r)), true) = (list.next(), found.len() < MAX_RANGES) {
                    found.push((r.begin, r.end));
                }
            }
            return found;
        }
        let address = |v: &Value<DwarfReader>| self.dwarf.attr_address(&parsed, v.clone()).ok()?;
        let low = attrs.low.as_ref().and_then(address);
        let high = match (&attrs.high, low) {
            (Some(Value::Addr(high)), _) => Some(*high),
            (Some(value), Some(low)) => value
                .udata_value()
                .map(|size| low.saturating_add(size))
                .or_else(|| address(value)),
            _ => None,
        };
        low.zip(high).into_iter().collect()
    }

    /// The units with code at `pc`.
    pub fn units_at(&self, pc: u64) -> Vec<usize> {
        let ranges = self.ranges.get_or_init(|| self.read_ranges());
        let end = ranges.partition_point(|r| r.0 <= pc);
        let mut found = Vec::new();
        for r in ranges[..end].iter().rev().take_while(|r| r.3 > pc) {
            if r.1 > pc && !found.contains(&r.2) {
                found.push(r.2);
            }
        }
        found
    }

    /// The address ranges of a unit's line table, for units that state none.
    fn line_ranges(&self, unit: usize) -> Vec<(u64, u64)> {
        let program = self.unit(unit).and_then(|u| u.line_program.clone());
        let sequences = program.and_then(|p| p.sequences().ok());
        let sequences = sequences.map_or_else(Vec::new, |(_, sequences)| sequences);
        let ranges = sequences.into_iter().map(|s| (s.start, s.end));
        ranges.take(MAX_RANGES).collect()
    }

    fn read_ranges(&self) -> Vec<(u64, u64, usize, u64)> {
        let mut ranges = Vec::new();
        for unit in 0..self.slots.len() {
            let root = self.slots[unit].header.root_offset();
            let Some((_, attrs)) = self.entry(DieRef { unit, offset: root }) else {
                continue;
            };
            let mut own = self.address_ranges(unit, &attrs);
            if own.is_empty() {
                own = self.line_ranges(unit);
            }
            ranges.extend(own.into_iter().map(|(low, high)| (low, high, unit, 0)));
            // Their tables would be several times as large as the file.
            self.forget(unit);
            if ranges.len() > MAX_RANGES {
                break;
            }
        }
        ranges.sort_unstable();
        let mut top = 0;
        for r in &mut ranges {
            top = top.max(r.1);
            r.3 = top;
        }
        ranges
    }
}

impl UnitSlot {
    fn new(header: gimli::UnitHeader<DwarfReader>) -> UnitSlot {
        UnitSlot {
            header,
            unit: RefCell::default(),
            shape: OnceCell::new(),
            language: OnceCell::new(),
        }
    }
}

/// Whether an attribute of this form can point out of its unit.
fn may_leave_unit(form: gimli::DwForm) -> bool {
    matches!(form, gimli::DW_FORM_ref_addr | gimli::DW_FORM_indirect)
}

/// A location that is one fixed address, or place in each thread's block
/// ([`StaticObject::THREAD_LOCAL`]); anything computed (the stack, registers) is not static.
pub fn fixed_address(
    debug: &DebugInfo,
    unit: usize,
    location: &Option<Value<DwarfReader>>,
) -> Option<u64> {
    let Some(Value::Exprloc(expression)) = location.clone() else {
        return None;
    };
    let parsed = debug.unit(unit)?;
    let mut operations = expression.operations(parsed.encoding());
    let (base, is_constant) = match operations.next().ok()?? {
        Operation::Address { address } => (address, false),
        Operation::AddressIndex { index } => (debug.dwarf.address(&parsed, index).ok()?, false),
        Operation::UnsignedConstant { value } => (value, true),
        Operation::SignedConstant { value } => (u64::try_from(value).ok()?, true),
        _ => return None,
    };
    let (base, next) = match operations.next().ok()? {
        Some(Operation::TLS) => {
            let vaddr = StaticObject::THREAD_LOCAL.checked_add(base)?;
            (vaddr, operations.next().ok()?)
        }
        next if !is_constant => (base, next),
        _ => return None,
    };
    match next {
        None => Some(base),
        Some(Operation::PlusConstant { value }) => {
            let end = operations.next().ok()?.is_none();
            base.checked_add(value).filter(|_| end)
        }
        Some(_) => None,
    }
}

/// Calls `each` with the direct children of an entry until it says no.
pub fn for_each_child(
    debug: &DebugInfo,
    at: DieRef,
    mut each: impl FnMut(DieRef, gimli::DwTag, &DieAttrs) -> bool,
) {
    let unit = debug.unit(at.unit);
    let Some(Ok(mut raw)) = unit.as_ref().map(|u| u.entries_raw(Some(at.offset))) else {
        return;
    };
    let mut entry = gimli::DebuggingInformationEntry::null();
    if !matches!(raw.read_entry(&mut entry), Ok(true)) || !entry.has_children() {
        return;
    }
    let level = raw.next_depth();
    while !raw.is_empty() && raw.next_depth() >= level {
        match raw.read_entry(&mut entry) {
            Ok(true) if entry.depth() == level => {
                let die = DieRef {
                    unit: at.unit,
                    offset: entry.offset(),
                };
                if !each(die, entry.tag(), &DieAttrs::from_attributes(entry.attrs())) {
                    return;
                }
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}
