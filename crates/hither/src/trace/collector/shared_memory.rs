//! Memory that processes share, as data structures: called after its file, or, where it has none,
//! after the call that mapped it first. Forked processes have it from their parent, so it is one
//! structure for all.
use super::heap::AllocationSite;
use super::objects::ObjectBuilder;
use crate::trace::symbolizer::{AllocationName, Symbolizer};
use hither_profile::{Object, ObjectKind, Region};
use std::collections::HashMap;

impl ObjectBuilder<'_> {
    /// Adds a region that is shared. `still_mapped`: as of `add_whole_region`.
    pub fn add_shared_memory(
        &mut self,
        number: u32,
        still_mapped: &mut HashMap<u32, u64>,
        naming: &mut dyn Symbolizer,
    ) {
        let Some(region) = self.region(number).cloned() else {
            return;
        };
        let site = self.input.heap.shared.remove(&number);
        let site = site.filter(|site| !site.frames.is_empty());
        let object = match site {
            None => self.add_without_call(&region),
            Some(site) => self.add_with_call(number, &region, site, naming),
        };
        self.add_whole_region(object, number, still_mapped);
    }

    fn add_without_call(&mut self, region: &Region) -> u32 {
        let name = match region.shown_file() {
            "" => {
                self.nameless += 1;
                format!("shared memory #{}", self.nameless)
            }
            file => file.to_owned(),
        };
        self.add(Object {
            name,
            kind: ObjectKind::Shared,
            count: 1,
            process: region.process,
            ..Object::default()
        })
    }

    fn add_with_call(
        &mut self,
        number: u32,
        region: &Region,
        mut site: AllocationSite,
        naming: &mut dyn Symbolizer,
    ) -> u32 {
        site.count = 1;
        for bytes in [
            &mut site.peak,
            &mut site.allocated,
            &mut site.smallest,
            &mut site.largest,
        ] {
            *bytes = region.size;
        }
        site.counts = self.counts_of_region(number);
        let mut name = self.name_of_site(&site, naming);
        let file = region.shown_file();
        if !file.is_empty() {
            name = named_after_file(file, name);
        }
        let object = self.object_of_call(name, ObjectKind::Shared, &site);
        self.add_allocated(object, &site, naming);
        object
    }
}

/// The call only says where it is mapped, if there is a line of the program to say.
fn named_after_file(file: &str, call: AllocationName) -> AllocationName {
    let call = match call.line {
        0 => AllocationName::default(),
        _ => call,
    };
    AllocationName {
        name: file.to_owned(),
        ..call
    }
}
