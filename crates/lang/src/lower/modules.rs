//! Interfaces, the modules that have them, and which of these a program uses. It is all gone when the image is made: names of a
//! module are names of the program with the module's in front, and an interface's actions are the chosen module's.

use super::calls::{Action, Choice};
use super::types::Type;
use super::{Lowerer, Symbol};
use crate::ast::{
    ActionDeclaration, InterfaceAction, InterfaceDeclaration, Item, ModuleDeclaration, Name, Parameters, Program,
    UseDeclaration,
};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use weftwire_image::RegisterType;
use weftwire_text::diagnostic::{Diagnostic, list, nearest};
use weftwire_text::source::Span;

/// So many modules may one choose from: as many as a parameter has values.
const MAX_MODULES: usize = 256;

/// Interfaces and modules by name.
type Interfaces<'p> = BTreeMap<&'p str, &'p InterfaceDeclaration>;
type Modules<'p> = BTreeMap<&'p str, &'p ModuleDeclaration>;

impl Lowerer<'_> {
    /// Takes in interfaces, modules and their actions; what else a used module declares comes with the other declarations.
    pub(super) fn modules(&mut self, program: &Program) {
        let (mut interfaces, mut modules) = (Interfaces::new(), Modules::new());
        for item in &program.items {
            match item {
                Item::Interface(interface) if self.declare(&interface.name, Symbol::Interface) => {
                    interfaces.insert(&interface.name.text, interface);
                }
                Item::Module(module) if self.declare(&module.name, Symbol::Module) => {
                    modules.insert(&module.name.text, module);
                }
                _ => {}
            }
        }
        modules.retain(|_, module| match interfaces.get(&*module.interface.text) {
            Some(interface) => {
                self.check_module(module, interface);
                true
            }
            None => {
                self.unknown_of("interface", &module.interface, interfaces.keys().copied());
                false
            }
        });
        let mut chosen = BTreeMap::new();
        for item in &program.items {
            if let Item::Use(choice) = item {
                self.check_use(choice, &interfaces, &modules, &mut chosen);
            }
        }
        for module in modules.values() {
            if self.used_modules.contains(&module.name.text) {
                self.module_actions(module);
            } else {
                let message = format!("nothing uses the module `{}`", module.name.text);
                self.report(Diagnostic::warning(module.name.span, message));
            }
        }
        for (name, interface) in interfaces {
            self.choices_of(interface, chosen.get(name).copied());
        }
    }

    fn unknown_of<'n>(&mut self, what: &str, name: &Name, known: impl Iterator<Item = &'n str> + Clone) {
        let error = Diagnostic::error(name.span, format!("there is no {what} `{}`", name.text));
        let help = match nearest(&name.text, known.clone()) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if known.clone().next().is_none() => None,
            None => Some(format!("there are {}", list(known))),
        };
        self.report(Diagnostic { help, ..error });
    }

    /// Sees that a module has all that its interface asks for, and hides nothing of it.
    fn check_module(&mut self, module: &ModuleDeclaration, interface: &InterfaceDeclaration) {
        for wanted in &interface.actions {
            match action_of(module, &wanted.name.text) {
                Some(found) => self.check_parameters(found, wanted),
                None if wanted.body.is_some() => {}
                None => {
                    let (name, action) = (&module.name.text, &wanted.name.text);
                    let message = format!("the module `{name}` lacks the action `{action}`");
                    let help = format!("`{}` asks for it: `{}`", interface.name.text, head(action, &wanted.parameters));
                    self.report(Diagnostic::error(module.name.span, message).help(help));
                }
            }
        }
        let shared: BTreeSet<&str> = names_of(&interface.registers).map(|name| name.text.as_str()).collect();
        for name in names_of(&module.items).filter(|name| shared.contains(name.text.as_str())) {
            let message = format!("`{}` is a register of the interface `{}`", name.text, interface.name.text);
            self.report(Diagnostic::error(name.span, message).help("modules share it: leave this one away"));
        }
    }

    fn check_parameters(&mut self, found: &ActionDeclaration, wanted: &InterfaceAction) {
        let types = |parameters: &Parameters| -> Vec<Option<String>> {
            parameters.iter().map(|(_, kind)| kind.as_ref().map(|kind| kind.text.clone())).collect()
        };
        if types(&found.parameters) != types(&wanted.parameters) {
            let message = format!("the interface's `{}` has other parameters", found.name.text);
            let help = format!("write `{}`; their names may differ", head(&wanted.name.text, &wanted.parameters));
            self.report(Diagnostic::error(found.name.span, message).help(help));
        }
    }

    /// Notes which modules an interface is used from.
    fn check_use<'p>(
        &mut self,
        choice: &'p UseDeclaration,
        interfaces: &Interfaces<'p>,
        modules: &Modules<'p>,
        chosen: &mut BTreeMap<&'p str, &'p UseDeclaration>,
    ) {
        let interface = &choice.interface;
        if !interfaces.contains_key(&*interface.text) {
            return self.unknown_of("interface", interface, interfaces.keys().copied());
        }
        if let Some(first) = chosen.get(&*interface.text) {
            let line = self.line(first.interface.span);
            let message = format!("the interface `{}` is used twice", interface.text);
            let help = format!("the first time is on line {line}: name all modules there");
            return self.report(Diagnostic::error(interface.span, message).help(help));
        }
        for (place, name) in choice.modules.iter().enumerate() {
            match modules.get(&*name.text) {
                None => self.unknown_of("module", name, modules.keys().copied()),
                Some(module) if module.interface.text != interface.text => {
                    let message = format!(
                        "`{}` is a module of `{}`, not of `{}`",
                        name.text, module.interface.text, interface.text
                    );
                    self.report(Diagnostic::error(name.span, message));
                }
                Some(_) if choice.modules[..place].iter().any(|other| other.text == name.text) => {
                    let message = format!("the module `{}` stands here twice", name.text);
                    self.report(Diagnostic::error(name.span, message));
                }
                Some(_) => {
                    self.used_modules.insert(name.text.clone());
                }
            }
        }
        match (&choice.modules[..], &choice.parameter) {
            ([_, second, ..], None) => {
                let error = Diagnostic::error(second.span, "nothing says which of these modules it is");
                self.report(error.help("name a register that does: `by parameter NAME`"));
            }
            ([_], Some((parameter, _))) => {
                let error = Diagnostic::error(parameter.span, "there is nothing to choose from");
                self.report(error.help("leave `by parameter` away, or name more modules"));
            }
            _ => {}
        }
        if let Some(extra) = choice.modules.get(MAX_MODULES) {
            self.too_many(extra.span, "modules of an interface", MAX_MODULES);
        }
        chosen.insert(&interface.text, choice);
    }

    fn module_actions(&mut self, module: &ModuleDeclaration) {
        let namespace = format!("{}.", module.name.text);
        for item in &module.items {
            let Item::Action(action) = item else { continue };
            self.action(action, &namespace);
        }
    }

    /// Lets the actions of an interface be called: each as the modules have it.
    fn choices_of(&mut self, interface: &InterfaceDeclaration, used: Option<&UseDeclaration>) {
        for action in &interface.actions {
            let InterfaceAction { name, parameters, body } = action;
            if let Some(first) = self.first_of_action(&name.text) {
                let line = self.line(first);
                let message = format!("the action `{}` is declared twice", name.text);
                self.report(Diagnostic::error(name.span, message).help(format!("the first is on line {line}")));
                continue;
            }
            let usual = body.as_ref().map(|body| {
                let declaration =
                    ActionDeclaration { name: name.clone(), parameters: parameters.clone(), body: body.clone() };
                // It is called by way of the interface only, which also says whether it is called at all.
                self.used_actions.insert(self.actions.len());
                self.actions.push(Action { declaration: Rc::new(declaration), namespace: String::new() });
                self.actions.len() - 1
            });
            let modules = used.map_or(&[][..], |used| &used.modules);
            let of_module = |module: &Name| {
                let own = self.action_names.get(&format!("{}.{}", module.text, name.text)).copied();
                own.or(usual)
            };
            let actions: Vec<usize> = modules.iter().filter_map(of_module).collect();
            self.used_actions.extend(&actions);
            let parameter = used.and_then(|used| used.parameter.as_ref()).map(|(name, _)| name.clone());
            let choice = Choice { name: name.clone(), parameters: parameters.clone(), parameter, actions };
            self.choices.insert(name.text.clone(), Rc::new(choice));
        }
    }

    /// Where an action or an interface's action of this name is declared.
    pub(super) fn first_of_action(&self, name: &str) -> Option<Span> {
        let plain = self.action_names.get(name).map(|index| self.actions[*index].declaration.name.span);
        plain.or_else(|| self.choices.get(name).map(|choice| choice.name.span))
    }

    /// The register that says which module is meant.
    pub(super) fn module_parameter(&mut self, choice: &UseDeclaration) {
        let Some((parameter, first)) = &choice.parameter else { return };
        let names = choice.modules.iter().map(|module| module.text.clone()).collect::<Vec<_>>();
        let initial = first.as_ref().map_or(0, |first| {
            names.iter().position(|name| *name == first.text).unwrap_or_else(|| {
                self.unknown_of("module", first, names.iter().map(String::as_str));
                0
            })
        });
        let register = self.image.registers.len();
        self.add_register(parameter, parameter.text.clone(), (Type::Integer, RegisterType::U8), initial as i64);
        if let Some(register) = self.image.registers.get_mut(register) {
            register.values = names;
        }
    }

    /// Runs `inner` where names of a module are known; the namespace is the module's name with a dot, or empty.
    pub(super) fn within<T>(&mut self, namespace: String, inner: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.namespace, namespace);
        let result = inner(self);
        self.namespace = outer;
        result
    }

    /// The module at hand, or another one, that keeps this name to itself.
    pub(super) fn owner_of(&self, name: &str) -> Option<&str> {
        self.used_modules.iter().map(String::as_str).find(|module| {
            let own = format!("{module}.{name}");
            self.symbols.contains_key(&own) || self.action_names.contains_key(&own)
        })
    }
}

/// A module's action of this name.
fn action_of<'m>(module: &'m ModuleDeclaration, name: &str) -> Option<&'m ActionDeclaration> {
    module.items.iter().find_map(|item| match item {
        Item::Action(action) if action.name.text == name => Some(action),
        _ => None,
    })
}

/// The names of what is declared, actions aside.
fn names_of(items: &[Item]) -> impl Iterator<Item = &Name> {
    items.iter().flat_map(|item| match item {
        Item::Register { names, .. } => names.iter().collect(),
        Item::Constant { name, .. }
        | Item::Array { name, .. }
        | Item::Condition { name, .. }
        | Item::Value { name, .. }
        | Item::Ranges { name, .. }
        | Item::Segments { name, .. }
        | Item::Table { name, .. } => vec![name],
        _ => Vec::new(),
    })
}

/// An action's first line.
fn head(name: &str, parameters: &Parameters) -> String {
    let parameters = parameters.iter().map(|(name, kind)| match kind {
        Some(kind) => format!("{}: {}", name.text, kind.text),
        None => name.text.clone(),
    });
    format!("action {name}({})", parameters.collect::<Vec<_>>().join(", "))
}
