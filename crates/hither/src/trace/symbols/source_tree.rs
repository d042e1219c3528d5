//! C, C++ and Rust: which variable receives a block, from the syntax tree of the file.
//!
//! From what stands at the line and column of the allocating call, outwards: a declaration
//! or an assignment receives its value, an object grows by its method, `posix_memalign(&p)`
//! fills p. The trees are of a parser that goes on behind what it does not understand, such as
//! macros.
use super::lvalue::{trailing_lvalue, AllocationReceiver, Lvalue};
use super::source_repairs::without_pointers_of_new;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Point, Tree};

/// No file that people write takes longer.
const PARSE_TIME: Duration = Duration::from_secs(2);
/// Steps outwards from a call.
const MAX_DEPTH: usize = 200;

/// Methods that make their object allocate.
const GROWING: [&str; 19] = [
    "resize",
    "reserve",
    "assign",
    "insert",
    "emplace",
    "append",
    "reset",
    "push",
    "push_back",
    "push_front",
    "emplace_back",
    "emplace_front",
    "try_emplace",
    "insert_or_assign",
    "allocate",
    "extend",
    "push_str",
    "resize_with",
    "entry",
];
/// Functions that return a status, and the block through an argument.
const FILLING: [&str; 3] = ["posix_memalign", "Alloc_mem", "asprintf"];
/// Parts of the names of what allocates.
const ALLOCATING: [&str; 9] = [
    "alloc",
    "Alloc",
    "make_",
    "memalign",
    "strdup",
    "mmap",
    "shmat",
    "with_capacity",
    "vec",
];

/// Statements of C, C++ and Rust that execute something again and again.
const LOOPS: [&str; 7] = [
    "for_statement",
    "for_range_loop",
    "while_statement",
    "do_statement",
    "for_expression",
    "while_expression",
    "loop_expression",
];

/// What a file is written in. Headers are read as C++.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grammar {
    /// In which `new` and `class` are names like any other.
    C,
    Cpp,
    Rust,
}

/// A call as written.
pub struct Call<'a> {
    pub arguments: Vec<&'a str>,
    pub object: Option<Lvalue>,
}

/// A parsed file.
pub struct SourceTree {
    text: String,
    tree: Tree,
}

impl SourceTree {
    /// `None` when it takes too long.
    pub fn parse(text: String, grammar: Grammar) -> Option<SourceTree> {
        let language: Language = match grammar {
            Grammar::C => tree_sitter_c::LANGUAGE.into(),
            Grammar::Cpp => tree_sitter_cpp::LANGUAGE.into(),
            Grammar::Rust => tree_sitter_rust::LANGUAGE.into(),
        };
        let mut parser = Parser::new();
        parser.set_language(&language).ok()?;
        let end = Instant::now() + PARSE_TIME;
        let mut in_time = |_: &ParseState| match Instant::now() < end {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let options = ParseOptions::new().progress_callback(&mut in_time);
        let repaired = (grammar == Grammar::Cpp).then(|| without_pointers_of_new(&text));
        let bytes = repaired.as_deref().unwrap_or(&text).as_bytes();
        let mut read = |at: usize, _: Point| bytes.get(at..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut read, None, Some(options))?;
        Some(SourceTree { text, tree })
    }

    /// What receives the block that is allocated at a line and column, both from 1; column 0:
    /// the first that seems to allocate on the line.
    pub fn receiver(&self, line: u32, column: u32) -> AllocationReceiver {
        let row = (line as usize).saturating_sub(1);
        let start = match column.checked_sub(1) {
            Some(column) => self.node_at(row, column as usize),
            None => self.allocation_on(row),
        };
        let found = start.map(|node| self.receiver_around(node));
        found.unwrap_or_default()
    }

    fn node_at(&self, row: usize, column: usize) -> Option<Node<'_>> {
        let at = Point { row, column };
        self.tree.root_node().descendant_for_point_range(at, at)
    }

    /// The first call on a line that seems to allocate, else whatever begins there.
    fn allocation_on(&self, row: usize) -> Option<Node<'_>> {
        let line = self.text.lines().nth(row)?;
        let words = ALLOCATING.iter().chain(&["new "]);
        let column = words.filter_map(|word| line.find(word)).min();
        let indent = line.len() - line.trim_start().len();
        self.node_at(row, column.unwrap_or(indent))
    }

    /// Which parameter, from 0, of the function around a line has this name, and whether it is a
    /// reference.
    pub fn parameter(&self, line: u32, name: &str) -> Option<(usize, bool)> {
        let row = (line as usize).checked_sub(1)?;
        let text = self.text.lines().nth(row)?;
        let indent = text.len() - text.trim_start().len();
        let function = enclosing(self.node_at(row, indent)?, "function_definition")?;
        let mut declarator = field(function, "declarator")?;
        while declarator.kind() != "function_declarator" {
            declarator = field(declarator, "declarator").or_else(|| declarator.named_child(0))?;
        }
        let list = field(declarator, "parameters")?;
        let mut cursor = list.walk();
        let all: Vec<_> = list.named_children(&mut cursor).collect();
        let all = all.into_iter().filter(|p| !p.is_extra());
        all.enumerate().find_map(|(index, parameter)| {
            let declared = field(parameter, "declarator")?;
            let own = self.declarator_name(declared)?.text == name;
            own.then_some((index, self.text_of(declared).contains('&')))
        })
    }

    /// Whether a line stands in a loop of its function.
    pub fn is_in_loop(&self, line: u32) -> bool {
        let row = (line as usize).saturating_sub(1);
        let text = self.text.lines().nth(row).unwrap_or("");
        let indent = text.len() - text.trim_start().len();
        let outwards = std::iter::successors(self.node_at(row, indent), Node::parent);
        let mut kinds = outwards.take(MAX_DEPTH).map(|node| node.kind());
        kinds.any(|kind| LOOPS.contains(&kind))
    }

    /// The arguments that a function is called with at a line and column, and the object whose
    /// method it is.
    pub fn call(&self, line: u32, column: u32, function: &str) -> Option<Call<'_>> {
        let row = (line as usize).checked_sub(1)?;
        let mut node = self.node_at(row, (column as usize).checked_sub(1)?)?;
        for _ in 0..MAX_DEPTH {
            let call = enclosing(node, "call_expression")?;
            let callee = field(call, "function")?;
            let name = callee.child_by_field_name("field").unwrap_or(callee);
            if super::demangle::unqualified(self.text_of(name)) == function {
                let arguments = field(call, "arguments")?;
                let mut cursor = arguments.walk();
                let all = arguments.named_children(&mut cursor);
                return Some(Call {
                    arguments: all.map(|a| self.text_of(a)).collect(),
                    object: field(callee, "argument").and_then(|o| self.lvalue(o)),
                });
            }
            node = call.parent()?;
        }
        None
    }

    fn text_of(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn receiver_around(&self, start: Node<'_>) -> AllocationReceiver {
        let (mut child, mut fallback) = (start, None);
        if let Some(closure) = closure_made_at(start) {
            if let Some(capture) = self.only_capture(closure) {
                return AllocationReceiver::Variables(vec![capture]);
            }
            child = closure;
        }
        for _ in 0..MAX_DEPTH {
            let Some(node) = child.parent() else {
                break;
            };
            let found = match node.kind() {
                "return_statement" | "return_expression" | "co_return_statement" => {
                    return AllocationReceiver::Returned;
                }
                "call_expression" => self.filled_or_grown(node, &mut fallback),
                // `map[key]` makes the element; what makes the key stands inside the brackets.
                "subscript_expression" if start.kind() == "]" && is_end(start, child) => {
                    field(node, "argument").and_then(|map| self.lvalue(map))
                }
                "assignment_expression" => field(node, "left")
                    .filter(|left| *left != child && self.is_plain(node))
                    .and_then(|left| self.declared_array(left).or_else(|| self.lvalue(left))),
                "initializer_pair" => node
                    .child_by_field_name("designator")
                    .and_then(|d| self.lvalue_text(self.text_of(d).trim_start_matches('.'))),
                "field_initializer" => self.first_name(node),
                "lambda_capture_initializer"
                | "let_declaration"
                | "init_declarator"
                | "field_declaration"
                | "declaration"
                | "optional_parameter_declaration"
                | "condition_clause" => self.declared(node, child),
                "compound_statement"
                | "block"
                | "lambda_expression"
                | "closure_expression"
                | "function_definition"
                | "preproc_call"
                | "field_declaration_list" => break,
                _ => None,
            };
            if let Some(found) = found {
                return AllocationReceiver::Variables(vec![found]);
            }
            child = node;
        }
        fallback.map_or(AllocationReceiver::Unknown, |one| {
            AllocationReceiver::Variables(vec![one])
        })
    }

    /// `cap` in `[cap = std::vector<double>(n)] { ... }`, if there is no other.
    fn only_capture(&self, closure: Node<'_>) -> Option<Lvalue> {
        let captures = field(closure, "captures")?;
        let mut cursor = captures.walk();
        let all: Vec<_> = captures.named_children(&mut cursor).collect();
        let mut initialised = all
            .into_iter()
            .filter(|c| c.kind() == "lambda_capture_initializer");
        let only = initialised
            .next()
            .filter(|_| initialised.next().is_none())?;
        self.lvalue(field(only, "left")?)
    }

    /// `=`, not `+=`.
    fn is_plain(&self, assignment: Node<'_>) -> bool {
        field(assignment, "operator").is_none_or(|operator| self.text_of(operator) == "=")
    }

    /// `grid.resize(n)`: the object; `posix_memalign((void **)&p, 64, n)`: p.
    fn filled_or_grown(&self, call: Node<'_>, fallback: &mut Option<Lvalue>) -> Option<Lvalue> {
        let function = field(call, "function")?;
        let name = self.text_of(function);
        if FILLING.iter().any(|filling| name.contains(filling)) {
            return self.filled_argument(call);
        }
        if name.contains("alloc") || name.contains("Alloc") {
            *fallback = fallback.take().or_else(|| self.filled_argument(call));
        }
        let method = field(function, "field").map(|f| self.text_of(f))?;
        let method = method.split('<').next()?;
        let object = field(function, "argument").or_else(|| field(function, "value"))?;
        GROWING.contains(&method).then(|| self.lvalue(object))?
    }

    fn filled_argument(&self, call: Node<'_>) -> Option<Lvalue> {
        let arguments = field(call, "arguments")?;
        let mut cursor = arguments.walk();
        let all: Vec<_> = arguments.named_children(&mut cursor).collect();
        all.into_iter().find_map(|argument| {
            let text = self.text_of(argument);
            let (cast, variable) = text.rsplit_once('&')?;
            let cast = cast.trim();
            (cast.is_empty() || cast.ends_with(')')).then(|| self.lvalue_text(variable))?
        })
    }

    /// The variable of a declaration in which `child` stands: its value or the name itself.
    fn declared(&self, node: Node<'_>, child: Node<'_>) -> Option<Lvalue> {
        let all = ["declarator", "left", "pattern", "name"];
        let mut cursor = node.walk();
        let mut named: Vec<Node<'_>> = Vec::new();
        for name in all {
            named.extend(node.children_by_field_name(name, &mut cursor));
        }
        let own = named.iter().find(|n| n.id() == child.id());
        // Of several declarators the last one before the value.
        let before = named
            .iter()
            .rev()
            .find(|n| n.end_byte() <= child.start_byte());
        let is_type = field(node, "type").is_some_and(|t| t.id() == child.id());
        let declarator = match (own, is_type) {
            (Some(own), _) => own,
            // A macro that makes whole functions is the type of what is declared below it.
            (None, true) => named
                .first()
                .filter(|n| n.start_position().row == child.end_position().row)?,
            (None, false) => before?,
        };
        self.declarator_name(*declarator)
    }

    /// The name in `(*a)[n]`, `&r`, `v(n)`.
    fn declarator_name(&self, declarator: Node<'_>) -> Option<Lvalue> {
        let mut node = declarator;
        for _ in 0..MAX_DEPTH {
            match node.kind() {
                "identifier" | "field_identifier" | "qualified_identifier" => {
                    return self.lvalue_text(self.text_of(node));
                }
                // Several names: no telling.
                "tuple_pattern"
                | "slice_pattern"
                | "struct_pattern"
                | "tuple_struct_pattern"
                | "structured_binding_declarator" => return None,
                _ => {}
            }
            let inner = field(node, "declarator").or_else(|| field(node, "pattern"));
            node = inner.or_else(|| {
                let last = node.named_child_count().checked_sub(1)?;
                node.named_child(u32::try_from(last).ok()?)
            })?;
        }
        None
    }

    /// `double (*b)[N] = ...`, which the grammar also takes for an element of a call's result.
    fn declared_array(&self, left: Node<'_>) -> Option<Lvalue> {
        let mut node = left;
        while node.kind() == "subscript_expression" {
            node = field(node, "argument")?;
        }
        let arguments = field(node, "arguments").filter(|a| a.named_child_count() == 1)?;
        let name = arguments.named_child(0)?;
        (name.kind() == "pointer_expression").then(|| self.first_name(name))?
    }

    fn first_name(&self, node: Node<'_>) -> Option<Lvalue> {
        let name = node.named_child(0)?;
        self.lvalue_text(self.text_of(name))
    }

    fn lvalue(&self, node: Node<'_>) -> Option<Lvalue> {
        self.lvalue_text(self.text_of(node))
    }

    fn lvalue_text(&self, text: &str) -> Option<Lvalue> {
        let spaceless: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        trailing_lvalue(&spaceless)
    }
}

/// The lambda expression that this brace ends: code that makes its closure is said to be there.
fn closure_made_at(brace: Node<'_>) -> Option<Node<'_>> {
    let body = brace.parent().filter(|_| brace.kind() == "}")?;
    let around = body.parent().filter(|_| is_end(brace, body))?;
    (around.kind() == "lambda_expression").then_some(around)
}

fn is_end(token: Node<'_>, of: Node<'_>) -> bool {
    token.end_byte() == of.end_byte()
}

/// The nearest node of a kind that `node` is or stands in.
fn enclosing<'a>(node: Node<'a>, kind: &str) -> Option<Node<'a>> {
    std::iter::successors(Some(node), Node::parent)
        .take(MAX_DEPTH)
        .find(|n| n.kind() == kind)
}

fn field<'a>(node: Node<'a>, name: &str) -> Option<Node<'a>> {
    node.child_by_field_name(name)
}
