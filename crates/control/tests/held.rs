//! Rules that are over a switch's budget are held back; all others are taken, at once and by later changes.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of a platform: files and sockets")]

use std::collections::BTreeSet;
use std::sync::Arc;
use weftwire_control::protocol::{Entry, SwitchPort, TableStart, TableUpdate};
use weftwire_control::switch::FollowingSwitch;
use weftwire_control::table::{FieldOrder, FollowedTable};
use weftwire_control::wire;
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_route::MessageFilter;
use weftwire_subscribe::rules::{Action, Rule};
use weftwire_subscribe::subscriptions::read_subscriptions;
use weftwire_subscribe::{Budget, Compiler, MessageFormats, Options};
use weftwire_switch::SubscriptionSwitch;
use weftwire_text::{SourceMap, Span};
use weftwire_workload::market::{Feed, FeedSettings};
use weftwire_workload::{ITCH_FORMATS, Numbers};

type Forward = (Port, MessageFilter);

/// Where packets come from.
const OUTSIDE: Port = Port(9);

fn formats(text: &str) -> Arc<MessageFormats> {
    Arc::new(MessageFormats::read("formats", text, &mut SourceMap::default(), &mut Vec::new()).unwrap())
}

/// A header of 60 fields of a byte, `f0` and on.
fn sixty_fields() -> Arc<MessageFormats> {
    let fields: String = (0..60).map(|field| format!("@subscribe[] bit<8> f{field}; ")).collect();
    formats(&format!("header message {{ {fields} }}"))
}

/// What the controller has for a switch, and the switch.
struct Lab {
    formats: Arc<MessageFormats>,
    wanted: BTreeSet<Forward>,
    table: FollowedTable,
    switch: FollowingSwitch,
    now: u64,
}

impl Lab {
    fn new(formats: Arc<MessageFormats>, order: FieldOrder, budget: Budget) -> Lab {
        let mut table = FollowedTable::new(formats.clone(), order, (1..=4).map(Port));
        table.set_budget(budget);
        let switch = FollowingSwitch::new(table.shared().clone(), ports());
        Lab { formats, wanted: BTreeSet::new(), table, switch, now: 0 }
    }

    fn rule(&self, port: u16, filter: &str) -> Forward {
        let text = format!("host: {filter}");
        let mut problems = Vec::new();
        let mut read = read_subscriptions("all", &text, &self.formats, &mut SourceMap::default(), &mut problems);
        let filter = read.pop().unwrap_or_else(|| panic!("{filter}: {problems:?}")).filter;
        (Port(port), MessageFilter::new(&filter, &self.formats).unwrap())
    }

    fn rules<'a>(&self, rules: impl IntoIterator<Item = (u16, &'a str)>) -> Vec<Forward> {
        rules.into_iter().map(|(port, filter)| self.rule(port, filter)).collect()
    }

    fn entry(&self, (port, filter): &Forward) -> Entry {
        Entry { port: port.0.into(), filter: Some(wire::encode(&filter.filter(), &self.formats)) }
    }

    /// Begins and ends subscriptions, in one update.
    fn change(&mut self, added: &[Forward], removed: &[Forward]) {
        let entries = |list: &[Forward]| list.iter().map(|it| self.entry(it)).collect();
        let (removed_entries, added_entries) = (entries(removed), entries(added));
        self.wanted.extend(added.iter().cloned());
        removed.iter().for_each(|it| assert!(self.wanted.remove(it)));
        self.take(TableUpdate { removed: removed_entries, added: added_entries, ..TableUpdate::default() });
    }

    /// The connection was lost, and the controller sends all.
    fn full(&mut self) {
        self.table.restart();
        let port = |number: u16| SwitchPort { number: number.into(), ..SwitchPort::default() };
        let start = TableStart { configuration: vec![1], ports: (1..=4).map(port).collect(), up_port: 0 };
        let added = self.wanted.iter().map(|it| self.entry(it)).collect();
        self.take(TableUpdate { start: Some(start), added, ..TableUpdate::default() });
    }

    fn take(&mut self, update: TableUpdate) {
        let revision = self.table.revision() + 1;
        assert_eq!(self.table.take(TableUpdate { revision, complete: true, ..update }), Ok(true));
        assert_eq!(self.table.revision(), revision);
        let held = self.held();
        let rest = self.wanted.iter().filter(|rule| !held.contains(rule));
        assert!(self.table.rules().eq(rest), "each rule is forwarded by or held back");
        assert!(held.is_subset(&self.wanted), "what ended is not held back");
        assert_eq!(self.table.compiler().rule_count(), self.table.rule_count());
        match self.table.refusal() {
            Some(text) => assert!(text.starts_with(&format!("holds {} rules back", held.len())), "{text}"),
            None => assert!(held.is_empty(), "{held:?}"),
        }
    }

    fn held(&self) -> BTreeSet<Forward> {
        self.table.held().cloned().collect()
    }

    /// The switch forwards as one that was made of the rules that are not held back.
    fn forwards(&mut self, feed: &mut Feed) {
        let held = self.held();
        let rule = |(port, filter): &Forward| Rule {
            filter: filter.filter(),
            actions: vec![Action::Forward(vec![*port])],
            span: Span::default(),
        };
        let rules: Vec<Rule> = self.wanted.iter().filter(|it| !held.contains(it)).map(rule).collect();
        let options = Options { budget: Budget::UNLIMITED, ..Options::default() };
        let compiler = Compiler::new((*self.formats).clone(), &options, &rules).unwrap();
        let mut fresh = SubscriptionSwitch::new(&compiler, ports());
        // So late that all windows begin anew.
        self.now += 1_000_000_000_000;
        for _ in 0..20 {
            let packet = feed.packet(0);
            assert_eq!(sent(&mut self.switch, self.now, &packet), sent(&mut fresh, self.now, &packet));
        }
    }
}

fn ports() -> Ports {
    Ports::new((1..=4).map(Port).chain([OUTSIDE]).map(|port| (port, LinkType::Ethernet)))
}

fn sent(function: &mut dyn Function, now: u64, packet: &[u8]) -> Vec<(Port, Vec<u8>)> {
    let mut out = Outbox::new();
    function.frame(Time::from_nanoseconds(now as i64), OUTSIDE, Frame::new(packet), &mut out);
    let sends = out.items().iter().map(|output| match output {
        Output::Send { port, bytes, .. } => (*port, out.bytes(bytes).to_vec()),
        other => panic!("{other:?}"),
    });
    sends.collect()
}

/// Tests of different fields, of which each doubles what there is; `count` of them.
fn pairs(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("f{} == {} and f{} == 1", n % 30, 1 + n / 30, 30 + n % 30))
}

/// A filter that is over [`SMALL`] alone.
fn costly(value: u8) -> String {
    let alternatives: Vec<String> = (0..30).map(|n| format!("(f{n} == {value} and f{} == 1)", 30 + n)).collect();
    alternatives.join(" or ")
}

const SMALL: Budget = Budget { size: 1 << 16, steps: 1 << 20 };

fn small() -> Lab {
    let mut lab = Lab::new(sixty_fields(), FieldOrder::Given(Vec::new()), SMALL);
    lab.full();
    lab
}

fn random_rule(lab: &Lab, numbers: &mut Numbers) -> Forward {
    let stock = ["AAPL", "MSFT", "GOOG"][numbers.below(3) as usize];
    let (price, shares) = (numbers.below(60), 10 * numbers.below(30));
    let filter = match numbers.below(9) {
        0 => format!("add_order.price > {price}"),
        1 => format!("add_order.shares > {shares}"),
        2 => format!("add_order.stock != {stock} and not add_order.price in [{price}, 60]"),
        3 => format!("avg(add_order.price) over {}ms > 60 and add_order.stock == {stock}", 1 + price % 4),
        4 => "true".to_owned(),
        5 => format!("add_order.shares == {shares} or add_order.price < {price}"),
        _ => format!("add_order.stock == {stock} and add_order.price > {price}.5"),
    };
    lab.rule(1 + numbers.below(4) as u16, &filter)
}

/// Rules come and go, some over the budget; the switch always forwards by all that are not held back.
fn random_changes(seed: u64, order: FieldOrder, size: usize) {
    let mut lab = Lab::new(formats(ITCH_FORMATS), order, Budget::of_size(size));
    let mut numbers = Numbers::new(seed);
    let mut feed = Feed::new(FeedSettings::default(), seed).opened();
    let (mut holding, mut complete, mut changed) = (0, 0, 0);
    lab.full();
    for step in 0..200 {
        let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
        // More come than go, and then the other way round.
        let most = if step / 25 % 2 == 0 { (5, 2) } else { (2, 6) };
        for _ in 0..numbers.below(most.0) {
            added.insert(random_rule(&lab, &mut numbers));
        }
        for _ in 0..numbers.below(most.1) {
            removed.extend(lab.wanted.iter().nth(numbers.below(lab.wanted.len().max(1) as u64) as usize).cloned());
        }
        let added: Vec<_> = added.difference(&lab.wanted).cloned().collect();
        let before = lab.held();
        lab.change(&added, &Vec::from_iter(removed));
        changed += usize::from(lab.held() != before);
        if numbers.below(12) == 0 {
            lab.full();
        }
        lab.forwards(&mut feed);
        *(if lab.held().is_empty() { &mut complete } else { &mut holding }) += 1;
    }
    assert!(holding > 20 && complete > 10 && changed > 20, "{holding} {complete} {changed}");
    // All end.
    lab.change(&[], &Vec::from_iter(lab.wanted.clone()));
    assert_eq!((lab.table.rule_count(), lab.table.refusal()), (0, None));
    lab.forwards(&mut feed);
}

#[test]
fn all_but_what_is_held_back_is_forwarded_by() {
    random_changes(1, FieldOrder::Chosen, 250);
    random_changes(2, FieldOrder::Given(Vec::new()), 400);
    random_changes(3, FieldOrder::Chosen, 150);
}

#[test]
fn a_costly_rule_keeps_nobody_else_from_subscribing() {
    let mut lab = small();
    let before = lab.rules([(1, "f0 == 1"), (2, "f0 == 2 and f1 > 7")]);
    lab.change(&before, &[]);
    let one = lab.rule(3, &costly(1));
    let beside = lab.rule(4, "f2 == 9");
    lab.change(&[one.clone(), beside], &[]);
    assert_eq!(lab.held(), BTreeSet::from([one.clone()]));
    let text = lab.table.refusal().unwrap();
    assert!(
        text.contains("the first is `message.f0 == 1 and message.f30 == 1 or") && text.contains("` to port 3: "),
        "{text}"
    );
    assert!(text.contains("over the budget of 65536 edges") && text.contains("--budget"), "{text}");
    for value in 10..20 {
        let good = lab.rule(1, &format!("f0 == {value}"));
        lab.change(&[good], &before[..usize::from(value == 15)]);
        assert_eq!(lab.held(), BTreeSet::from([one.clone()]));
    }
    lab.full();
    assert_eq!(lab.held(), BTreeSet::from([one.clone()]));
    lab.change(&[], &[one]);
    assert_eq!((lab.table.refusal(), lab.table.rule_count()), (None, 12));
}

/// Those that come behind many costly ones in the same update, or in the first table, still find their place.
#[test]
fn many_costly_rules_at_once_keep_nobody_else_from_subscribing() {
    let mut lab = small();
    let costly: Vec<_> = (1..=60).map(|value| lab.rule(1, &costly(value))).collect();
    let good: Vec<_> = (1..=60).map(|value| lab.rule(2, &format!("f0 == {value}"))).collect();
    lab.wanted.extend(costly.iter().chain(&good[..20]).cloned());
    lab.full();
    let held = BTreeSet::from_iter(costly.iter().cloned());
    assert_eq!(lab.held(), held);
    lab.change(&good[20..40], &[]);
    assert_eq!(lab.held(), held);
    lab.change(&good[40..], &costly[..50]);
    assert_eq!(lab.held(), BTreeSet::from_iter(costly[50..].iter().cloned()));
    lab.change(&[], &costly[50..]);
    assert_eq!(lab.table.refusal(), None);
}

#[test]
fn rules_that_are_held_back_are_tried_again_when_room_is_made() {
    let mut lab = small();
    // One after the other, so that the last ones are those that are held back.
    let all: Vec<_> = pairs(29).map(|filter| lab.rule(1, &filter)).collect();
    for rule in &all {
        lab.change(std::slice::from_ref(rule), &[]);
    }
    let held: Vec<_> = lab.held().into_iter().collect();
    assert!((10..25).contains(&held.len()) && held.iter().all(|rule| all[5..].contains(rule)), "{}", held.len());
    // One that is held back leaves the others as they are when it ends.
    lab.change(&[], &held[..1]);
    assert_eq!(lab.held().len(), held.len() - 1);
    // The first ones end: of the others as many as fit are taken.
    lab.change(&[], &all[..3]);
    let fewer = lab.held().len();
    assert!(fewer < held.len() - 1 && fewer > 0, "{fewer}");
    // Each turn tries some that failed the longest time ago: all come to their turn.
    let rest: Vec<_> = lab.wanted.iter().filter(|rule| !lab.held().contains(rule)).cloned().collect();
    for rule in rest {
        lab.change(&[], &[rule]);
    }
    while !lab.held().is_empty() {
        let first = lab.table.rules().next().unwrap().clone();
        lab.change(&[], &[first]);
    }
}

#[test]
fn a_rule_ends_though_it_hid_what_the_others_cost() {
    let mut lab = small();
    let all = lab.rule(1, "f0 in [0, 255]");
    let good: Vec<_> = (1..=20).map(|value| lab.rule(2, &format!("f0 == {value}"))).collect();
    lab.change(&[&good[..], std::slice::from_ref(&all)].concat(), &[]);
    let hidden: Vec<_> = pairs(30).map(|filter| lab.rule(1, &filter)).collect();
    lab.change(&hidden, &[]);
    assert_eq!(lab.table.refusal(), None);
    lab.change(&[], std::slice::from_ref(&all));
    assert!(!lab.held().is_empty() && lab.held().iter().all(|rule| hidden.contains(rule)), "{:?}", lab.held());
    // It goes on.
    lab.change(&lab.rules([(3, "f0 == 200")]), &good[..10]);
    assert!(lab.held().iter().all(|rule| hidden.contains(rule)));
    lab.change(&[], &hidden);
    assert_eq!((lab.table.refusal(), lab.table.rule_count()), (None, 11));
}
