//! What the thread that follows a controller makes ready for the one that forwards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use weftwire_core::Port;
use weftwire_subscribe::tables::Delta;
use weftwire_subscribe::{Compiler, MessageFormats};
use weftwire_switch::{RulesChange, RulesKeeper, SubscriptionSwitch};

/// Where changes of rules wait until a switch takes them over. The thread that forwards reads one number for each batch of packets,
/// and more only if there are changes. It never waits: while the other thread makes one ready, it goes on by the rules that it has. What it
/// replaces goes back, and is freed by the thread that follows, at the next change.
#[derive(Clone)]
pub struct Shared {
    formats: Arc<MessageFormats>,
    handover: Arc<Handover>,
}

struct Handover {
    /// The number of the latest change.
    latest: AtomicU64,
    kept: Mutex<Kept>,
}

/// What the thread that follows keeps.
struct Kept {
    rules: RulesKeeper,
    /// The ports here that the logical up port stands for.
    up: Vec<Port>,
    /// What nobody has taken over, for a switch that has all changes up to this number.
    change: Option<RulesChange>,
    taken: u64,
    /// Changes that were taken over, with what they have replaced.
    spent: Vec<RulesChange>,
}

impl Shared {
    pub(crate) fn new(formats: Arc<MessageFormats>, rules: RulesKeeper) -> Shared {
        let kept = Kept { rules, up: Vec::new(), change: None, taken: 0, spent: Vec::new() };
        Shared { formats, handover: Arc::new(Handover { latest: AtomicU64::new(0), kept: Mutex::new(kept) }) }
    }

    /// The formats of its messages.
    pub(crate) fn formats(&self) -> &MessageFormats {
        &self.formats
    }

    /// Follows the latest change of the compiler's rules, in time that goes with what it changes. Switches get it when it is
    /// published.
    pub(crate) fn follow(&self, compiler: &Compiler, delta: &Delta) {
        self.kept().rules.follow(compiler, delta);
    }

    /// Lays all rules of the compiler out anew. Switches get them when they are published.
    pub(crate) fn lay_out(&self, compiler: &Compiler) {
        let mut rules = RulesKeeper::new(compiler);
        let mut change = Some(rules.all());
        let mut kept = self.kept();
        std::mem::swap(&mut kept.rules, &mut rules);
        std::mem::swap(&mut kept.change, &mut change);
        // The old ones are freed while nobody needs the lock.
        drop(kept);
    }

    /// Has switches take over what has changed, all at once; with it, other ports that the logical up port stands for.
    pub(crate) fn publish(&self, up: Option<Vec<Port>>) {
        let mut kept = self.kept();
        let untaken = kept.change.take();
        kept.change = Some(kept.rules.change(untaken));
        kept.up = up.unwrap_or(std::mem::take(&mut kept.up));
        let spent = std::mem::take(&mut kept.spent);
        // Release: who sees the number sees the change when it has the lock.
        self.handover.latest.fetch_add(1, Ordering::Release);
        drop(kept);
        drop(spent);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.handover.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a new switch all rules. Returns the number of the latest change in them, and the up ports.
    pub(crate) fn begin(&self, switch: &mut SubscriptionSwitch) -> (u64, Vec<Port>) {
        let (mut taken, mut up) = (NOTHING, Vec::new());
        self.kept().hand_over(self.handover.latest.load(Ordering::Relaxed), &mut taken, switch, &mut up);
        (taken, up)
    }

    /// Brings a switch up to date that has all changes up to the number `taken`, unless a change is being made just now.
    #[inline]
    pub(crate) fn catch_up(&self, taken: &mut u64, switch: &mut SubscriptionSwitch, up: &mut Vec<Port>) {
        if self.handover.latest.load(Ordering::Acquire) == *taken {
            return;
        }
        let mut kept = match self.handover.kept.try_lock() {
            Ok(kept) => kept,
            Err(TryLockError::Poisoned(kept)) => kept.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        kept.hand_over(self.handover.latest.load(Ordering::Relaxed), taken, switch, up);
    }
}

/// What a switch has that has no rules of these yet.
const NOTHING: u64 = u64::MAX;

impl Kept {
    fn hand_over(&mut self, latest: u64, taken: &mut u64, switch: &mut SubscriptionSwitch, up: &mut Vec<Port>) {
        // Another switch has taken over what this one has not: a new one, usually.
        if *taken != self.taken {
            self.change = Some(self.rules.all());
        }
        if let Some(mut change) = self.change.take() {
            switch.take(&mut change);
            self.spent.push(change);
        }
        up.clone_from(&self.up);
        (self.taken, *taken) = (latest, latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::FollowingSwitch;
    use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
    use weftwire_core::{Frame, Function, LinkType, MacAddress, Outbox, Output, Ports, Time};
    use weftwire_subscribe::{Rule, RuleId, read_rules};
    use weftwire_text::SourceMap;

    /// Where packets come from.
    const OUTSIDE: Port = Port(9);

    /// The thread that follows.
    struct Following {
        compiler: Compiler,
        shared: Shared,
    }

    impl Following {
        fn new() -> Following {
            let text = "@subscribe[after=udp] header message { @subscribe[] bit<8> kind; }";
            let formats = MessageFormats::read("formats", text, &mut SourceMap::default(), &mut Vec::new()).unwrap();
            let compiler = Compiler::without_rules(&formats, &[]);
            let shared = Shared::new(Arc::new(formats), RulesKeeper::new(&compiler));
            Following { compiler, shared }
        }

        fn add(&mut self, rule: &str) -> RuleId {
            let formats = self.compiler.formats();
            let rules: Vec<Rule> = read_rules("rules", rule, formats, &mut SourceMap::default(), &mut Vec::new());
            let (id, delta) = self.compiler.add(&rules[0]).unwrap();
            self.follow(&delta);
            id
        }

        fn remove(&mut self, id: RuleId) {
            let delta = self.compiler.remove(id).unwrap().unwrap();
            self.follow(&delta);
        }

        fn follow(&self, delta: &Delta) {
            self.shared.follow(&self.compiler, delta);
            self.shared.publish(None);
        }

        fn lay_out(&self) {
            self.shared.lay_out(&self.compiler);
            self.shared.publish(None);
        }

        fn switch(&self) -> FollowingSwitch {
            FollowingSwitch::new(self.shared.clone(), ports())
        }
    }

    fn ports() -> Ports {
        Ports::new((1..=4).map(Port).chain([OUTSIDE]).map(|port| (port, LinkType::Ethernet)))
    }

    /// The ports that a message of each of some kinds leaves by.
    fn sent(function: &mut dyn Function) -> Vec<Vec<u16>> {
        let of_kind = |kind| {
            let frame = FrameBuilder::ethernet(MacAddress([2; 6]), MacAddress([4; 6])).ipv4(&Ipv4Fields::default());
            let (mut out, frame) = (Outbox::new(), frame.udp(4, 5).payload(&[kind]).finish().unwrap());
            function.frame(Time::ZERO, OUTSIDE, Frame::new(&frame), &mut out);
            let port = |output: &Output| match output {
                Output::Send { port, .. } => port.0,
                other => panic!("{other:?}"),
            };
            let mut ports: Vec<u16> = out.items().iter().map(port).collect();
            ports.sort_unstable();
            ports
        };
        (0..4).map(of_kind).collect()
    }

    #[test]
    fn a_switch_waits_for_nobody() {
        let mut following = Following::new();
        let mut switch = following.switch();
        let first = following.add("kind == 1 : fwd(1);");
        assert_eq!(sent(&mut switch), [vec![], vec![1], vec![], vec![]]);
        following.remove(first);
        following.add("true : fwd(2);");
        let shared = following.shared.clone();
        let busy = shared.kept();
        assert_eq!(sent(&mut switch), [vec![], vec![1], vec![], vec![]], "by the rules that it has");
        drop(busy);
        assert_eq!(sent(&mut switch), [[2]; 4]);
        // What was replaced is freed by the thread that follows.
        assert_eq!(shared.kept().spent.len(), 1);
        following.add("kind == 3 : fwd(3);");
        assert!(shared.kept().spent.is_empty());
        assert_eq!(sent(&mut switch), [vec![2], vec![2], vec![2], vec![2, 3]]);
    }

    #[test]
    fn changes_that_nobody_takes_become_one() {
        let mut following = Following::new();
        let mut switch = following.switch();
        for laid_out in [false, true] {
            let first = following.add("kind == 2 : fwd(2);");
            if laid_out {
                following.lay_out();
            }
            let second = following.add("kind != 0 : fwd(4);");
            following.remove(first);
            let third = following.add("kind == 3 : fwd(3);");
            assert!(following.shared.kept().spent.is_empty());
            assert_eq!(sent(&mut switch), [vec![], vec![4], vec![4], vec![3, 4]]);
            [second, third].into_iter().for_each(|id| following.remove(id));
            assert_eq!(sent(&mut switch), [[]; 4] as [[u16; 0]; 4]);
        }
    }

    #[test]
    fn what_is_not_published_is_not_seen_and_comes_all_at_once() {
        let mut following = Following::new();
        let mut switch = following.switch();
        let first = following.add("kind == 1 : fwd(1);");
        let delta = following.compiler.remove(first).unwrap().unwrap();
        following.shared.follow(&following.compiler, &delta);
        assert_eq!(sent(&mut switch), [vec![], vec![1], vec![], vec![]]);
        following.add("kind == 1 : fwd(2);");
        assert_eq!(sent(&mut switch), [vec![], vec![2], vec![], vec![]]);
    }

    #[test]
    fn switches_one_after_the_other_and_beside_each_other() {
        let mut following = Following::new();
        following.add("kind == 1 : fwd(1);");
        let mut switches = [following.switch(), following.switch()];
        for port in 2..=4 {
            following.add(&format!("kind == {} : fwd({port});", port - 1));
            if port == 3 {
                following.lay_out();
            }
            let [one, other] = switches.each_mut().map(|switch| sent(switch));
            assert_eq!(one, other);
            assert_eq!(one, sent(&mut following.switch()));
            assert_eq!(one, sent(&mut SubscriptionSwitch::new(&following.compiler, ports())));
        }
    }

    #[test]
    fn one_thread_follows_while_another_forwards() {
        let mut following = Following::new();
        let mut switch = following.switch();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for (kind, ports) in sent(&mut switch).into_iter().enumerate() {
                        assert!(ports.iter().all(|port| *port == kind as u16 + 1), "kind {kind}: {ports:?}");
                    }
                }
            });
            for step in 0..1_000 {
                let kind = step % 4;
                let id = following.add(&format!("kind == {kind} : fwd({});", kind + 1));
                match step {
                    0..996 => following.remove(id),
                    _ => following.lay_out(),
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(sent(&mut switch), [[1], [2], [3], [4]]);
    }
}
