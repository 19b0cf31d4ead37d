//! What the interface of congestion control carries beside windows: DCTCP, a rate that segments leave at, and sketches of BBR and Swift, which
//! are not part of the TCP.

use crate::support::{Connection, Fate, Line, data, machine, sketched};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use weftwire_image::VerifiedImage;

const MILLISECOND: i64 = 1_000_000;
const ECE: u8 = 0x40;

/// What crossed a bottleneck.
#[derive(Default)]
struct Queue {
    /// When the frames that wait have left.
    leaving: VecDeque<i64>,
    /// Its length as frames came, in frames, since it is looked at.
    lengths: Vec<usize>,
    looked_at: bool,
    marked: usize,
    lost: usize,
    data: usize,
}

/// Brings these bytes over a link of so many Mbit/s and round trips of so many milliseconds. Frames that find `marks` others waiting are marked,
/// and one of `loss` is lost, if that is not 0.
fn bring(
    image: VerifiedImage,
    bytes: usize,
    link: (i64, i64),
    marks: usize,
    loss: usize,
) -> (Connection, Rc<RefCell<Queue>>, f64) {
    let (rate, trip) = link;
    let line = Line { lost: 0, doubled: 0, late: 0, delay: trip * MILLISECOND / 2 };
    let images = [image, machine(&[("control", 2), ("offer_ecn", 1)])];
    let images = if marks == usize::MAX { [images[0].clone(), machine(&[])] } else { images };
    let mut connection = Connection::new(images, [data(bytes, 7), Vec::new()], line, 1);
    let queue = Rc::new(RefCell::new(Queue::default()));
    let (kept, mut free) = (queue.clone(), 0);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 {
            return Fate::Passes;
        }
        let queue = &mut *kept.borrow_mut();
        queue.data += usize::from(sending.payload() > 0);
        if loss > 0 && queue.data % loss == loss - 1 && sending.payload() > 0 {
            queue.lost += 1;
            return Fate::Lost;
        }
        while queue.leaving.front().is_some_and(|left| *left <= sending.at) {
            queue.leaving.pop_front();
        }
        let waiting = queue.leaving.len();
        if queue.looked_at {
            queue.lengths.push(waiting);
        }
        free = sending.at.max(free) + sending.frame.len() as i64 * 8_000 / rate;
        queue.leaving.push_back(free);
        match waiting >= marks && sending.payload() > 0 {
            true => {
                queue.marked += 1;
                Fate::LateMarked(free - sending.at)
            }
            false => Fate::Late(free - sending.at),
        }
    });
    connection.open();
    assert!(connection.until(|connection| connection.ends[1].received.len() >= bytes / 3), "it stops");
    queue.borrow_mut().looked_at = true;
    let begun = (connection.now, connection.ends[1].received.len());
    assert!(connection.until(|connection| connection.ends[1].received.len() == bytes), "it stops");
    assert!(connection.ends[1].received == connection.ends[0].to_send, "other bytes arrive");
    let share = (bytes - begun.1) as f64 * 8e3 / (connection.now - begun.0) as f64 / rate as f64;
    (connection, queue, share)
}

fn mean(lengths: &[usize]) -> f64 {
    lengths.iter().sum::<usize>() as f64 / lengths.len() as f64
}

/// RFC 8257: the queue stays about as long as where routers mark, and the link is full.
#[test]
fn dctcp_keeps_the_queue_where_routers_mark() {
    let image = machine(&[("control", 2), ("offer_ecn", 1)]);
    // 100 Mbit/s and 2 ms hold 17 packets.
    let (connection, queue, share) = bring(image, 8_000_000, (100, 2), 10, 0);
    let queue = queue.borrow();
    let (mean, most) = (mean(&queue.lengths), queue.lengths.iter().max().copied().unwrap_or(0));
    assert!(share > 0.93, "{share:.3} of the link");
    assert!(
        queue.marked > 50 && (2.0..14.0).contains(&mean) && most < 25,
        "{mean:.1} waiting, {most} at most, {} marked",
        queue.marked
    );
    assert_eq!(connection.ends[0].sent, 8_000_000);
    let marks = connection.register(0, "dctcp.share").expect("a register");
    assert!((1..1 << 19).contains(&marks), "a share of {marks}");
}

/// RFC 8257, 3.2: what arrives marked is told so, and nothing else.
#[test]
fn dctcp_tells_of_each_mark() {
    let images = [(); 2].map(|()| machine(&[("control", 2), ("offer_ecn", 1)]));
    let line = Line { lost: 0, doubled: 0, late: 0, delay: 5 * MILLISECOND };
    let mut connection = Connection::new(images, [data(1_000_000, 7), Vec::new()], line, 1);
    let told = Rc::new(RefCell::new((0_usize, 0_usize, None::<u32>)));
    let (kept, mut count) = (told.clone(), 0_usize);
    connection.fates = Box::new(move |sending| {
        let (marked, echoed, last) = &mut *kept.borrow_mut();
        if sending.to == 0 {
            let ahead = last.map_or(0, |last| sending.acknowledgment().wrapping_sub(last));
            *echoed += ahead as usize * usize::from(sending.flags() & (ECE | 2) == ECE);
            *last = Some(sending.acknowledgment());
            return Fate::Passes;
        }
        count += usize::from(sending.payload() > 0);
        // Runs of several lengths, even and odd.
        if sending.payload() == 0 || count % 17 > 4 && count % 23 > 0 {
            return Fate::Passes;
        }
        *marked += sending.payload();
        Fate::Marked
    });
    connection.open();
    assert!(connection.until(|connection| connection.ends[1].received.len() == 1_000_000));
    connection.until(|connection| connection.register(0, "una") == connection.register(0, "next"));
    let (marked, echoed, _) = *told.borrow();
    assert!(marked > 100_000 && marked == echoed, "{marked} bytes marked, {echoed} told of");
}

/// With a rate of half the link nothing waits but what leaves at once.
#[test]
fn a_rate_builds_no_queue() {
    let (connection, queue, share) = bring(sketched("steady"), 1_000_000, (10, 40), usize::MAX, 0);
    let queue = queue.borrow();
    assert!(queue.lengths.iter().all(|length| *length <= 2), "{:?}", queue.lengths.iter().max());
    assert!((0.47..=0.5).contains(&share), "{share:.3} of the link");
    assert_eq!(connection.ends[0].sent, 1_000_000);
}

/// What is sent again is paced, too.
#[test]
fn a_rate_holds_with_losses() {
    let (_, queue, share) = bring(sketched("steady"), 1_000_000, (10, 40), usize::MAX, 20);
    let queue = queue.borrow();
    assert!(queue.lost > 30 && queue.lengths.iter().all(|length| *length <= 3), "{:?}", queue.lengths.iter().max());
    assert!((0.40..=0.5).contains(&share), "{share:.3} of the link");
}

/// The sketch of BBR finds the rate of a link with an endless queue, and fills no more of that than a round trip; losses do not matter to it.
#[test]
fn a_sketch_of_bbr_finds_the_rate() {
    for loss in [0, 100] {
        let (_, queue, share) = bring(sketched("bbr"), 6_000_000, (10, 40), usize::MAX, loss);
        let queue = queue.borrow();
        // The path holds 33 packets.
        let mean = mean(&queue.lengths);
        assert!(share > 0.85, "{share:.3} of the link, one of {loss} lost");
        assert!(mean < 40.0, "{mean:.1} waiting, one of {loss} lost");
    }
}

/// The sketch of Swift keeps the round trip near its target, here 5 ms more than without a queue.
#[test]
fn a_sketch_of_swift_keeps_to_its_target() {
    let (connection, queue, share) = bring(sketched("swift"), 3_000_000, (10, 20), usize::MAX, 0);
    let mean = mean(&queue.borrow().lengths);
    assert!(share > 0.9 && mean < 12.0, "{share:.3} of the link, {mean:.1} waiting");
    assert_eq!(connection.ends[0].sent, 3_000_000);
}
