//! The work of compiling grows with the length of the text, whatever the text: each family of texts that could cost its
//! square, or worse, at a length where that would take minutes. None comes near the bound of time, which is there so that a
//! test that would take for ever ends.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the test bounds the time of what it runs")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};
use weftwire_lang::{Dialect, UNVERIFIED, compile};
use weftwire_text::diagnostic::MAX_REPORTED;
use weftwire_text::{LoadError, Loader, Severity};

/// How often a family repeats itself.
const MANY: usize = 10_000;
/// Very much longer than any of these takes, also without optimisation on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

/// A program, and the files that it names: all of one text.
struct Texts<'a>(&'a str, &'a str);

impl Loader for Texts<'_> {
    fn load(&self, _name: &str, from: Option<&str>) -> Result<String, LoadError> {
        Ok(if from.is_none() { self.0 } else { self.1 }.to_string())
    }
}

/// Compiles in bounded time, with few diagnostics, to an image or an error. The messages.
fn bounded_with(name: &str, text: &str, other: &str, dialect: Dialect) -> String {
    let start = Instant::now();
    let compilation = compile("program", dialect, &Texts(text, other));
    let mut said = String::new();
    for diagnostic in &compilation.diagnostics {
        let line = diagnostic.to_text(&compilation.sources);
        assert!(line.len() < 5_000, "{name}: a message of {} bytes", line.len());
        let _ = writeln!(said, "{line}");
    }
    let took = start.elapsed();
    assert!(took < BOUND, "{name} took {took:?}");
    assert!(!said.contains(UNVERIFIED), "{name}: {said}");
    let failed = compilation.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(compilation.image.is_none(), failed, "{name}: {said}");
    for severity in [Severity::Error, Severity::Warning] {
        let count = compilation.diagnostics.iter().filter(|found| found.severity == severity).count();
        assert!(count <= MAX_REPORTED + 1, "{name}: {count} of {severity:?}");
    }
    println!("{name}: {took:?}, {}", said.lines().next().unwrap_or("no errors"));
    said
}

fn bounded(name: &str, text: &str) -> String {
    bounded_with(name, text, "", Dialect::Xl)
}

fn many(part: impl Fn(usize) -> String) -> String {
    (0..MANY).map(part).collect()
}

/// Statements at a packet, with a few declarations.
fn at_packet(statements: &str) -> String {
    format!(
        "register a, b: i64; slot kept; timer tick(v: i64); initial state s {{ on packet {{ {statements} }} on tick {{ }} }}"
    )
}

/// What must be refused for its size, and with which words.
fn refused(name: &str, text: &str, words: &str) {
    let said = bounded(name, text);
    assert!(
        said.contains(words),
        "{name} should say `{words}`: {}",
        said.lines().take(5).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn errors_without_end() {
    let more = "there are more errors: the first 100 are shown";
    let known: String = (0..3_000).map(|n| format!("const known_{n} = {n}; ")).collect();
    refused("unknown names on a line", &format!("{known}{}", at_packet(&many(|n| format!("unknown_{n} = 1; ")))), more);
    refused("unknown values on a line", &format!("{known}{}", at_packet(&many(|n| format!("a = knowm_{n}; ")))), more);
    refused("forward references", &many(|n| format!("const c{n} = c{}; ", n + 1)), more);
    refused("unknown states", &at_packet(&many(|n| format!("goto nowhere_{n}; "))), more);
    refused("unknown fields", &at_packet(&many(|n| format!("tcp.field_{n} = 1; "))), more);
    refused("unknown events", &format!("initial state s {{ {} }}", many(|n| format!("on event_{n} {{ }} "))), more);
    refused("no declarations", &many(|n| format!("declaration_{n} x; ")), more);
    refused("no tokens", &"$".repeat(MANY), more);
    refused("open texts", &"\"\n".repeat(MANY), more);
    refused("bad numbers", &many(|_| "const a = 99999999999999999999; ".into()), more);
    refused("declared twice", &many(|_| "const same = 1; ".into()), more);
    bounded("missing semicolons", &at_packet(&many(|_| "a = 1 ".into())));
    bounded("closing braces", &"}".repeat(MANY));
    bounded("opening braces", &"{".repeat(MANY));
    let bounded_xtra = |name, text: &str| bounded_with(name, text, "", Dialect::Xtra);
    assert!(
        bounded_xtra(
            "dialect: unknown names",
            &format!("State initial s {{ {} }}", many(|n| format!("x{n} = y{n}; ")))
        )
        .contains(more)
    );
    assert!(bounded_xtra("dialect: statements at the top", &many(|n| format!("x{n} = {n}; "))).contains("more"));
    assert!(
        bounded_xtra("dialect: no events", &format!("State initial s {{ {} }}", many(|n| format!("on (e{n}) {{ }} "))))
            .contains(more)
    );
    // One error in an action that is called often is one error.
    let calls = format!("{known} action wrong() {{ unknown_1 = 1; }} {}", at_packet(&many(|_| "wrong(); ".into())));
    assert_eq!(bounded("calls of a wrong action", &calls).matches("unknown_1").count(), 1);
}

#[test]
fn declarations_without_end() {
    refused("registers", &many(|n| format!("register r{n}: u8; ")), "at most 4096 registers");
    refused(
        "registers of one declaration",
        &format!("register x{}: u8;", many(|n| format!(", r{n}"))),
        "at most 4096 registers",
    );
    refused("states", &many(|n| format!("state s{n} {{ }} ")), "at most 4095 states");
    refused("templates", &many(|n| format!("template t{n}: udp; ")), "at most 256 templates");
    refused("timers", &many(|n| format!("timer t{n}; ")), "at most 64 timers");
    refused("slots", &many(|n| format!("slot t{n}; ")), "at most 32 slots");
    refused("tables", &many(|n| format!("table t{n} = [1]; ")), "at most 256 tables");
    refused(
        "entries",
        &format!(
            "{} initial state s {{ }}",
            (0..3).map(|n| format!("table t{n}(n in 0..400000) = n; ")).collect::<String>()
        ),
        "entries of all tables together",
    );
    refused(
        "formulas",
        &format!("table t(n in 0..1000000) = n{};", " + n".repeat(200)),
        "operators that all entries of tables compute",
    );
    refused("pacers", &many(|n| format!("pacer p{n} = \"linear\" entries 16; ")), "at most 256 tables");
    refused(
        "notices",
        &at_packet(&(0..3_000).map(|n| format!("notify n{n}; ")).collect::<String>()),
        "at most 1024 notices",
    );
    refused(
        "imports",
        &format!("import \"a.p4\" {{ {} }}", many(|n| format!("h as h{n} after udp; "))),
        "no header `h`",
    );
    refused("key fields", &format!("flow key ipv4.source{};", ", ipv4.source".repeat(MANY)), "at most 16 fields");
    refused(
        "ports",
        &format!("other packets pass 1 <-> 2{};", many(|n| format!(", {} <-> {}", 2 * n + 3, 2 * n + 4))),
        "at most 256 pairs",
    );
    refused("samples", &format!("register a: u8; {}", many(|_| "#debug a every 1s ".into())), "at most 256 samples");
    refused("names", &format!("const {} = 1;", "n".repeat(1 << 20)), "has 1048576 letters");
    bounded("conditions", &format!("{} initial state s {{ }}", many(|n| format!("condition c{n} = tcp.syn; "))));
    bounded(
        "constants",
        &format!(
            "const c0 = 1; {} initial state s {{ }}",
            (1..MANY).map(|n| format!("const c{n} = c{} + 1; ", n - 1)).collect::<String>()
        ),
    );
    bounded(
        "handlers",
        &format!("initial state s {{ {} }}", many(|n| format!("on packet when tcp.window == {} {{ }} ", n % 4_000))),
    );
    bounded("entries", &format!("table t = [{}]; initial state s {{ }}", "1, ".repeat(MANY)));
    // States that lead on: whether each is reached, and whether entering ends.
    let chain =
        |kind: &str| (0..4_000).map(|n| format!("state s{n} {{ {kind} {{ goto s{}; }} }} ", n + 1)).collect::<String>();
    bounded("a chain of states", &format!("{} state s4000 {{ }}", chain("on packet")));
    bounded("a chain of entries", &format!("{} state s4000 {{ }}", chain("enter")));
    refused(
        "a circle of entries",
        &format!("{} state s4000 {{ enter {{ goto s0; }} }}", chain("enter")),
        "without end",
    );
}

#[test]
fn statements_without_end() {
    bounded(
        "consecutive ifs",
        &at_packet(&(0..1_000).map(|n| format!("if a == {n} {{ a = {}; }} ", n + 1)).collect::<String>()),
    );
    refused(
        "more consecutive ifs",
        &at_packet(&(0..9_000).map(|n| format!("if a == {n} {{ a = {}; }} ", n + 1)).collect::<String>()),
        "more conditions than an image may have",
    );
    refused(
        "consecutive ifs of packets",
        &at_packet(
            &(0..9_000).map(|n| format!("if tcp.window == {n} {{ kept.tcp.window = {n}; }} ")).collect::<String>(),
        ),
        "more ",
    );
    refused(
        "assignments",
        &at_packet(&(0..9_000).map(|n| format!("a = b + {n}; ")).collect::<String>()),
        "a row needs more operations than an image may have (1024)",
    );
    refused("statements", &at_packet(&"a = 7; ".repeat(120_000)), "more than 100000 steps");
    refused(
        "locals",
        &at_packet(&(0..9_000).map(|n| format!("let x{n} = a + {n}; ")).collect::<String>()),
        "locals are known here",
    );
    refused(
        "constant locals",
        &at_packet(&(0..9_000).map(|n| format!("let x{n} = {n}; ")).collect::<String>()),
        "locals are known here",
    );
    let locals: String = (1..1_000).map(|n| format!("let x{n} = x{} + x0; ", n - 1)).collect();
    bounded("a chain of locals that is tested", &at_packet(&format!("let x0 = a; {locals} if x999 == 1 {{ b = 1; }}")));
    bounded("a chain of locals", &at_packet(&format!("let x0 = a; {locals} b = x999;")));
    bounded(
        "a long else-if",
        &at_packet(&format!(
            "if a == 0 {{ }} {}",
            (1..4_000).map(|n| format!("else if a == {n} {{ b = {n}; }} ")).collect::<String>()
        )),
    );
    refused(
        "a longer else-if",
        &at_packet(&format!(
            "if a == 0 {{ }} {}",
            (1..9_000).map(|n| format!("else if a == {n} {{ b = {n}; }} ")).collect::<String>()
        )),
        "more conditions",
    );
    bounded(
        "branches behind many operations",
        &at_packet(&format!(
            "{} if tcp.syn {{ b = 1; }} {}",
            "a = a + 1; ".repeat(900),
            (0..9).map(|n| format!("else if tcp.window == {n} {{ b = 2; }} ")).collect::<String>()
        )),
    );
    let rows = |count: usize, body: &dyn Fn(usize) -> String| {
        let branch = |n| format!("else if tcp.window == {n} {{ {} }} ", body(n));
        let branches: String = (0..count).map(branch).collect();
        at_packet(&format!("{} if tcp.syn {{ b = 1; }} {branches}", "a = a + 1; ".repeat(900)))
    };
    bounded("rows of the same operations", &rows(400, &|_| "b = 2;".into()));
    refused("rows of many operations", &rows(1_500, &|_| "b = 2;".into()), "more operations than");
    refused("rows of other operations", &rows(400, &|n| format!("b = {n};")), "more different operations");
    let points: String = (0..900).map(|n| format!("\n#debug if b == {n} {{ }} else ")).collect();
    bounded("debug points", &at_packet(points.trim_end_matches("else ")));
    bounded(
        "random numbers",
        &at_packet(&(0..900).map(|_| "a = i64(random() >> 1); ".to_string()).collect::<String>()),
    );
    refused(
        "more random numbers",
        &at_packet(&(0..9_000).map(|_| format!("a = i64(random(){}); ", " + random()".repeat(20))).collect::<String>()),
        "more ",
    );
    let tests = format!("a == 1{}", " and a != 2 ".repeat(240));
    bounded(
        "long conditions",
        &at_packet(
            (0..300).map(|_| format!("if {tests} {{ b = 1; }} else ")).collect::<String>().trim_end_matches("else "),
        ),
    );
}

#[test]
fn expansion_without_end() {
    // Actions in actions, blocks in blocks: fifty times a hundred.
    let open = "if a == 1 { ".repeat(90);
    let close = "} ".repeat(90);
    let actions: String = (1..45).map(|n| format!("action d{n}() {{ {open} d{}(); {close} }} ", n - 1)).collect();
    refused(
        "deep actions",
        &format!("action d0() {{ a = 1; }} {actions} {}", at_packet("d44();")),
        "nests deeper than 100 blocks",
    );
    let large = format!("action large() {{ {} }} ", "b = b + 1; ".repeat(5_000));
    refused(
        "calls of a large action",
        &format!("{large}{}", at_packet(&"large(); ".repeat(9_000))),
        "more than 100000 steps",
    );
    // Conditions in conditions, each as long as may be, the next in front.
    let long = " + a".repeat(240);
    let conditions: String = (1..45).map(|n| format!("condition c{n} = c{} and 1{long} == 0; ", n - 1)).collect();
    refused(
        "deep conditions",
        &format!("condition c0 = a == 1; {conditions} {}", at_packet("if c44 { b = 1; }")),
        "written out",
    );
    let wide = format!("condition w = a{long} == 0{}; ", " or a == 1".repeat(5));
    bounded("uses of a long condition", &format!("{wide}{}", at_packet(&"if w { b = 1; } ".repeat(900))));
    refused(
        "more uses of a long condition",
        &format!("{wide}{}", at_packet(&"if w { b = 1; } ".repeat(19_000))),
        "more ",
    );
}

#[test]
fn long_tokens() {
    bounded("points and digits", &format!("const a = {};", "1.1".repeat(MANY)));
    bounded("digits and colons", &format!("const a = {};", "02:".repeat(MANY)));
    bounded("hexadecimal", &format!("const a = 0x{};", "f".repeat(1 << 20)));
    bounded("one comment", &format!("/*{}*/ initial state s {{ }}", "/* */".repeat(MANY)));
    bounded("open comments", &"/* ".repeat(MANY));
    bounded("blank lines", &format!("{} initial state s {{ }}", "\n".repeat(1 << 20)));
    bounded("one line", &at_packet(&format!("{}x = 1;", " ".repeat(1 << 20))));
    bounded("many units", &many(|n| format!("const c{n} = 1lightyear{n}; ")));
    let units = format!("const a = 1{};", "x".repeat(3_000));
    bounded("a long unit", &units);
    refused("a long text", &format!("import \"{}\" {{ }}", "a".repeat(5 << 20)), "at most 4 MiB");
}

#[test]
fn files_without_end() {
    let said =
        bounded_with("includes of one file", &many(|_| "include \"a\"; ".into()), "initial state s { }", Dialect::Xl);
    assert!(said.is_empty(), "{said}");
    let said =
        bounded_with("includes of many files", &many(|n| format!("include \"a{n}\"; ")), "const a = 1;", Dialect::Xl);
    assert!(said.contains("more errors"), "{said}");
    let large = format!("// {}", "x".repeat(1 << 20));
    let said = bounded_with("large includes", &many(|n| format!("include \"a{n}\"; ")), &large, Dialect::Xl);
    assert!(said.contains("too many for this program"), "{said}");
    let said = bounded_with("a chain of includes", "include \"a\";", "include \"b\"; include \"c\";", Dialect::Xl);
    assert!(said.contains("includes itself"), "{said}");
    let headers: String = (0..2_000).map(|n| format!("header h{n} {{ bit<8> a; }} ")).collect();
    let imports = many(|n| format!("import \"a\" {{ h{} after udp; }} ", n % 2_000));
    let said = bounded_with("imports of one file", &imports, &headers, Dialect::Xl);
    assert!(said.contains("at most 16 imported headers"), "{said}");
    let said =
        bounded_with("imports of many files", &many(|n| format!("import \"{n}\" {{ }} ")), &headers, Dialect::Xl);
    assert!(said.contains("too many for this program"), "{said}");
    let fields: String = (0..100_000).map(|n| format!("bit<1> f{n}; ")).collect();
    let header = format!("header h {{ {fields} }}");
    let said = bounded_with("many fields", "import \"a\" { h after udp; } initial state s { }", &header, Dialect::Xl);
    assert!(said.contains("at most 256"), "{said}");
}
