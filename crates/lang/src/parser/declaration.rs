//! Declarations of XL proper.

use super::cursor::{Cursor, describe};
use crate::ast::{
    EvictedStates, Expression, FlowDeclaration, FullPolicy, Handler, ImportedHeader, Item, Name, PacerDeclaration,
    Parameters, StateDeclaration, TableContents, TableFormula, TemplateDeclaration, TemplateOption,
};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::lexer::Kind;

const DECLARATIONS: &str = "declarations are `machine`, `include`, `import`, `const`, `condition`, `value`, `flow key`, `other packets`, \
     `register`, `slot`, `template`, `timer`, `ranges`, `receive buffer`, `send buffer`, `segments`, `turns`, `shared`, `table`, `pacer`, `action`, `interface`, `module`, `use`, `#debug`, `state` and `in`";

impl Cursor<'_> {
    /// A declaration, or `None` after an error.
    pub(crate) fn item(&mut self) -> Option<Item> {
        if self.take_debug() {
            if self.at_word("state") || self.at_word("initial") {
                return self.state(true);
            }
            return self.sample();
        }
        let Kind::Word(word) = self.peek() else {
            let found = describe(self.peek());
            self.error_here(&format!("expected a declaration, found {found}"), Some(DECLARATIONS));
            self.advance();
            return None;
        };
        let item = match word.as_str() {
            "state" | "initial" => return self.state(false),
            "in" => return self.shared_handlers(),
            "action" => return self.action().map(Item::Action),
            "interface" => return self.interface(),
            "module" => return self.module(),
            "template" => return self.template(),
            "import" => return self.import(),
            "const" => self.constant("a constant's name").map(|(name, value)| Item::Constant { name, value }),
            "condition" => self.constant("a condition's name").map(|(name, value)| Item::Condition { name, value }),
            "value" => self.constant("a value's name").map(|(name, value)| Item::Value { name, value }),
            "flow" => self.flow(),
            "other" => self.other_packets(),
            "register" => self.register(),
            "slot" => {
                self.advance();
                Some(Item::Slot { names: self.names("a slot's name") })
            }
            "timer" => self.timer(),
            "ranges" => self.ranges(),
            "receive" => self.receive_buffer(),
            "send" => self.send_buffer(),
            "segments" => self.segments(),
            "turns" => self.turns(),
            "shared" => self.tally(),
            "table" => self.table(),
            "pacer" => self.pacer(),
            "use" => self.use_of_modules(),
            "State" | "Register" | "Event" | "Action" => {
                let message = format!("`{word}` belongs to the published dialect, not to XL");
                self.give_up_with(&message, "programs of the dialect are in files that end in .xtra");
                return None;
            }
            other => {
                let mut error = Diagnostic::error(self.span(), format!("`{other}` starts no declaration"));
                let known = [
                    "state",
                    "action",
                    "interface",
                    "module",
                    "use",
                    "template",
                    "import",
                    "const",
                    "condition",
                    "value",
                    "flow",
                    "other",
                    "register",
                    "slot",
                    "timer",
                    "ranges",
                    "receive",
                    "segments",
                    "turns",
                    "shared",
                    "table",
                    "pacer",
                    "machine",
                    "include",
                    "initial",
                ];
                error = match weftwire_text::diagnostic::nearest(other, known) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help(DECLARATIONS),
                };
                self.report(error);
                self.advance();
                self.recover();
                return None;
            }
        };
        match item {
            Some(item) => {
                self.semicolon();
                Some(item)
            }
            None => {
                self.recover();
                None
            }
        }
    }

    fn constant(&mut self, what: &str) -> Option<(Name, Expression)> {
        self.advance();
        let name = self.name(what)?;
        self.expect("=", "behind the name");
        Some((name, self.expression()))
    }

    fn sample(&mut self) -> Option<Item> {
        let register = self.name("a register to sample, or a state")?;
        self.expect_word("every", "and an interval behind the register");
        let interval = self.expression();
        self.take(";");
        Some(Item::Sample { register, interval })
    }

    pub(super) fn register(&mut self) -> Option<Item> {
        self.advance();
        let names = self.names("a register's name");
        if names.is_empty() {
            return None;
        }
        let length = if self.take("[") {
            let length = self.expression();
            self.expect("]", "behind how many elements there are");
            if let [_, second, ..] = &names[..] {
                let error = Diagnostic::error(second.span, "an array has a declaration of its own");
                self.report(error.help("for instance `register history[16]: time;`"));
            }
            Some(length)
        } else {
            None
        };
        let kind = if self.take(":") { Some(self.name("a type")?) } else { None };
        if kind.is_none() {
            self.error_here("a register needs a type", Some("for instance `register rtt: time = 100ms;`"));
        }
        let initial = if self.take("=") { Some(self.expression()) } else { None };
        Some(match (length, names.first()) {
            (Some(length), Some(name)) => Item::Array { name: name.clone(), length, kind, initial },
            _ => Item::Register { names, kind, initial },
        })
    }

    pub(super) fn parameters(&mut self) -> Parameters {
        let mut parameters = Vec::new();
        if !self.take("(") || self.take(")") {
            return parameters;
        }
        while let Some(name) = self.name("a name") {
            let kind = if self.take(":") { self.name("a type") } else { None };
            parameters.push((name, kind));
            if !self.take(",") {
                break;
            }
        }
        self.expect(")", "to close the list");
        parameters
    }

    fn timer(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a timer's name")?;
        Some(Item::Timer { name, payload: self.parameters() })
    }

    /// `at most N`
    fn at_most(&mut self) -> Expression {
        self.expect_word("at", "and how many at most");
        self.expect_word("most", "behind `at`");
        self.expression()
    }

    fn ranges(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a name")?;
        Some(Item::Ranges { name, bytes: None, most: self.at_most() })
    }

    fn receive_buffer(&mut self) -> Option<Item> {
        self.advance();
        self.expect_word("buffer", "behind `receive`");
        let name = self.name("the buffer's name")?;
        let bytes = Some(self.expression());
        let most = self.at_most();
        self.expect_word("ranges", "behind the number");
        Some(Item::Ranges { name, bytes, most })
    }

    fn send_buffer(&mut self) -> Option<Item> {
        let span = self.span();
        self.advance();
        self.expect_word("buffer", "behind `send`");
        Some(Item::SendBuffer { bytes: self.expression(), span })
    }

    fn segments(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a name")?;
        let fields = self.parameters();
        Some(Item::Segments { name, fields, most: self.at_most() })
    }

    fn turns(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a name")?;
        Some(Item::Turns { name, most: self.at_most() })
    }

    fn tally(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a name")?;
        self.expect_word("counts", "and what it counts behind the name");
        let flows = self.take_word("flows");
        if flows {
            self.expect_word("in", "and states behind `flows`");
        } else {
            self.expect_word("settings", "or `flows in` and states behind `counts`");
            self.expect_word("of", "and timers behind `settings`");
        }
        Some(Item::Tally { name, flows, counted: self.names(if flows { "a state" } else { "a timer" }) })
    }

    fn table(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a table's name")?;
        if self.take("(") {
            let index = self.name("the index's name")?;
            self.expect_word("in", "and a range behind the index");
            let first = self.expression();
            self.expect("..", "between the first and the last index");
            let last = self.expression();
            self.expect(")", "to close the range");
            self.expect("=", "and a formula behind the range");
            let formula = self.expression();
            return Some(Item::Table {
                name,
                contents: TableContents::Formula(Box::new(TableFormula { index, first, last, formula })),
            });
        }
        self.expect("=", "behind the table's name");
        self.expect("[", "to open the entries");
        let mut entries = Vec::new();
        while !self.at_end() && !self.at_punctuation("]") {
            entries.push(self.expression());
            if !self.take(",") {
                break;
            }
        }
        self.expect("]", "to close the entries");
        Some(Item::Table { name, contents: TableContents::Given(entries) })
    }

    fn pacer(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a pacer's name")?;
        let envelope = if self.take("=") { Some(self.text("a rate envelope in quotes")?) } else { None };
        let mut pacer = PacerDeclaration { name, envelope, packet_size: None, entries: None };
        loop {
            if self.take_word("packet") {
                self.expect_word("size", "behind `packet`");
                pacer.packet_size = Some(self.expression());
            } else if self.take_word("entries") {
                pacer.entries = Some(self.expression());
            } else {
                return Some(Item::Pacer(pacer));
            }
        }
    }

    fn import(&mut self) -> Option<Item> {
        self.advance();
        let file = self.text("a file name in quotes")?;
        let mut headers = Vec::new();
        self.expect("{", "and the headers behind the file name");
        while !self.at_end() && !self.at_punctuation("}") {
            let before = self.position();
            if let Some(header) = self.imported_header() {
                headers.push(header);
            }
            self.semicolon();
            self.must_move(before);
        }
        self.expect("}", "to close the import");
        Some(Item::Import { file, headers })
    }

    fn imported_header(&mut self) -> Option<ImportedHeader> {
        let header = self.name("a header of the P4 file")?;
        let alias = if self.take_word("as") { self.name("a name")? } else { header.clone() };
        self.expect_word("after", "and the header in front");
        let after = self.name("a header")?;
        let mut when = None;
        if self.take_word("when") {
            let path = self.path("a field")?;
            self.expect("==", "and a value behind the field");
            when = Some((path, self.expression()));
        }
        let mut types = Vec::new();
        if self.take_word("with") {
            loop {
                let field = self.name("a field of the header")?;
                self.expect(":", "and a type behind the field");
                types.push((field, self.name("a type")?));
                if !self.take(",") {
                    break;
                }
            }
        }
        Some(ImportedHeader { header, alias, after, when, types })
    }

    fn template(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a template's name")?;
        self.expect(":", "and the headers, for instance `udp`,");
        let headers = self.names("a header");
        let mut template =
            TemplateDeclaration { name, headers, options: Vec::new(), payload: None, fields: Vec::new() };
        if self.take(";") {
            return Some(Item::Template(template));
        }
        self.expect("{", "or `;` behind the headers");
        while !self.at_end() && !self.at_punctuation("}") {
            let before = self.position();
            if self.take_word("options") {
                self.template_options(&mut template.options);
            } else if self.take_word("payload") {
                template.payload = Some(self.expression());
            } else if let Some(path) = self.path("a field, `options` or `payload`") {
                self.expect("=", "behind the field");
                template.fields.push((path, self.expression()));
            }
            self.semicolon();
            self.must_move(before);
        }
        self.expect("}", "to close the template");
        Some(Item::Template(template))
    }

    /// Behind `options`.
    fn template_options(&mut self, options: &mut Vec<TemplateOption>) {
        while let Some(name) = self.name("a TCP option") {
            let wanted = match name.text.as_str() {
                "sack" if !self.at_punctuation(",") && !self.at_punctuation(";") => Some(self.expression()),
                _ if self.take_word("if") => Some(self.condition()),
                _ => None,
            };
            options.push(TemplateOption { name, wanted });
            if !self.take(",") {
                return;
            }
        }
    }

    fn flow(&mut self) -> Option<Item> {
        let span = self.span();
        self.advance();
        self.expect_word("key", "behind `flow`");
        let mut flow = FlowDeclaration {
            source: Vec::new(),
            destination: Vec::new(),
            common: Vec::new(),
            symmetric: false,
            expire: None,
            max: None,
            max_timers: None,
            when_full: FullPolicy::default(),
            span,
        };
        loop {
            if self.at_punctuation("(") {
                if !flow.source.is_empty() {
                    self.error_here("a flow key has one pair of sides", None);
                }
                flow.source = self.side();
                flow.symmetric = self.take("<->");
                if !flow.symmetric {
                    self.expect("->", "or `<->` between the sides");
                }
                flow.destination = self.side();
            } else {
                flow.common.push(self.path("a field of the key")?);
            }
            if !self.take(",") {
                break;
            }
        }
        flow.span = span.to(self.previous_span());
        self.flow_options(&mut flow)?;
        Some(Item::Flow(flow))
    }

    fn side(&mut self) -> Vec<Vec<Name>> {
        let mut fields = Vec::new();
        self.expect("(", "to open a side of the key");
        while let Some(path) = self.path("a field of the key") {
            fields.push(path);
            if !self.take(",") {
                break;
            }
        }
        self.expect(")", "to close the side");
        fields
    }

    fn flow_options(&mut self, flow: &mut FlowDeclaration) -> Option<()> {
        loop {
            if self.take_word("expires") {
                self.expect_word("after", "behind `expires`");
                flow.expire = Some(self.expression());
            } else if self.take_word("at") {
                self.expect_word("most", "behind `at`");
                let count = self.expression();
                if self.take_word("timers") {
                    flow.max_timers = Some(count);
                } else {
                    self.expect_word("flows", "or `timers` behind the number");
                    flow.max = Some(count);
                }
            } else if self.take_word("when") {
                self.expect_word("full", "behind `when`");
                if self.take_word("reject") {
                    flow.when_full = FullPolicy::Reject;
                } else {
                    self.expect_word("evict", "or `reject` behind `when full`");
                    self.expect_word("oldest", "behind `evict`");
                    if self.take_word("in") {
                        flow.when_full = FullPolicy::EvictOldestIn(self.evicted_states());
                    }
                }
            } else {
                return Some(());
            }
        }
    }

    /// Behind `evict oldest in`.
    fn evicted_states(&mut self) -> Vec<EvictedStates> {
        let mut groups = Vec::new();
        loop {
            let states = self.names("a state");
            let idle = if self.take_word("idle") { Some(self.expression()) } else { None };
            let above = if self.take_word("above") { Some(self.expression()) } else { None };
            groups.push(EvictedStates { states, idle, above });
            if !self.take_word("then") {
                return groups;
            }
            self.expect_word("in", "behind `then`");
        }
    }

    fn other_packets(&mut self) -> Option<Item> {
        let span = self.span();
        self.advance();
        self.expect_word("packets", "behind `other`");
        let mut pairs = Vec::new();
        if !self.take_word("drop") {
            self.expect_word("pass", "or `drop` behind `other packets`");
            loop {
                let one = self.expression();
                self.expect("<->", "and another port");
                pairs.push((one, self.expression()));
                if !self.take(",") {
                    break;
                }
            }
        }
        Some(Item::OtherPackets { pairs, span: span.to(self.previous_span()) })
    }

    fn state(&mut self, debug: bool) -> Option<Item> {
        let initial = self.take_word("initial");
        self.expect_word("state", "behind `initial`");
        let name = self.name("a state's name")?;
        let mut expire = None;
        if self.take_word("expires") {
            self.expect_word("after", "behind `expires`");
            expire = Some(self.expression());
        }
        let mut state = StateDeclaration {
            name,
            initial,
            debug,
            expire,
            enter: Vec::new(),
            exit: Vec::new(),
            handlers: Vec::new(),
        };
        if !self.expect("{", "to open the state") {
            self.recover();
            return None;
        }
        while !self.at_end() && !self.at_punctuation("}") {
            let before = self.position();
            let debug = self.take_debug();
            if debug && !self.at_word("on") {
                self.misplaced_debug();
            }
            if self.take_word("on") {
                state.handlers.extend(self.handler(debug));
            } else if self.take_word("enter") {
                state.enter.extend(self.block("to open the entry actions"));
            } else if self.take_word("exit") {
                state.exit.extend(self.block("to open the exit actions"));
            } else {
                let found = describe(self.peek());
                self.error_here(
                    &format!("expected `on`, `enter` or `exit` in a state, found {found}"),
                    Some("statements stand in `enter { }`, `exit { }` and `on EVENT { }`"),
                );
                self.advance();
                self.recover();
            }
            self.must_move(before);
        }
        self.expect("}", "to close the state");
        Some(Item::State(state))
    }

    /// `in STATE, ... { on ... }`, `in any { on ... }`
    fn shared_handlers(&mut self) -> Option<Item> {
        self.advance();
        let states = if self.take_word("any") { None } else { Some(self.names("a state")) };
        if !self.expect("{", "to open the handlers") {
            self.recover();
            return None;
        }
        let mut handlers = Vec::new();
        while !self.at_end() && !self.at_punctuation("}") {
            let before = self.position();
            let debug = self.take_debug();
            if self.take_word("on") {
                handlers.extend(self.handler(debug));
            } else {
                let found = describe(self.peek());
                let help = "`enter` and `exit` belong to one state: write them there";
                self.error_here(&format!("expected `on` among handlers of several states, found {found}"), Some(help));
                self.advance();
                self.recover();
            }
            self.must_move(before);
        }
        self.expect("}", "to close the handlers");
        Some(Item::Shared { states, handlers })
    }

    fn handler(&mut self, debug: bool) -> Option<Handler> {
        let event = self.name(
            "an event: `packet`, `connect`, `close`, `data`, `read`, `abort`, `icmp`, `set`, `expire` or a timer",
        )?;
        let from = if self.take_word("from") { Some(self.expression()) } else { None };
        let when = if self.take_word("when") { Some(self.condition()) } else { None };
        Some(Handler { event, from, when, debug, body: self.block("to open the handler") })
    }
}
