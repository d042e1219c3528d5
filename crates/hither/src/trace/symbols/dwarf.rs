//! DWARF as the rest of this folder reads it: units by number, entries by
//! (unit, offset), attributes picked into a struct. Nothing is parsed before it is asked.
use super::attrs::DieAttrs;
use super::elf::ElfImage;
use gimli::{AttributeValue as Value, Operation, Reader};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

pub type DwarfReader = gimli::EndianArcSlice<gimli::RunTimeEndian>;
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
    shallow: OnceCell<bool>,
    language: OnceCell<Option<gimli::DwLang>>,
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
        let empty: Arc<[u8]> = Arc::new([]);
        let load = |id: gimli::SectionId| {
            let bytes = elf.sections.get(id.name()).unwrap_or(&empty);
            Ok::<_, gimli::Error>(DwarfReader::new(bytes.clone(), endian))
        };
        let dwarf = Arc::new(gimli::Dwarf::load(load).ok()?);
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

    /// Whether the entries of a unit nest no deeper than [`MAX_DEPTH`].
    pub fn is_shallow(&self, index: usize) -> bool {
        let check = || {
            let unit = self.unit(index);
            let Some(mut raw) = unit.as_ref().and_then(|u| u.entries_raw(None).ok()) else {
                return false;
            };
            while !raw.is_empty() {
                match raw.read_abbreviation() {
                    Ok(Some(a)) if raw.next_depth() < MAX_DEPTH => {
                        if raw.skip_attributes(a.attributes()).is_err() {
                            return false;
                        }
                    }
                    Ok(None) => {}
                    _ => return false,
                }
            }
            true
        };
        self.slots
            .get(index)
            .is_some_and(|s| *s.shallow.get_or_init(check))
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

    fn read_ranges(&self) -> Vec<(u64, u64, usize, u64)> {
        let mut ranges = Vec::new();
        for unit in 0..self.slots.len() {
            let root = self.slots[unit].header.root_offset();
            let Some((_, attrs)) = self.entry(DieRef { unit, offset: root }) else {
                continue;
            };
            let own = self.address_ranges(unit, &attrs);
            ranges.extend(own.into_iter().map(|(low, high)| (low, high, unit, 0)));
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
            shallow: OnceCell::new(),
            language: OnceCell::new(),
        }
    }
}

/// A location that is one fixed address; anything computed (thread-local storage, the
/// stack, registers) is not static.
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
    let base = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index, .. } => debug.dwarf.address(&parsed, index).ok()?,
        _ => return None,
    };
    match operations.next().ok()? {
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
