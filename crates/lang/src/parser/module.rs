//! Actions, and interfaces with the modules that have them.

use super::cursor::{Cursor, describe};
use super::statement::STATEMENTS;
use crate::ast::{
    ActionDeclaration, InterfaceAction, InterfaceDeclaration, Item, ModuleDeclaration, Name, Parameters, UseDeclaration,
};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::lexer::Kind;

/// The words that start declarations of a module.
const OF_MODULES: &[&str] = &["const", "condition", "value", "register", "ranges", "segments", "table", "action"];

impl Cursor<'_> {
    /// `action NAME(parameters) { ... }`
    pub(super) fn action(&mut self) -> Option<ActionDeclaration> {
        let (name, parameters) = self.action_head()?;
        Some(ActionDeclaration { name, parameters, body: self.block("to open the action") })
    }

    fn action_head(&mut self) -> Option<(Name, Parameters)> {
        self.advance();
        let name = self.name("an action's name")?;
        if STATEMENTS.contains(&name.text.as_str()) {
            let message = format!("`{}` starts a statement and can't name an action", name.text);
            self.report(Diagnostic::error(name.span, message).help("give the action another name"));
        }
        let parameters = self.parameters();
        Some((name, parameters))
    }

    /// `interface NAME { register ...; action NAME(parameters); action NAME(parameters) { ... } }`
    pub(super) fn interface(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("an interface's name")?;
        let (mut registers, mut actions) = (Vec::new(), Vec::new());
        self.members("the interface", |cursor| {
            if cursor.at_word("register") {
                registers.extend(cursor.register());
                cursor.semicolon();
            } else if cursor.at_word("action") {
                actions.extend(cursor.interface_action());
            } else {
                let found = describe(cursor.peek());
                let message = format!("expected `register` or `action` in an interface, found {found}");
                cursor.error_here(&message, Some("all else belongs to modules, or to the program"));
                cursor.advance();
                cursor.recover();
            }
        });
        Some(Item::Interface(InterfaceDeclaration { name, registers, actions }))
    }

    fn interface_action(&mut self) -> Option<InterfaceAction> {
        let (name, parameters) = self.action_head()?;
        let body = if self.at_punctuation("{") {
            Some(self.block("to open the action"))
        } else {
            self.semicolon();
            None
        };
        Some(InterfaceAction { name, parameters, body })
    }

    /// `module NAME is INTERFACE { declarations }`
    pub(super) fn module(&mut self) -> Option<Item> {
        self.advance();
        let name = self.name("a module's name")?;
        self.expect_word("is", "and an interface behind the module's name");
        let interface = self.name("an interface")?;
        let mut items = Vec::new();
        self.members("the module", |cursor| match cursor.peek() {
            Kind::Word(word) if OF_MODULES.contains(&word.as_str()) => items.extend(cursor.item()),
            other => {
                let message = format!("a module has no {}", describe(other));
                cursor.error_here(&message, Some("a module has constants, conditions, values, registers, ranges, segments, tables and actions; all else belongs to the program"));
                cursor.advance();
                cursor.recover();
            }
        });
        Some(Item::Module(ModuleDeclaration { name, interface, items }))
    }

    /// What stands between braces.
    fn members(&mut self, what: &str, mut member: impl FnMut(&mut Self)) {
        if !self.expect("{", &format!("to open {what}")) {
            return self.recover();
        }
        while !self.at_end() && !self.at_punctuation("}") {
            let before = self.position();
            member(self);
            self.must_move(before);
        }
        self.expect("}", &format!("to close {what}"));
    }

    /// `use INTERFACE from MODULE, ... [by parameter NAME [= MODULE]]`
    pub(super) fn use_of_modules(&mut self) -> Option<Item> {
        self.advance();
        let interface = self.name("an interface")?;
        self.expect_word("from", "and modules behind the interface");
        let modules = self.names("a module");
        let mut parameter = None;
        if self.take_word("by") {
            self.expect_word("parameter", "behind `by`");
            let name = self.name("the name of the register that says which")?;
            let first = if self.take("=") { Some(self.name("a module")?) } else { None };
            parameter = Some((name, first));
        }
        Some(Item::Use(UseDeclaration { interface, modules, parameter }))
    }
}
