//! GHC's linker names: `containerszm0zi6_DataziMapziInternal_balanceL_info` is the code of
//! `Data.Map.Internal.balanceL`, in the Z-encoding of its compiler (GHC.Utils.Encoding).

/// What GHC makes of a function or value: its code, its object, what goes on after a call.
const KINDS: [&str; 9] = [
    "_con_info",
    "_con_entry",
    "_static_info",
    "_info",
    "_entry",
    "_closure",
    "_slow",
    "_fast",
    "_ret",
];

/// `Module.name`, without the package; `None` of other names.
pub fn demangle_haskell(raw: &str) -> Option<String> {
    let symbol = KINDS.iter().find_map(|kind| raw.strip_suffix(kind))?;
    let parts: Vec<&str> = symbol.split('_').collect();
    let ([module, name] | [_, module, name]) = parts[..] else {
        return None;
    };
    if name.is_empty() || !module.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let decoded: Option<Vec<String>> = parts.iter().map(|part| decode(part)).collect();
    let decoded = decoded?;
    // Of two parts, names of C's functions look the same unless something is encoded.
    if parts.len() == 2 && decoded == parts {
        return None;
    }
    let [.., module, name] = decoded.as_slice() else {
        return None;
    };
    Some(format!("{module}.{name}"))
}

/// `None` where it is no Z-encoding.
fn decode(text: &str) -> Option<String> {
    const PLAIN: [(&str, char); 25] = [
        ("ZL", '('),
        ("ZR", ')'),
        ("ZM", '['),
        ("ZN", ']'),
        ("ZC", ':'),
        ("ZZ", 'Z'),
        ("zz", 'z'),
        ("za", '&'),
        ("zb", '|'),
        ("zc", '^'),
        ("zd", '$'),
        ("ze", '='),
        ("zg", '>'),
        ("zh", '#'),
        ("zi", '.'),
        ("zl", '<'),
        ("zm", '-'),
        ("zn", '!'),
        ("zp", '+'),
        ("zq", '\''),
        ("zr", '\\'),
        ("zs", '/'),
        ("zt", '*'),
        ("zu", '_'),
        ("zv", '%'),
    ];
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if !matches!(first, 'z' | 'Z') {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        if let Some((_, meant)) = PLAIN.iter().find(|(code, _)| rest.starts_with(code)) {
            out.push(*meant);
            rest = &rest[2..];
            continue;
        }
        // `Z3T` is the tuple of three.
        let number = rest[1..].find('T').map(|end| &rest[1..=end])?;
        let commas = number.parse::<usize>().ok().filter(|n| *n < 64)?;
        out.push_str(&format!("({})", ",".repeat(commas.saturating_sub(1))));
        rest = &rest[number.len() + 2..];
    }
    Some(out)
}
