//! Losses, delays and quiet that a TCP has to make the best of, one of each kind.

use crate::support::{CLEAN, Connection, Fate, Line, data, endpoints, machine, one_loss_after, too_big};
use weftwire_core::{Connections, Endpoints, Frame, Function, Outbox, Port};

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLISECOND;
const SEGMENT: usize = 1_448;
const PSH: u8 = 0x08;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

fn pair(registers: [&[(&str, i64)]; 2], length: usize, line: Line) -> Connection {
    Connection::new(registers.map(machine), [data(length, 7), Vec::new()], line, 1)
}

fn all_arrived(connection: &Connection) -> bool {
    connection.ends[1].received.len() == connection.ends[0].to_send.len()
}

/// RFC 8985, 7: without the probe it takes a timeout of at least 200 ms.
#[test]
fn a_lost_end_is_repaired_within_round_trips() {
    for lost in 1..=4 {
        let mut connection = pair([&[], &[]], 20 * SEGMENT, CLEAN);
        let mut seen = 0;
        connection.fates = Box::new(move |sending| {
            let payload = sending.to == 1 && sending.payload() > 0;
            seen += usize::from(payload);
            if payload && (21 - lost..=20).contains(&seen) { Fate::Lost } else { Fate::Passes }
        });
        connection.open();
        assert!(connection.until(all_arrived));
        assert!(connection.now < 120 * MILLISECOND, "{lost} lost: {} ms", connection.now / MILLISECOND);
        assert!(connection.ends[0].sent <= (20 + lost + 1) * SEGMENT, "{} sent", connection.ends[0].sent);
    }
}

/// RFC 9293, 3.9.1.2. A kernel acknowledges at once what is pushed.
#[test]
fn only_the_last_for_now_is_pushed() {
    let mut connection = pair([&[], &[]], 200 * SEGMENT + 1, CLEAN);
    let pushed = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = pushed.clone();
    connection.fates = Box::new(move |sending| {
        counted.set(counted.get() + usize::from(sending.flags() & PSH != 0));
        Fate::Passes
    });
    connection.open();
    assert!(connection.until(all_arrived));
    assert_eq!(pushed.get(), 1);
}

/// Nobody delays the acknowledgment of a FIN: the probe need not wait for that.
#[test]
fn a_lost_fin_is_repaired_within_round_trips() {
    let mut connection = pair([&[], &[]], 20 * SEGMENT, CLEAN);
    let mut lost = false;
    connection.fates = Box::new(move |sending| {
        let fin = !lost && sending.to == 1 && sending.flags() & 1 != 0;
        lost |= fin;
        if fin { Fate::Lost } else { Fate::Passes }
    });
    connection.open();
    assert!(connection.until(|connection| connection.ends[1].notices.len() == 2));
    assert!(connection.now < 120 * MILLISECOND, "{} ms", connection.now / MILLISECOND);
}

/// RFC 3522: what comes before what was sent again for it was only late. Without timestamps what is acknowledged next tells
/// (RFC 5682).
#[test]
fn a_timeout_for_nothing_is_undone() {
    for plain in [&[][..], &[("offer_stamps", 0)], &[("offer_stamps", 0), ("offer_selective", 0)]] {
        undone(plain);
    }
}

fn undone(plain: &[(&str, i64)]) {
    let mut connection = pair([plain, &[]], 2_000_000, CLEAN);
    connection.fates = Box::new(|sending| match sending.to == 1 && (60..460).contains(&(sending.at / MILLISECOND)) {
        true => Fate::Late(460 * MILLISECOND - sending.at),
        false => Fate::Passes,
    });
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "backoff") > Some(0)), "a timeout");
    let before = connection.register(0, "rack.kept_window");
    assert!(connection.until(|connection| connection.register(0, "phase") == Some(0)), "it is over");
    assert!(connection.register(0, "congestion_window") >= before, "{plain:?}");
    assert!(connection.until(all_arrived));
    let again = (connection.ends[0].sent - 2_000_000) / SEGMENT;
    assert!(again <= 4, "{again} segments sent again, {plain:?}");
}

/// RFC 3708: if all that was sent again came twice, nothing was lost; also where no timestamps tell.
#[test]
fn a_recovery_for_nothing_is_undone() {
    let mut connection = pair([&[("offer_stamps", 0)], &[]], 3_000_000, CLEAN);
    let (mut late, mut free) = (false, 0);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 {
            return Fate::Passes;
        }
        // 1 Gbit/s.
        free = free.max(sending.at) + sending.frame.len() as i64 * 8;
        let now = !late && sending.payload() > 0 && sending.at > 60 * MILLISECOND;
        late |= now;
        Fate::Late(free - sending.at + 40 * MILLISECOND * i64::from(now))
    });
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "phase") == Some(1)), "a recovery");
    let before = connection.register(0, "cubic.before_loss");
    assert!(connection.register(0, "congestion_window") < before);
    assert!(connection.until(|connection| connection.register(0, "rack.doubtful") == Some(0)), "it is undone");
    assert!(connection.register(0, "congestion_window") >= before);
    assert!(connection.until(all_arrived));
}

/// RFC 3168, 6.1.2: the other end is told that the window has shrunk, also after a loss, by the next new segment.
#[test]
fn a_loss_is_told_where_marks_are() {
    let mut connection = pair([&[("offer_ecn", 1)], &[]], 1_000_000, CLEAN);
    let told = std::rc::Rc::new(std::cell::Cell::new(0));
    let (counted, mut lost) = (told.clone(), false);
    connection.fates = Box::new(move |sending| {
        let data = sending.to == 1 && sending.payload() > 0;
        counted.set(counted.get() + usize::from(data && sending.flags() & CWR != 0));
        let now = !lost && data && sending.at > 50 * MILLISECOND;
        lost |= now;
        if now { Fate::Lost } else { Fate::Passes }
    });
    connection.open();
    assert!(connection.until(all_arrived));
    assert_eq!(told.get(), 1);
}

/// RFC 7323, 5.5: after 24 days without a word timestamps say nothing, as they have wrapped.
#[test]
fn who_was_silent_for_a_month_is_understood() {
    let mut connection = pair([&[], &[]], 1_000, CLEAN);
    connection.ends[0].closes = false;
    connection.ends[1].closes = false;
    connection.open();
    assert!(connection.until(all_arrived));
    assert!(!connection.until(|_| false), "nothing is to come");
    connection.now += 25 * 24 * 3_600 * SECOND;
    let began = connection.now;
    connection.ends[0].to_send.extend(data(1_000, 3));
    connection.after(0);
    assert!(connection.until(all_arrived) && connection.now - began < 100 * MILLISECOND);
}

/// RFC 3168: a mark has the window reduced once, and nothing is sent again.
#[test]
fn a_mark_shrinks_the_window_and_costs_nothing() {
    for (asks, answers) in [(1, 0), (1, 1)] {
        let line = Line { delay: 10 * MILLISECOND, ..CLEAN };
        let mut connection = pair([&[("offer_ecn", asks)], &[("offer_ecn", answers)]], 1_000_000, line);
        let words = std::rc::Rc::new(std::cell::Cell::new((0, 0, 0)));
        let counted = words.clone();
        connection.fates = Box::new(move |sending| {
            let (mut marks, mut echoes, mut answers) = counted.get();
            let data = sending.to == 1 && sending.payload() > 0;
            let capable = sending.frame[15] & 3 == 2;
            assert_eq!(capable, data, "only data says that it is capable");
            echoes += usize::from(sending.to == 0 && sending.flags() & ECE != 0 && sending.flags() & 2 == 0);
            answers += usize::from(data && sending.flags() & CWR != 0);
            let marked = data && (120..140).contains(&(sending.at / MILLISECOND));
            marks += usize::from(marked);
            counted.set((marks, echoes, answers));
            if marked { Fate::Marked } else { Fate::Passes }
        });
        connection.open();
        assert!(connection.until(|connection| connection.register(0, "phase") == Some(3)), "a reduction");
        let (before, after) = (connection.register(0, "cubic.before_loss"), connection.register(0, "threshold"));
        assert!(after < before, "{after:?} of {before:?}");
        assert!(connection.until(all_arrived));
        assert_eq!(connection.ends[0].sent, 1_000_000);
        let (marks, echoes, answers) = words.get();
        assert!(marks > 10 && echoes > 0 && (1..=2).contains(&answers), "{marks} {echoes} {answers}");
    }
}

/// Who does not ask for it does not get it.
#[test]
fn marks_are_only_for_who_asked() {
    let mut connection = pair([&[], &[("offer_ecn", 1)]], 100_000, CLEAN);
    connection.fates = Box::new(|sending| {
        assert_eq!(sending.frame[15] & 3, 0);
        assert_eq!(sending.flags() & (ECE | CWR), 0);
        Fate::Passes
    });
    connection.open();
    assert!(connection.until(all_arrived));
}

/// RFC 9293, 3.8.6.1: a closed window is asked about, ever more rarely, and never given up; when it opens all goes on.
#[test]
fn a_closed_window_is_survived() {
    let mut connection = pair([&[], &[]], 6_000_000, CLEAN);
    connection.ends[1].reads = false;
    connection.open();
    connection.until(|connection| connection.now > 1_800 * SECOND);
    let held = connection.ends[1].received.len();
    assert!(held <= 4 << 20 && held > (4 << 20) - (128 << 10) - 2 * SEGMENT, "{held} bytes");
    assert!(connection.ends[0].sent <= held + 64 * SEGMENT, "{} sent of {held}", connection.ends[0].sent);
    connection.ends[1].reads = true;
    let opened = connection.now;
    connection.after(1);
    assert!(connection.until(all_arrived));
    assert!(connection.now - opened < 2 * SECOND, "{} ms", (connection.now - opened) / MILLISECOND);
    assert!(connection.ends[1].received == connection.ends[0].to_send);
}

/// A reader of a few bytes at a time does not make the sender send a few at a time (RFC 1122, 4.2.3.3).
#[test]
fn windows_do_not_become_silly() {
    let mut connection = pair([&[], &[]], 5_000_000, CLEAN);
    connection.ends[1].reads = false;
    let small = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = small.clone();
    connection.fates = Box::new(move |sending| {
        counted.set(counted.get() + usize::from((1..SEGMENT).contains(&sending.payload())));
        Fate::Passes
    });
    connection.open();
    connection.until(|connection| connection.now > 5 * SECOND);
    let before = small.get();
    for _ in 0..20_000 {
        let at = connection.at();
        let end = &mut connection.ends[1];
        let flow = end.flow.expect("a flow");
        let read = end.unread.min(50);
        end.unread -= read;
        end.engine.consumed(at, flow, read, &mut end.out).expect("it reads");
        connection.after(1);
        let until = connection.now + MILLISECOND;
        connection.until(|connection| connection.now >= until || connection.flying.is_empty());
        connection.now = connection.now.max(until);
    }
    assert!(small.get() - before <= 3, "{} small segments", small.get() - before);
    connection.ends[1].reads = true;
    connection.after(1);
    assert!(connection.until(all_arrived));
}

/// RFC 9293, 3.8.4: off unless asked for.
#[test]
fn who_is_gone_is_noticed_by_keep_alive() {
    let mut connection = pair([&[("keep_alive", 10 * SECOND)], &[]], 1_000, CLEAN);
    connection.ends[0].closes = false;
    connection.ends[1].closes = false;
    connection.open();
    connection.until(|connection| connection.now > 100 * SECOND);
    assert!(!connection.ends[0].ended, "who answers is there");
    connection.fates = Box::new(|_| Fate::Lost);
    let cut = connection.now;
    connection.until(|connection| connection.ends[0].ended);
    let took = (connection.now - cut) / SECOND;
    assert!((9 * 75..=9 * 75 + 10).contains(&took), "{took} s");
    assert_eq!(connection.ends[0].notices.last().map(String::as_str), Some("timed_out"));
}

/// Who answers is there, also when one direction is closed.
#[test]
fn who_is_half_closed_is_kept_alive() {
    for closed in 0..2 {
        let mut connection = pair([&[("keep_alive", 10 * SECOND)], &[("keep_alive", 15 * SECOND)]], 1_000, CLEAN);
        connection.ends[1 - closed].closes = false;
        connection.open();
        connection.until(|connection| connection.now > 2_000 * SECOND);
        assert!(connection.ends.iter().all(|end| !end.ended), "{:?}", connection.shown());
        connection.ends[1 - closed].closes = true;
        connection.after(1 - closed);
        connection.until(|_| false);
        assert!(connection.ends.iter().all(|end| end.ended && end.notices == ["established", "finished"]));
    }
}

/// A way that is broken for a while has packets made smaller in vain, once: then they are whole again.
#[test]
fn a_broken_way_is_no_narrow_one() {
    let mut connection = pair([&[], &[]], 1_000_000, CLEAN);
    connection.fates = Box::new(|sending| match (30..3_000).contains(&(sending.at / MILLISECOND)) {
        true => Fate::Lost,
        false => Fate::Passes,
    });
    connection.open();
    assert!(connection.until(all_arrived));
    assert_eq!(connection.register(0, "mss"), Some(SEGMENT as i64));
}

/// RFC 9293, 3.9.1.1.
#[test]
fn the_users_patience_ends() {
    let mut connection = pair([&[("user_timeout", 30 * SECOND)], &[]], 500_000, CLEAN);
    connection.fates = Box::new(|sending| if sending.at > 50 * MILLISECOND { Fate::Lost } else { Fate::Passes });
    connection.open();
    connection.until(|connection| connection.ends[0].ended);
    // It ends with the first timeout after that.
    assert!((30..60).contains(&(connection.now / SECOND)), "{} s", connection.now / SECOND);
    assert_eq!(connection.ends[0].notices.last().map(String::as_str), Some("timed_out"));
}

/// RFC 9293, figures 7 and 13: both open at once, and both close at once.
#[test]
fn both_open_and_close_at_once() {
    let mut connection = Connection::new([machine(&[]), machine(&[])], [data(50_000, 7), data(50_000, 11)], CLEAN, 1);
    let ours = endpoints();
    let theirs = Endpoints {
        local_address: ours.remote_address,
        local_port: ours.remote_port,
        remote_address: ours.local_address,
        remote_port: ours.local_port,
        local_mac: ours.remote_mac,
        remote_mac: ours.local_mac,
        ..ours
    };
    connection.connect(0, &ours);
    connection.connect(1, &theirs);
    connection.until(|_| false);
    for end in 0..2 {
        assert!(connection.ends[end].received == connection.ends[1 - end].to_send);
        assert_eq!(connection.ends[end].notices, ["established", "finished"]);
        assert!(connection.ends[end].ended);
    }
}

/// The application gives up: the other end learns of it at once.
#[test]
fn a_reset_ends_both() {
    let mut connection = pair([&[], &[]], 5_000_000, CLEAN);
    connection.open();
    assert!(connection.until(|connection| connection.ends[1].received.len() > 100_000));
    let (at, end) = (connection.at(), &mut connection.ends[0]);
    let mut out = Outbox::new();
    std::mem::swap(&mut out, &mut end.out);
    end.engine.abort(at, end.flow.expect("a flow"), &mut out).expect("it ends");
    end.out = out;
    connection.after(0);
    connection.until(|_| false);
    assert!(connection.ends.iter().all(|end| end.ended));
    assert_eq!(connection.ends[1].notices, ["established", "reset"]);
    let received = &connection.ends[1].received;
    assert!(connection.ends[0].to_send.starts_with(received));
}

/// RFC 1191: packets become as small as the narrowest link, and nothing is lost for long.
#[test]
fn a_narrow_link_is_found() {
    for narrow in [1_280, 600] {
        let mut connection = pair([&[], &[]], 300_000, CLEAN);
        connection.fates =
            Box::new(move |sending| match sending.to == 1 && sending.frame.len() > 14 + usize::from(narrow) {
                true => Fate::TooBig(narrow),
                false => Fate::Passes,
            });
        connection.open();
        assert!(connection.until(all_arrived));
        assert_eq!(connection.register(0, "mtu"), Some(narrow.into()));
        assert!(connection.now < 400 * MILLISECOND, "{} ms", connection.now / MILLISECOND);
    }
}

/// RFC 2923, 2.1: a link drops what is too large, and nobody says so.
#[test]
fn a_black_hole_is_found() {
    let mut connection = pair([&[], &[]], 100_000, CLEAN);
    connection.fates = Box::new(|sending| match sending.to == 1 && sending.frame.len() > 1_000 {
        true => Fate::Lost,
        false => Fate::Passes,
    });
    connection.open();
    assert!(connection.until(all_arrived));
    assert!(connection.now < 10 * SECOND, "{} s", connection.now / SECOND);
}

/// A timer sends the rest and the FIN; the segment that acknowledges it is the end of that side (RFC 9293, 3.6).
#[test]
fn a_fin_that_leaves_by_a_timer_ends_its_side() {
    for lengths in [[0, 100_000], [100_000, 0], [100_000, 50_000]] {
        let data = [data(lengths[0], 7), data(lengths[1], 11)];
        let mut connection = Connection::new([machine(&[]), machine(&[])], data, CLEAN, 1);
        connection.fates = Box::new(|sending| if sending.frame.len() > 1_000 { Fate::Lost } else { Fate::Passes });
        connection.open();
        connection.until(|_| false);
        let received = [1, 0].map(|end| connection.ends[end].received.len());
        assert_eq!(received, lengths);
        assert!(connection.ends.iter().all(|end| end.ended), "{lengths:?}: {:?}", connection.shown());
    }
}

/// RFC 5927: an error about a segment that is not under way changes nothing, nor does one that tells of an absurd MTU much.
#[test]
fn forged_errors_do_no_harm() {
    let mut connection = pair([&[], &[]], 300_000, CLEAN);
    let first = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let kept = first.clone();
    connection.fates = Box::new(move |sending| {
        if sending.to == 1 && sending.payload() > 0 && kept.borrow().is_empty() {
            kept.borrow_mut().extend_from_slice(sending.frame);
        }
        Fate::Passes
    });
    connection.open();
    assert!(connection.until(|connection| connection.ends[1].received.len() > 100_000));
    let forge = |connection: &mut Connection, frame: &[u8], mtu| {
        let (at, end) = (connection.at(), &mut connection.ends[0]);
        end.engine.frame(at, Port(1), Frame::new(&too_big(frame, mtu)), &mut end.out);
        connection.after(0);
        connection.register(0, "mtu")
    };
    let frame = first.borrow().clone();
    assert_eq!(forge(&mut connection, &frame, 600), Some(1_500), "what it quotes was acknowledged");
    let mut later = frame.clone();
    let sequence = connection.register(0, "una").expect("a register") as u32;
    later[38..42].copy_from_slice(&sequence.to_be_bytes());
    assert_eq!(forge(&mut connection, &later, 68), Some(552));
    assert!(connection.until(all_arrived));
}

/// RFC 9293, 3.8.3: the SYN is given up after some, and the application is told.
#[test]
fn nobody_there_is_told() {
    let mut connection = pair([&[], &[]], 1_000, CLEAN);
    connection.fates = Box::new(|_| Fate::Lost);
    connection.open();
    connection.until(|connection| connection.ends[0].ended);
    assert_eq!(connection.now / SECOND, 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60);
    assert_eq!(connection.ends[0].notices, ["timed_out"]);
}

/// RFC 9406: a queue that grows ends slow start before anything is lost.
#[test]
fn slow_start_ends_when_round_trips_become_longer() {
    for control in 0..2 {
        let line = Line { delay: 10 * MILLISECOND, ..CLEAN };
        let mut connection = pair([&[("control", control)], &[]], 6_000_000, line);
        // 20 Mbit/s, and room for everything.
        let mut free = 0;
        connection.fates = Box::new(move |sending| {
            if sending.to == 0 {
                return Fate::Passes;
            }
            free = free.max(sending.at) + sending.frame.len() as i64 * 8 * 50;
            Fate::Late(free - sending.at)
        });
        connection.open();
        assert!(connection.until(|connection| connection.register(0, "threshold").is_some_and(|it| it < 0x7fff_ffff)));
        // The path holds 50,000 bytes. Longer round trips are seen with four times that, and five careful rounds take three times that.
        let window = connection.register(0, "congestion_window").expect("a register");
        assert!((50_000..50_000 * 4 * 4).contains(&window), "{window} bytes");
        assert!(connection.until(all_arrived));
        assert_eq!(connection.ends[0].sent, 6_000_000);
    }
}

/// CUBIC beside the same in floating point (RFC 9438, 4.2 to 4.6): within a segment.
#[test]
fn cubic_follows_its_curve() {
    let line = Line { delay: 25 * MILLISECOND, ..CLEAN };
    let mut connection = pair([&[], &[]], 40_000_000, line);
    connection.fates = one_loss_after(320 * MILLISECOND);
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "phase") == Some(1)), "a loss");
    assert!(connection.until(|connection| connection.register(0, "cubic.epoch") > Some(0)), "congestion avoidance");
    let get = |connection: &Connection, name: &str| connection.register(0, name).expect("a register") as f64;
    let segment = SEGMENT as f64;
    let highest = get(&connection, "cubic.highest");
    let mut window = get(&connection, "threshold");
    let (mut friendly, prior) = (window, get(&connection, "cubic.before_loss"));
    let knee = ((highest - window) / segment / 0.4).cbrt();
    let (epoch, mut una) = (get(&connection, "cubic.epoch"), f64::NAN);
    let mut compared = 0;
    let first = connection.now;
    while connection.now < first + 8 * SECOND && connection.ends[0].written < 40_000_000 {
        if una.is_nan() {
            // The event that began the epoch has grown the window already.
            window = get(&connection, "congestion_window");
            friendly = get(&connection, "cubic.friendly");
        }
        una = get(&connection, "una");
        let limited = get(&connection, "limited");
        if !connection.step() {
            break;
        }
        let count = get(&connection, "una") - una;
        if count == 0.0 || limited == 0.0 {
            continue;
        }
        let elapsed = (connection.now as f64 - epoch + get(&connection, "least")) / 1e9;
        let target = (0.4 * (elapsed - knee).powi(3) * segment + highest).clamp(window, 1.5 * window);
        friendly += if friendly >= prior { 1.0 } else { 0.529 } * count * segment / window;
        window = (window + (target - window) * count / window).max(friendly);
        let ours = get(&connection, "congestion_window");
        assert!((ours - window).abs() <= segment, "{ours} instead of {window} after {elapsed} s");
        compared += 1;
    }
    assert!(compared > 500, "{compared} compared");
}
