//! On which pages the heap blocks lie that the tracer does not report one by one: those of samples.
//!
//! A structure may be made of small blocks alone, as a matrix with a block for each row. Of those of
//! an allocation site one place on each page is kept: enough to tell who touches its pages, and who
//! touched them first.
use super::address_space::PageName;
use super::events::TargetState;
use super::object_rows::ObjectKey;
use super::regions::PAGE_BITS;
use hither_sys::{wire, Segment};
use std::collections::hash_map::{Entry, HashMap};

/// Pairs of page and site kept, 10 MiB: a gigabyte of such blocks, more where they are spread evenly.
const MAX_PLACES: usize = 1 << 18;

/// Process, object of the tracer, page.
type SitePage = (u32, u32, PageName);

#[derive(Default)]
pub struct SmallBlockPlaces {
    /// Bytes from the page's start.
    places: HashMap<SitePage, u16>,
}

impl SmallBlockPlaces {
    /// A sample lies in this object, at an offset of a region.
    pub fn add(
        &mut self,
        (process, id): ObjectKey,
        (region, offset): (u32, u64),
        segment: &Segment,
        target: &mut TargetState,
    ) {
        let Ok(page) = u32::try_from(offset >> PAGE_BITS) else {
            return;
        };
        let is_full = self.places.len() >= MAX_PLACES;
        if let Entry::Vacant(place) = self.places.entry((process, id, (region, page))) {
            let mut is_small = || {
                let record = target.objects.record((process, id), segment);
                record.is_some_and(|record| {
                    segment.target_object(record).kind == wire::OBJECT_SITE
                        && !target.heap.reports_blocks(process, record)
                })
            };
            if !is_full && is_small() {
                place.insert((offset % (1 << PAGE_BITS)) as u16);
            }
        }
    }

    /// Page, offset in it, process and object of the tracer; in no order.
    pub fn iter(&self) -> impl Iterator<Item = (PageName, u64, u32, u32)> + '_ {
        let of = |(&(process, id, page), &at): (&SitePage, &u16)| (page, at.into(), process, id);
        self.places.iter().map(of)
    }
}
