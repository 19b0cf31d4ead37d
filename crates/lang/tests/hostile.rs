//! Whatever the text, compiling comes to an end without panic, and gives an image that verifies or says what is wrong.
#![allow(clippy::disallowed_methods, reason = "the test reads programs to spoil")]

use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fs;
use std::path::Path;
use weftwire_lang::{Dialect, UNVERIFIED, compile};
use weftwire_text::{LoadError, Loader, Severity};

/// A text, with the folders' other files to include.
struct Texts<'a>(&'a str);

impl Loader for Texts<'_> {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, LoadError> {
        if from.is_none() {
            return Ok(self.0.to_string());
        }
        let known = programs().into_iter().find(|(known, _)| known == name);
        known.map(|(_, text)| text).ok_or_else(|| LoadError::Unknown(name.to_owned()))
    }
}

/// All good programs of the repository, and what they include.
fn programs() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["tests/valid", "tests/dialect", "../../examples"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in fs::read_dir(folder).expect("it is part of the repository") {
            let path = entry.expect("readable").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if [".xl", ".xtra", ".p4"].iter().any(|ending| name.ends_with(ending)) {
                found.push((name, fs::read_to_string(path).expect("programs are text")));
            }
        }
    }
    found.sort();
    found
}

/// What must hold for every text.
fn survives(text: &str, dialect: Dialect) {
    let compilation = compile("program", dialect, &Texts(text));
    let failed = compilation.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(compilation.image.is_none(), failed, "an image or an error, not both: {:?}", compilation.diagnostics);
    for diagnostic in &compilation.diagnostics {
        assert!(!diagnostic.message.is_empty());
        assert!(!diagnostic.message.starts_with(UNVERIFIED), "{}\n{text}", diagnostic.message);
        let file = compilation.sources.file(diagnostic.span);
        assert!(file.is_none_or(|file| diagnostic.span.end as usize <= file.text.len()), "{diagnostic:?}");
        diagnostic.to_text(&compilation.sources);
    }
    if let Some(image) = compilation.image
        && let Err(error) = image.verify()
    {
        panic!("the compiler made an image that does not verify: {error}\n{text}");
    }
}

/// Words, numbers, texts and punctuation, cut roughly.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = 0;
    let class =
        |letter: char| if letter.is_alphanumeric() || letter == '_' { 0 } else { 1 + letter.is_whitespace() as u8 };
    let mut last = None;
    for (place, letter) in text.char_indices() {
        let now = class(letter);
        if last.is_some_and(|last| last != now || now == 1) {
            tokens.push(&text[start..place]);
            start = place;
        }
        last = Some(now);
    }
    tokens.push(&text[start..]);
    tokens
}

#[derive(Clone, Debug)]
enum Spoil {
    Delete(Index),
    Duplicate(Index),
    Swap(Index, Index),
    Replace(Index, &'static str),
    Truncate(Index),
}

const WORDS: &[&str] = &[
    "machine",
    "state",
    "initial",
    "on",
    "packet",
    "enter",
    "exit",
    "if",
    "else",
    "let",
    "goto",
    "register",
    "u8",
    "i64",
    "seq32",
    "timer",
    "slot",
    "template",
    "tcp",
    "udp",
    "table",
    "condition",
    "action",
    "const",
    "import",
    "include",
    "flow",
    "key",
    "other",
    "set",
    "reset",
    "cancel",
    "where",
    "send",
    "store",
    "in",
    "to",
    "from",
    "when",
    "notify",
    "delete",
    "instance",
    "#debug",
    "every",
    "deliver",
    "release",
    "resize",
    "keep",
    "options",
    "mss",
    "reverse",
    "and",
    "or",
    "not",
    "true",
    "now",
    "random",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ".",
    ":",
    "=",
    "==",
    "+=",
    "<",
    "<<",
    "<->",
    "..",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "~",
    "0",
    "1",
    "9",
    "64",
    "1e9",
    "18446744073709551616",
    "0x",
    "0xffffffffffffffff",
    "1.5s",
    "10ms",
    "10.0.0.1",
    "02:00:00:00:00:01",
    "99999999999999999999Gbps",
    "\"",
    "\"a\"",
    "//",
    "/*",
    "*/",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
    "\u{1f980}",
    "\u{e9}",
    "a\u{301}",
    "\r",
    "\n",
    "_",
    "@",
    "'",
    "a",
    "b",
    "State",
    "Event",
    "packet.port",
    "tcp.syn",
    "tcp.sequence",
    "application.available",
    "flow.hash",
];

fn spoil() -> impl Strategy<Value = Spoil> {
    let index = any::<Index>;
    prop_oneof![
        3 => index().prop_map(Spoil::Delete),
        3 => index().prop_map(Spoil::Duplicate),
        3 => (index(), index()).prop_map(|(one, other)| Spoil::Swap(one, other)),
        4 => (index(), select(WORDS)).prop_map(|(place, word)| Spoil::Replace(place, word)),
        1 => index().prop_map(Spoil::Truncate),
    ]
}

fn spoiled(text: &str, spoils: &[Spoil]) -> String {
    let mut tokens = tokens(text);
    for spoil in spoils {
        if tokens.is_empty() {
            break;
        }
        let count = tokens.len();
        match spoil {
            Spoil::Delete(place) => drop(tokens.remove(place.index(count))),
            Spoil::Duplicate(place) => tokens.insert(place.index(count), tokens[place.index(count)]),
            Spoil::Swap(one, other) => tokens.swap(one.index(count), other.index(count)),
            Spoil::Replace(place, word) => tokens[place.index(count)] = word,
            Spoil::Truncate(place) => tokens.truncate(place.index(count)),
        }
    }
    tokens.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_soup_is_survived(words in prop::collection::vec(select(WORDS), 0..200), xtra in any::<bool>()) {
        survives(&words.join(" "), if xtra { Dialect::Xtra } else { Dialect::Xl });
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}", xtra in any::<bool>()) {
        survives(&text, if xtra { Dialect::Xtra } else { Dialect::Xl });
    }

    #[test]
    fn spoiled_programs_are_survived(program in any::<Index>(), spoils in prop::collection::vec(spoil(), 1..6)) {
        let programs = programs();
        let (name, text) = &programs[program.index(programs.len())];
        let dialect = if name.ends_with("xtra") { Dialect::Xtra } else { Dialect::Xl };
        survives(&spoiled(text, &spoils), dialect);
    }
}

/// Declarations that are each well-formed, and fit one another or not.
const DECLARATIONS: &[&str] = &[
    "import \"headers.p4\" { probe_t as probe after udp; }",
    "import \"headers.p4\" { probe_t as probe after transport with kind: u8; trailer_t as trailer after probe; }",
    "import \"headers.p4\" { trailer_t as trailer after ethernet when ethernet.type == 5; probe_t as probe after vlan; }",
    "import \"headers.p4\" { probe_t as probe after network when network.protocol == 200; }",
    "flow key (probe.kind) -> (trailer.mark);",
    "flow key (probe.sequence) <-> (ipv4.source), probe.sequence;",
    "flow key (ipv4.source) <-> (ipv4.destination), probe.kind at most 3 flows when full evict oldest in one, one;",
    "flow key (ipv6.source) <-> (ipv6.destination);",
    "flow key ethernet.source, tcp.mss, network.version;",
    "flow key none;",
    "template t: udp, probe { probe.kind = 300; udp.length = 9; }",
    "template t: udp, probe, trailer { payload 65000; trailer.mark = -1; }",
    "template t: tcp, probe { options mss, timestamps, window_scale, sack_permitted, mss; }",
    "template t: udp, trailer, probe;",
    "template t: tcp { tcp.flags = 1; network.protocol = 6; transport.source_port = 7; ipv4.source = 10.0.0.1; }",
    "timer tick(value: seq32, value: u8);",
    "timer tick(value: bool, count: u64);",
    "slot kept;",
    "register count: u16 = 9;",
    "register count: rate = 9Gbps;",
    "register count: mac;",
    "table steps(n in -3..9) = n * 7;",
    "#debug count every 1us",
    "other packets pass 1 <-> 2, 2 <-> 1;",
    "state two { enter { goto one; } exit { goto two; } }",
    "state two { on connect { send t to 1; store t in kept; goto one; } on close { delete instance; } }",
    "state two { on packet { count = probe.kind; kept.tcp.mss = trailer.mark; keep options mss, mss in kept; } }",
    "state two { on tick { count = tick.value; cancel tick where value == tick.value; } }",
    "state two { on data { release data.length; send t with data(0, data.length) to 2; } }",
    "state two { #debug on packet { set tick(count, 1) in 5s; deliver kept(packet.length, packet.port); } }",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn declarations_that_fit_or_not_are_survived(parts in prop::collection::vec(select(DECLARATIONS), 1..9)) {
        let enter = "initial state one { on connect { } on packet { goto two; } }";
        survives(&format!("{}\n{enter}", parts.join("\n")), Dialect::Xl);
    }
}

#[test]
fn depth_is_survived() {
    let deep = 10_000;
    for (open, close) in [("(", ")"), ("not ", ""), ("-", ""), ("~", ""), ("min(1, ", ")"), ("table[", "]")] {
        let value = format!("{}1{}", open.repeat(deep), close.repeat(deep));
        survives(&format!("register a: i64; initial state s {{ on packet {{ a = {value}; }} }}"), Dialect::Xl);
        survives(&format!("const a = {value};"), Dialect::Xl);
        survives(&format!("table t(n in 0..1) = {value};"), Dialect::Xl);
        survives(&value, Dialect::Xtra);
    }
    for open in ["if true {", "{", "on packet {", "if (a == 1) {", "else {", "State a {"] {
        for text in [open.repeat(deep), format!("initial state s {{ on packet {{ {}", open.repeat(deep))] {
            survives(&text, Dialect::Xl);
            survives(&text, Dialect::Xtra);
        }
    }
}

#[test]
fn length_is_survived() {
    let many = 1_000;
    let body = |statements: &str| {
        format!("register a: i64; register b: seq32; slot s1; initial state s {{ on packet {{ {statements} }} }}")
    };
    for statement in [
        "a = a + 1; ",
        "if a == 1 { a = 2; } ",
        "let x = a; ",
        "if a == 1 { goto s; } else { notify n; } ",
        "tcp.sequence += b if present; ",
        "notify n(a); ",
    ] {
        survives(&body(&statement.repeat(many)), Dialect::Xl);
    }
    survives(&body(&format!("a = a{};", " + a".repeat(many))), Dialect::Xl);
    survives(&body(&format!("a = a{};", " + 1".repeat(many))), Dialect::Xl);
    survives(&body(&format!("if a == 1{} {{ a = 1; }}", " or a == 2".repeat(many))), Dialect::Xl);
    survives(&body(&format!("if a == 0 {{ }} {}", "else if a == 1 { a = 2; } ".repeat(many))), Dialect::Xl);
    survives(&(0..many * 5).map(|n| format!("register r{n}: u8; ")).collect::<String>(), Dialect::Xl);
    survives(
        &(0..many).map(|n| format!("state s{n} {{ on packet {{ goto s{n}; }} }} ")).collect::<String>(),
        Dialect::Xl,
    );
    survives(&format!("const {} = 1;", "a".repeat(1 << 20)), Dialect::Xl);
    survives(&format!("const a = {};", "9".repeat(1 << 20)), Dialect::Xl);
    survives(&format!("const a = 0.{};", "3".repeat(1 << 20)), Dialect::Xl);
    survives(&format!("// {}", "x".repeat(1 << 20)), Dialect::Xl);
    survives(&"a = 1\n".repeat(many), Dialect::Xtra);
}

#[test]
fn doubling_is_survived() {
    let actions: String = (1..40).map(|n| format!("action a{n}() {{ a{}(); a{}(); }} ", n - 1, n - 1)).collect();
    survives(
        &format!("action a0() {{ notify n; }} {actions} initial state s {{ on packet {{ a39(); }} }}"),
        Dialect::Xl,
    );
    let conditions: String = (1..40).map(|n| format!("condition c{n} = c{} and c{}; ", n - 1, n - 1)).collect();
    let text = format!("condition c0 = tcp.syn; {conditions} initial state s {{ on packet when c39 {{ notify n; }} }}");
    survives(&text, Dialect::Xl);
    let constants: String = (1..40).map(|n| format!("const k{n} = k{} * k{}; ", n - 1, n - 1)).collect();
    survives(&format!("const k0 = 3; {constants} initial state s {{ }}"), Dialect::Xl);
    let locals: String = (1..40).map(|n| format!("let x{n} = x{} + x{}; ", n - 1, n - 1)).collect();
    let text = format!(
        "register a: i64; initial state s {{ on packet {{ let x0 = a; {locals} if x39 == 1 {{ notify n; }} }} }}"
    );
    survives(&text, Dialect::Xl);
    let branches = "if a == 1 { a = 2; ".repeat(60) + &"} else { a = 3; if a == 2 { a = 1; } }".repeat(60);
    survives(&format!("register a: i64; initial state s {{ on packet {{ {branches} }} }}"), Dialect::Xl);
    let parts: String = (0..200).map(|n| format!("if tcp.window == {n} {{ notify a{n}; }} ")).collect();
    survives(&format!("initial state s {{ on packet {{ {parts} }} }}"), Dialect::Xl);
}
