//! The description of this machine that goes into a profile.
use hither_model::topology::this_machine;
use hither_profile::MachineInfo;

/// Everything a profile keeps about the machine. What cannot be read stays empty: a
/// profile without it is still a profile.
#[must_use]
pub fn describe_this_machine() -> MachineInfo {
    let mut machine = MachineInfo {
        cpu: cpu_model(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        ..MachineInfo::default()
    };
    if let Ok(name) = nix::sys::utsname::uname() {
        machine.hostname = name.nodename().to_string_lossy().into_owned();
        machine.kernel = name.release().to_string_lossy().into_owned();
    }
    if let Ok(topology) = this_machine() {
        machine.topology_xml = topology.export_xml().unwrap_or_default();
        machine.numa_nodes = topology.node_count() as u32;
        machine.processing_units = topology.pu_count() as u32;
        machine.cache_bytes = topology.cache_bytes();
    }
    machine
}

/// The `model name` of the first processor in /proc/cpuinfo.
fn cpu_model(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|l| l.starts_with("model name"));
    let value = line.and_then(|l| l.split_once(':'));
    value.map_or_else(String::new, |(_, v)| v.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_described() {
        let machine = describe_this_machine();
        assert!(machine.numa_nodes >= 1);
        assert!(machine.processing_units >= 1);
        assert!(machine.topology_xml.contains("<topology"));
        assert!(!machine.hostname.is_empty() && !machine.kernel.is_empty());
    }

    #[test]
    fn the_cpu_is_named_by_its_first_model_line() {
        let text =
            "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text), "Some CPU @ 2 GHz");
        assert_eq!(cpu_model(""), "");
    }
}
