//! C, C++ and Rust: which variable receives a block, from the syntax tree of the file.
//!
//! From what stands at the line and column of the allocating call, outwards: a declaration
//! or an assignment receives its value, an object grows by its method, `posix_memalign(&p)`
//! fills p. The trees are of a parser that goes on behind what it does not understand, such as
//! macros.
use super::source::{trailing_lvalue, AllocationReceiver, Lvalue};
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
const ALLOCATING: [&str; 8] = [
    "alloc",
    "Alloc",
    "make_",
    "memalign",
    "strdup",
    "mmap",
    "with_capacity",
    "vec",
];

/// A parsed file.
pub struct SourceTree {
    text: String,
    tree: Tree,
}

impl SourceTree {
    /// `None` when it takes too long.
    pub fn parse(text: String, rust: bool) -> Option<SourceTree> {
        let language: Language = match rust {
            true => tree_sitter_rust::LANGUAGE.into(),
            false => tree_sitter_cpp::LANGUAGE.into(),
        };
        let mut parser = Parser::new();
        parser.set_language(&language).ok()?;
        let end = Instant::now() + PARSE_TIME;
        let mut in_time = |_: &ParseState| match Instant::now() < end {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let options = ParseOptions::new().progress_callback(&mut in_time);
        let bytes = text.as_bytes();
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

    fn text_of(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn receiver_around(&self, start: Node<'_>) -> AllocationReceiver {
        let (mut child, mut fallback) = (start, None);
        for _ in 0..MAX_DEPTH {
            let Some(node) = child.parent() else {
                break;
            };
            let found = match node.kind() {
                "return_statement" | "return_expression" | "co_return_statement" => {
                    return AllocationReceiver::Returned;
                }
                "call_expression" => self.filled_or_grown(node, &mut fallback),
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
            (None, true) => named.first()?,
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

fn field<'a>(node: Node<'a>, name: &str) -> Option<Node<'a>> {
    node.child_by_field_name(name)
}
