//! What a profile has beside what was collected, and what it is not to have.
use crate::program::this_machine::describe_this_machine;
use crate::trace::symbolizer_process::SymbolizerProcess;
use crate::trace::symbols::keep_source_text;
use hither_profile::Profile;

#[derive(Clone, Copy)]
pub struct ProfileCompletion {
    /// Lines of the program's source are kept too.
    pub source: bool,
    /// What says more than the program's behaviour is left out.
    pub redact: bool,
}

impl ProfileCompletion {
    /// To be called once structures have their names.
    pub fn complete(self, profile: &mut Profile, symbols: &mut SymbolizerProcess) {
        profile.meta.machine = describe_this_machine();
        if self.source {
            keep_source_text(profile, symbols);
        }
        profile.meta.limits.extend(symbols.limit());
        profile.hide_load_addresses();
        if self.redact {
            profile.redact();
        }
    }
}
