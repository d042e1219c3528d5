//! What the programs of a package need of the system, as objdump tells.
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::programs;

#[derive(Debug, Default, PartialEq)]
pub struct Needs {
    /// The oldest version that has all symbols.
    pub glibc: String,
    /// Names that the loader looks for, without those of the package.
    pub libraries: BTreeSet<String>,
}

impl Needs {
    /// # Errors
    /// When objdump cannot be run or read.
    pub fn of(prefix: &Path) -> Result<Needs> {
        let mut dump = String::new();
        let programs = programs(prefix)?;
        for program in &programs {
            let mut objdump = Command::new("objdump");
            let out = objdump.args(["-p", "-T"]).arg(program).output();
            let out = out.context("cannot start objdump; apt-get install binutils")?;
            if !out.status.success() {
                bail!("objdump cannot read {}", program.display());
            }
            dump += &String::from_utf8_lossy(&out.stdout);
        }
        let own = programs
            .iter()
            .filter_map(|file| file.file_name()?.to_str());
        Ok(parse(&dump, &own.collect::<Vec<_>>()))
    }
}

fn parse(dump: &str, own: &[&str]) -> Needs {
    let mut needs = Needs::default();
    let mut newest = Vec::new();
    for line in dump.lines() {
        if let Some(library) = line.trim().strip_prefix("NEEDED ") {
            let library = library.trim();
            if !own.contains(&library) {
                needs.libraries.insert(library.to_string());
            }
        }
        for version in line.split("GLIBC_").skip(1) {
            let end = version.find(|c: char| !c.is_ascii_digit() && c != '.');
            let version = &version[..end.unwrap_or(version.len())];
            let numbers: Vec<u32> = version.split('.').flat_map(str::parse).collect();
            if numbers > newest {
                newest = numbers;
                needs.glibc = version.to_string();
            }
        }
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let dump = "
Dynamic Section:
  NEEDED               libhwloc.so.15
  NEEDED               libown.so
  NEEDED               libc.so.6
Version References:
  required from libc.so.6:
    0x09691a75 0x00 09 GLIBC_2.2.5
    0x069691b5 0x00 05 GLIBC_2.35
DYNAMIC SYMBOL TABLE:
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.4) pow
0000000000000000      DF *UND*  0000000000000000 (GLIBC_PRIVATE) x
";
        let needs = parse(dump, &["libown.so"]);
        assert_eq!(needs.glibc, "2.35");
        let libraries: Vec<_> = needs.libraries.iter().collect();
        assert_eq!(libraries, ["libc.so.6", "libhwloc.so.15"]);
    }
}
