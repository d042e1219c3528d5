//! Where members lie in the kernel's own structures, by the type information that it carries
//! (BTF, /sys/kernel/btf/vmlinux).

const BTF_MAGIC: u16 = 0xEB9F;
const BTF_KIND_STRUCT: u32 = 4;
const BTF_KIND_UNION: u32 = 5;
/// Anonymous structures in one another.
const MAX_ANONYMOUS_DEPTH: usize = 8;

/// The types, in the order of their ids.
pub struct BtfTypes<'a> {
    strings: &'a [u8],
    /// What comes after each type's name.
    types: Vec<(u32, &'a [u8])>,
}

impl<'a> BtfTypes<'a> {
    /// `None` when the bytes are no BTF that is understood.
    pub fn parse(bytes: &'a [u8]) -> Option<BtfTypes<'a>> {
        if u16::from_ne_bytes(*bytes.first_chunk()?) != BTF_MAGIC {
            return None;
        }
        let from = u32_at(bytes, 4)? as usize;
        let section = |at: usize| {
            let (start, length) = (u32_at(bytes, at)? as usize, u32_at(bytes, at + 4)? as usize);
            let start = from.checked_add(start)?;
            bytes.get(start..start.checked_add(length)?)
        };
        let (mut rest, strings) = (section(8)?, section(16)?);
        // The first type is void and not in there.
        let mut types = vec![(0, &[][..])];
        while !rest.is_empty() {
            let length = 12 + trailing_len(u32_at(rest, 4)?)?;
            types.push((u32_at(rest, 0)?, rest.get(4..length)?));
            rest = &rest[length..];
        }
        Some(BtfTypes { strings, types })
    }

    /// The offset in bytes of a member of a structure.
    #[must_use]
    pub fn member_offset(&self, structure: &str, member: &str) -> Option<u32> {
        let is = |(name, body): &&(u32, &[u8])| {
            u32_at(body, 0).is_some_and(|info| btf_kind(info) == BTF_KIND_STRUCT)
                && self.name_is(*name, structure)
        };
        let (_, body) = self.types.iter().find(is)?;
        let bits = self.member_bit_offset(body, member, MAX_ANONYMOUS_DEPTH)?;
        (bits % 8 == 0).then_some(bits / 8)
    }

    fn member_bit_offset(&self, body: &[u8], member: &str, deepest: usize) -> Option<u32> {
        let info = u32_at(body, 0)?;
        if !matches!(btf_kind(info), BTF_KIND_STRUCT | BTF_KIND_UNION) || deepest == 0 {
            return None;
        }
        (0..info & 0xFFFF).find_map(|index| {
            let at = 8 + 12 * index as usize;
            let (name, of, offset) = (
                u32_at(body, at)?,
                u32_at(body, at + 4)?,
                u32_at(body, at + 8)?,
            );
            // With the topmost bit of `info`, the upper byte is the width of a bit field.
            let offset = match info >> 31 {
                0 => offset,
                _ => offset & 0xFF_FFFF,
            };
            if self.name_is(name, member) {
                return Some(offset);
            }
            if !self.name_is(name, "") {
                return None;
            }
            let (_, inner) = self.types.get(of as usize)?;
            offset.checked_add(self.member_bit_offset(inner, member, deepest - 1)?)
        })
    }

    fn name_is(&self, name: u32, wanted: &str) -> bool {
        let rest = self.strings.get(name as usize..).unwrap_or_default();
        rest.strip_prefix(wanted.as_bytes())
            .is_some_and(|rest| rest.first() == Some(&0))
    }
}

fn btf_kind(info: u32) -> u32 {
    info >> 24 & 0x1F
}

/// Bytes that follow the first twelve of a type.
fn trailing_len(info: u32) -> Option<usize> {
    let members = (info & 0xFFFF) as usize;
    Some(match btf_kind(info) {
        // An integer, a variable, a tag of a declaration.
        1 | 14 | 17 => 4,
        // An array.
        3 => 12,
        // Structures, unions, sections, wide enumerations.
        4 | 5 | 15 | 19 => 12 * members,
        // Enumerations, prototypes of functions.
        6 | 13 => 8 * members,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct a { int x; struct { int y; }; }` with the types of its members behind it.
    fn example() -> Vec<u8> {
        let strings = b"\0a\0x\0y\0int\0";
        let (a, x, y, int) = (1, 3, 5, 7);
        let types: Vec<u32> = [
            // 1: int, of 4 bytes and 32 bits
            &[int, 1 << 24, 4, 32][..],
            // 2: the structure, of two members
            &[a, 4 << 24 | 2, 8, x, 1, 0, 0, 3, 32],
            // 3: the one without a name
            &[0, 4 << 24 | 1, 4, y, 1, 0],
        ]
        .concat();
        let length = types.len() as u32 * 4;
        let header = [24, 0, length, length, strings.len() as u32];
        let mut bytes = BTF_MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        bytes.extend(header.iter().chain(&types).flat_map(|w| w.to_ne_bytes()));
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn members_are_found_in_structures_without_a_name_too() {
        let bytes = example();
        let types = BtfTypes::parse(&bytes).expect("types");
        let check = |structure, member, expected| {
            assert_eq!(types.member_offset(structure, member), expected);
        };
        check("a", "x", Some(0));
        check("a", "y", Some(4));
        check("a", "z", None);
        check("int", "x", None);
        check("b", "x", None);
    }

    #[test]
    fn torn_types_are_none() {
        let bytes = example();
        for length in 0..bytes.len() {
            assert!(BtfTypes::parse(&bytes[..length]).is_none(), "{length}");
        }
        let mut strange = bytes.clone();
        strange[24 + 7] = 31;
        assert!(BtfTypes::parse(&strange).is_none());
    }
}
