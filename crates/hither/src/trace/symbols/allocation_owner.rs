//! What callers call a variable that receives a block: the argument behind `*out = malloc(n)`, or
//! the container of which it is a part.
use super::allocation_name::ProgramFrame;
use super::demangle::unqualified;
use super::line_table::catch_panic;
use super::lvalue::{parse_lvalue, AllocationReceiver, Lvalue};
use super::{scope, ProgramSymbols};

impl ProgramSymbols {
    /// The receiver as the caller writes it that passed its address: `x` for `*out`, `x.data` for
    /// `out->data`, where the caller says `f(&x)`.
    pub(super) fn argument_behind(
        &mut self,
        frames: &[ProgramFrame],
        receiver: &Lvalue,
    ) -> Option<String> {
        let pointer = ["*", &format!("{}->", receiver.root)];
        let mut root = receiver.root.clone();
        for pair in frames.windows(2) {
            let (callee, caller) = (&pair[0].frame, &pair[1].frame);
            let tree = self.sources.tree(&callee.file)?;
            let (index, is_reference) = tree.parameter(callee.line, &root)?;
            let function = unqualified(&callee.function);
            let tree = self.sources.tree(&caller.file)?;
            let call = tree.call(caller.line, caller.column, function)?;
            let argument = *call.arguments.get(index)?;
            if is_reference {
                let object = parse_lvalue(argument)?.text;
                return Some(receiver.text.replacen(&receiver.root, &object, 1));
            }
            if let Some(object) = argument.strip_prefix('&').and_then(parse_lvalue) {
                let [star, arrow] = pointer.map(|p| receiver.text.strip_prefix(p));
                let member = arrow.map(|rest| format!("{}.{rest}", object.text));
                return member.or_else(|| Some(star?.replacen(&receiver.root, &object.text, 1)));
            }
            // Passed on.
            root = parse_lvalue(argument).filter(|a| a.steps.is_empty())?.root;
        }
        None
    }

    /// The container that the receiver is a part of, as who made it calls it, and the frame that
    /// says so. Class templates are taken for containers: theirs is one name for the blocks of all.
    pub(super) fn container(
        &mut self,
        frames: &[ProgramFrame],
        receiver: &Lvalue,
    ) -> Option<(String, usize)> {
        let (mut part, mut found) = (receiver.clone(), None);
        let mut at = 0;
        while let Some(class) = template_class(&frames[at].frame.function) {
            if !self.is_member(&frames[at], &part.root) {
                break;
            }
            let same = |f: &ProgramFrame| template_class(&f.frame.function) == Some(class);
            let first = frames[at..].iter().take_while(|f| same(f)).count() + at;
            let (object, frame) = self.object_made(frames, first)?;
            at = frame;
            let whole = object.map(|o| format!("{}.{}", o.text, part.text));
            found = Some((whole.clone().unwrap_or_else(|| part.text.clone()), at));
            match whole.as_deref().and_then(parse_lvalue) {
                Some(next) => part = next,
                None => break,
            }
        }
        found
    }

    /// The object that is made or grows in the frame at `at`, or in one that a made one is
    /// returned to.
    fn object_made(
        &mut self,
        frames: &[ProgramFrame],
        mut at: usize,
    ) -> Option<(Option<Lvalue>, usize)> {
        loop {
            let frame = frames.get(at)?;
            match self.receiver(frame) {
                AllocationReceiver::Returned if at + 1 < frames.len() => at += 1,
                AllocationReceiver::Variables(mut all) if all.len() == 1 => {
                    return Some((all.pop(), at));
                }
                _ => {
                    let callee = unqualified(&frames[at - 1].frame.function).to_owned();
                    let tree = self.sources.tree(&frame.frame.file)?;
                    let call = tree.call(frame.frame.line, frame.frame.column, &callee);
                    return Some((call.and_then(|c| c.object), at));
                }
            }
        }
    }

    fn is_member(&mut self, at: &ProgramFrame, name: &str) -> bool {
        let read = |d: &super::DebugInfo| catch_panic(|| scope::is_member(d, at.pc, name));
        self.debug(&at.file).and_then(read).unwrap_or(false)
    }
}

/// The class template of a method: `ns::list<int>` for `ns::list<int>::push`.
fn template_class(function: &str) -> Option<&str> {
    let method = unqualified(function);
    let at = method.as_ptr() as usize - function.as_ptr() as usize;
    let class = function.get(..at)?.strip_suffix("::")?;
    class.ends_with('>').then_some(class)
}
