//! Links against queueing theory and against the papers of their disciplines. All seeds are fixed, so these tests give
//! the same every time; bounds are those of four standard errors, from batch means where samples depend on each other.

use std::time::Duration;
use weftwire_core::{Time, nanoseconds};
use weftwire_network::link::{Arrival, Direction, Discipline, LinkSettings, Loss, Offer, Queue, QueueLimit, Rate};
use weftwire_network::model::{NodeIndex, Traffic, TrafficKind, Transport};
use weftwire_network::read;
use weftwire_network::traffic::{Draws, Gap, Size};

fn at(nanoseconds: i64) -> Time {
    Time::from_nanoseconds(nanoseconds)
}

fn draws(seed: u64) -> Draws {
    Draws::new(&Traffic {
        name: "t".to_owned(),
        from: NodeIndex(0),
        to: NodeIndex(1),
        choices: None,
        start: Time::ZERO,
        stop: Time::MAX,
        ipv6: false,
        transport: Transport::Udp,
        port: 1,
        source_port: 1,
        congestion_control: None,
        dscp: 0,
        recovery: None,
        kind: TrafficKind::Bulk { bytes: 0 },
        seed,
    })
}

/// One byte a nanosecond.
fn wire(limit: u64, discipline: Discipline) -> LinkSettings {
    LinkSettings {
        rate: Some(Rate::Constant(8_000_000_000)),
        queue: Queue { limit: QueueLimit::Packets(limit), discipline, ecn: false, priority: false },
        ..LinkSettings::default()
    }
}

/// Offers packets at random times; `see` gets what arrives, in order. Returns the link and the time of the last offer.
fn load(
    settings: LinkSettings,
    seed: u64,
    packets: u32,
    gap: &Gap,
    size: &Size,
    mut see: impl FnMut(Arrival<u32>),
) -> (Direction<u32>, Time) {
    let mut link = Direction::new(settings, seed);
    let mut draws = draws(seed);
    let mut now = 0;
    for packet in 0..packets {
        now += draws.gap(gap);
        while let Some(next) = link.next().filter(|next| next.nanoseconds() <= now) {
            link.arrive(next).into_iter().for_each(&mut see);
        }
        let bytes = draws.size(size) as u32;
        let _ = link.offer(at(now), packet, Offer::of(bytes));
        while link.take_dropped().is_some() {}
    }
    (link, at(now))
}

/// Mean and its standard error, from the means of 50 batches.
fn batch_means(samples: &[f64]) -> (f64, f64) {
    let batches: Vec<f64> =
        samples.chunks_exact(samples.len() / 50).map(|batch| batch.iter().sum::<f64>() / batch.len() as f64).collect();
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

#[track_caller]
fn assert_near(what: &str, mean: f64, error: f64, expected: f64) {
    assert!((mean - expected).abs() < 4.0 * error, "{what}: {mean} ± {error}, expected {expected}");
}

const SERVICE: f64 = 1e6;

#[test]
fn waiting_times_are_those_of_mm1_and_md1() {
    for (seed, utilisation) in [(1, 0.3), (2, 0.6), (3, 0.8), (4, 0.9)] {
        let gap = Gap::Exponential(SERVICE / utilisation);
        let mm1 = utilisation / (1.0 - utilisation) * SERVICE;
        for (name, size, expected) in
            [("M/M/1", Size::Exponential(SERVICE), mm1), ("M/D/1", Size::Constant(SERVICE as u64), mm1 / 2.0)]
        {
            let mut waits = Vec::new();
            let settings = wire(u64::MAX, Discipline::DropTail);
            let (mut link, end) =
                load(settings, seed, 300_000, &gap, &size, |arrival| waits.push(arrival.waited.as_nanos() as f64));
            let (mean, error) = batch_means(&waits);
            assert!(error < 0.05 * expected, "{name} at {utilisation}: too few samples, {error} of {expected}");
            assert_near(&format!("{name} at {utilisation}"), mean, error, expected);
            // Little's law: bytes that wait are what comes, times how long it waits (M/D/1: sizes are independent).
            let counts = link.counts(end);
            let busy = counts.busy as f64 / end.nanoseconds() as f64;
            assert!((busy - utilisation).abs() < 0.02, "{name}: busy {busy}, load {utilisation}");
            if name == "M/D/1" {
                let bytes = counts.queue_bytes_integral as f64 / end.nanoseconds() as f64;
                assert!((bytes / (utilisation * mean) - 1.0).abs() < 0.02, "{bytes} bytes wait");
            }
        }
    }
}

/// Datagrams of exponential sizes, as a file describes them: alone they make M/M/1; with headers that are always the same,
/// M/G/1, whose wait is Pollaczek's and Khinchine's.
#[test]
fn exponential_datagrams_wait_as_in_mm1() {
    let text = "duration = \"1s\"\n[nodes.a]\n[nodes.b]\n[[links]]\nbetween = [\"a\", \"b\"]\n[[traffic]]\nkind = \"datagrams\"\n\
                from = \"a\"\nto = \"b\"\nsize = { exponential = \"100B\" }\nrate = \"1/ms\"\narrivals = \"poisson\"\n";
    let network =
        read("test.toml", text, &[], &|_| Err(std::io::Error::other("no files").into())).network.expect("it is valid");
    let TrafficKind::Datagrams { size, .. } = &network.traffic[0].kind else { panic!("datagrams") };
    for (seed, header, load_of_link) in [(1, 0.0, 0.8), (2, 42.0, 0.8), (3, 42.0, 0.5)] {
        let service = 100.0 + header;
        let gap = Gap::Exponential(service / load_of_link);
        let settings = LinkSettings { overhead: header as u32, ..wire(u64::MAX, Discipline::DropTail) };
        let mut waits = Vec::new();
        let _ = load(settings, seed, 400_000, &gap, size, |arrival| waits.push(arrival.waited.as_nanos() as f64));
        let (mean, error) = batch_means(&waits);
        let second_moment = 2.0 * 100.0 * 100.0 + 2.0 * 100.0 * header + header * header;
        let expected = load_of_link / service * second_moment / (2.0 * (1.0 - load_of_link));
        assert!(error < 0.05 * expected, "too few samples");
        assert_near(&format!("wait behind {header} bytes of headers"), mean, error, expected);
        if header == 0.0 {
            assert!((expected - load_of_link / (1.0 - load_of_link) * 100.0).abs() < 1e-9, "M/M/1");
        }
    }
}

#[test]
fn a_bounded_queue_loses_as_mm1k_does() {
    for (seed, utilisation, room) in [(1u64, 0.7f64, 4), (2, 0.95, 9), (3, 1.3, 6)] {
        let mut lost = vec![1.0; 300_000];
        let gap = Gap::Exponential(SERVICE / utilisation);
        let settings = wire(room - 1, Discipline::DropTail);
        let (mut link, _) = load(settings, seed, 300_000, &gap, &Size::Exponential(SERVICE), |arrival| {
            lost[arrival.packet as usize] = 0.0;
        });
        while let Some(arrival) = link.arrive(Time::MAX) {
            lost[arrival.packet as usize] = 0.0;
        }
        let (mean, error) = batch_means(&lost);
        let power = |exponent: u64| utilisation.powi(exponent as i32);
        assert_near(
            &format!("M/M/1/{room} at {utilisation}"),
            mean,
            error,
            (1.0 - utilisation) * power(room) / (1.0 - power(room + 1)),
        );
    }
}

/// Which of many packets an otherwise ideal link loses.
fn losses(loss: Loss, seed: u64) -> Vec<bool> {
    let mut link = Direction::new(LinkSettings { loss, ..LinkSettings::default() }, seed);
    let offer = Offer::of(100);
    (0..200_000)
        .map(|packet| {
            let lost = link.offer(at(packet), packet, offer).is_err();
            while link.arrive(at(packet)).is_some() {}
            lost
        })
        .collect()
}

fn share(of: &[bool]) -> f64 {
    of.iter().filter(|one| **one).count() as f64 / of.len() as f64
}

#[test]
fn random_loss_has_its_rate() {
    for (seed, rate) in [(1, 0.001), (2, 0.1), (3, 0.9)] {
        let lost = losses(Loss::Random(rate), seed);
        assert_near("loss", share(&lost), (rate * (1.0 - rate) / lost.len() as f64).sqrt(), rate);
        // Independent: after a loss as often as else.
        let after: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert_near("loss after loss", share(&after), (rate * (1.0 - rate) / after.len() as f64).sqrt(), rate);
    }
    assert!(losses(Loss::Random(1.0), 4).into_iter().all(|lost| lost));
    assert!(!losses(Loss::Random(0.0), 4).into_iter().any(|lost| lost));
}

#[test]
fn bursty_loss_is_that_of_the_chain() {
    let (to_bad, to_good) = (0.01, 0.2);
    let bad = to_bad / (to_bad + to_good);
    // A chain's samples depend on each other: the variance of their mean is larger by this.
    let inflation = (2.0 - to_bad - to_good) / (to_bad + to_good);
    for (seed, loss_good, loss_bad) in [(1, 0.0, 1.0), (2, 0.01, 0.6)] {
        let lost =
            losses(Loss::GilbertElliott { good_to_bad: to_bad, bad_to_good: to_good, loss_good, loss_bad }, seed);
        let rate = (1.0 - bad) * loss_good + bad * loss_bad;
        let error = (rate * (1.0 - rate) * inflation / lost.len() as f64).sqrt();
        assert_near("stationary loss", share(&lost), error, rate);
        if loss_bad == 1.0 {
            let bursts: Vec<f64> =
                lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(|run| run.len() as f64).collect();
            let mean = bursts.iter().sum::<f64>() / bursts.len() as f64;
            let error = ((1.0 - to_good) / (to_good * to_good) / bursts.len() as f64).sqrt();
            assert_near("mean burst", mean, error, 1.0 / to_good);
        }
    }
}

#[test]
fn jitter_is_uniform_and_keeps_the_order() {
    let settings =
        LinkSettings { delay: Duration::from_micros(5), jitter: Duration::from_micros(1), ..LinkSettings::default() };
    let mut extra = Vec::new();
    let _ = load(settings.clone(), 1, 100_000, &Gap::Constant(10_000), &Size::Constant(100), |arrival| {
        extra.push((arrival.at.nanoseconds() - 5_000 - 10_000 * (i64::from(arrival.packet) + 1)) as f64);
    });
    assert!(extra.iter().all(|extra| (0.0..=1_000.0).contains(extra)));
    assert!(extra.contains(&0.0) && extra.contains(&1_000.0), "both ends");
    assert_near("mean jitter", batch_means(&extra).0, (1e6 / 12.0 / extra.len() as f64).sqrt(), 500.0);
    let quarter: Vec<bool> = extra.iter().map(|extra| *extra < 250.25).collect();
    assert_near("first quarter", share(&quarter), (0.1875 / extra.len() as f64).sqrt(), 0.25);
    // Packets closer than the jitter: still in order.
    let mut last = 0;
    let _ = load(settings, 1, 100_000, &Gap::Constant(100), &Size::Constant(100), |arrival| {
        assert!(arrival.packet == last, "packet {} after {last}", arrival.packet);
        last += 1;
    });
}

/// The delays are independent then, so a packet `k` places behind overtakes with a known probability.
#[test]
fn jitter_that_reorders_is_uniform_and_independent() {
    let settings = LinkSettings {
        delay: Duration::from_micros(5),
        jitter: Duration::from_micros(1),
        jitter_reorders: true,
        ..LinkSettings::default()
    };
    let mut arrivals = Vec::new();
    let gap = 250;
    let (mut link, end) = load(settings, 1, 100_000, &Gap::Constant(gap), &Size::Constant(100), |arrival| {
        arrivals.push((arrival.packet, arrival.at.nanoseconds()));
    });
    let counts = link.counts(end);
    let extra: Vec<f64> =
        arrivals.iter().map(|(packet, at)| (at - 5_000 - gap * (i64::from(*packet) + 1)) as f64).collect();
    assert!(extra.iter().all(|extra| (0.0..=1_000.0).contains(extra)));
    assert_near("mean jitter", batch_means(&extra).0, (1e6 / 12.0 / extra.len() as f64).sqrt(), 500.0);
    arrivals.sort_unstable();
    for places in 1..=3_usize {
        let overtakes: Vec<bool> = arrivals.windows(places + 1).map(|pair| pair[places].1 < pair[0].1).collect();
        let lead = 1.0 - (places as f64 * gap as f64) / 1_000.0;
        // Of two uniform times the later packet's is smaller by more than the distance; neighbours share a time.
        let expected = lead * lead / 2.0;
        assert_near(&format!("{places} places"), share(&overtakes), (0.5 / overtakes.len() as f64).sqrt(), expected);
    }
    assert!((30_000..60_000).contains(&counts.reordered), "{}", counts.reordered);
}

#[test]
fn copies_reordering_and_corruption_have_their_rates() {
    let settings = LinkSettings {
        delay: Duration::from_micros(1),
        reorder: 0.1,
        reorder_delay: Duration::from_nanos(250),
        duplicate: 0.2,
        corrupt: 0.3,
        ..LinkSettings::default()
    };
    let packets = 100_000;
    let (mut late, mut copies, mut corrupt, mut overtaken, mut highest) = (0, 0, 0, 0, 0);
    let mut bits = Vec::new();
    let (mut link, end) = load(settings, 1, packets, &Gap::Constant(100), &Size::Constant(100), |arrival| {
        let took = arrival.at.nanoseconds() - 100 * (i64::from(arrival.packet) + 1);
        assert!(took == 1_000 || took == 1_250);
        copies += u32::from(arrival.duplicate);
        corrupt += u32::from(arrival.corrupt_bit.is_some());
        bits.extend(arrival.corrupt_bit.map(f64::from));
        late += u32::from(took == 1_250 && !arrival.duplicate);
        overtaken += u32::from(arrival.packet < highest && !arrival.duplicate);
        highest = highest.max(arrival.packet);
    });
    let counts = link.counts(end);
    let near = |what: &str, hits: f64, of: f64, rate: f64| {
        assert_near(what, hits / of, (rate * (1.0 - rate) / of).sqrt(), rate);
    };
    let packets = f64::from(packets);
    near("late", late.into(), packets, 0.1);
    near("copies", copies.into(), packets, 0.2);
    near("corrupt", corrupt.into(), packets * 1.2, 0.3);
    // Late by more than two gaps: overtaken unless the next two are late too.
    near("overtaken", overtaken.into(), packets, 0.1 * 0.99);
    assert!(counts.reordered >= late.into() && counts.duplicated >= copies.into());
    assert!(bits.iter().all(|bit| (112.0..800.0).contains(bit)));
    let error = (688.0 * 688.0 / 12.0 / bits.len() as f64).sqrt();
    assert_near("mean bit", bits.iter().sum::<f64>() / bits.len() as f64, error, 455.5);
}

#[test]
fn red_holds_its_average_where_the_paper_says() {
    let red = Discipline::Red { minimum: 50, maximum: 150, probability: 0.1, weight: 0.002 };
    // 5 % too much: a drop each 21 packets. Spaced by counting, drops are 1/2 (1 + 1/p) packets apart.
    let overload = 1.05;
    let mut waits = Vec::new();
    let gap = Gap::Exponential(1_000.0 / overload);
    let (mut link, end) = load(wire(100_000, red.clone()), 1, 400_000, &gap, &Size::Constant(1_000), |a| {
        waits.push(a.waited.as_nanos() as f64)
    });
    let (mean, _) = batch_means(&waits[50_000..]);
    let rate = 1.0 - 1.0 / overload;
    let base = rate / (2.0 - rate);
    let expected = 50.0 + base / 0.1 * 100.0;
    assert!((mean / 1_000.0 - expected).abs() < 5.0, "{} packets wait, expected {expected}", mean / 1_000.0);
    let counts = link.counts(end);
    assert_eq!(counts.dropped_full, 0);
    let dropped = counts.dropped_early as f64 / counts.offered_packets as f64;
    assert!((dropped / rate - 1.0).abs() < 0.05, "drops {dropped} of {rate}");
    // Half the load: never near the minimum.
    let gap = Gap::Exponential(2_000.0);
    let (mut link, end) = load(wire(100_000, red), 2, 100_000, &gap, &Size::Constant(1_000), |_| {});
    assert_eq!(link.counts(end).dropped_early, 0);
}

#[test]
fn red_never_drops_below_its_minimum_and_always_above_twice_its_maximum() {
    let red = Discipline::Red { minimum: 10, maximum: 20, probability: 0.5, weight: 1.0 };
    for ecn in [false, true] {
        let mut settings = wire(100, red.clone());
        settings.queue.ecn = ecn;
        let mut link = Direction::new(settings, 7);
        let offer = Offer { ecn_capable: true, ..Offer::of(1_000_000) };
        for packet in 0..200 {
            let before = link.waiting(at(0)).0;
            let kept = link.offer(at(0), packet, offer).is_ok();
            assert!(kept || before >= 10, "dropped with {before} waiting");
            assert!(ecn || !kept || before < 40, "kept with {before} waiting");
        }
        if ecn {
            assert_eq!(link.waiting(at(0)).0, 100, "marks, and drops only at the limit");
            while link.next().is_some_and(|next| link.arrive(next).is_some()) {}
            let counts = link.counts(Time::MAX);
            assert!((60..=90).contains(&counts.marked), "{} marked", counts.marked);
            assert_eq!((counts.dropped_early, counts.dropped_full), (0, 99));
        }
    }
}

#[test]
fn red_forgets_while_the_link_is_idle() {
    let red = Discipline::Red { minimum: 5, maximum: 10, probability: 1.0, weight: 0.1 };
    let mut link = Direction::new(wire(100, red), 7);
    let offer = Offer::of(1_000);
    while link.offer(at(0), 0, offer).is_ok() {}
    let end = at(10_000_000);
    assert!(link.next().is_some());
    while link.arrive(end).is_some() {}
    assert!((0..5).all(|packet| link.offer(end, packet, offer).is_ok()), "the average is near 0 again");
}

const MILLISECOND: i64 = 1_000_000;

fn codel() -> Discipline {
    Discipline::Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
}

#[test]
fn codel_drops_at_the_times_of_its_control_law() {
    // 100 µs a packet; one and a half as many as it can take, and nobody slows down.
    let offer = Offer::of(100_000);
    let mut link = Direction::new(wire(u64::MAX, codel()), 1);
    let mut drops = Vec::new();
    let mut above = None;
    for step in 0..60_000i64 {
        let now = step * 50_000;
        if step % 4 != 3 {
            link.offer(at(now), now, offer).expect("no limit");
        }
        while let Some(arrival) = link.arrive(at(now)) {
            if arrival.waited >= Duration::from_millis(5) && above.is_none() {
                above = Some(arrival.at.nanoseconds() - 100_000);
            }
        }
        drops.extend(std::iter::from_fn(|| link.take_dropped()).map(|_| now));
    }
    let above = above.expect("it stands above the target");
    assert!((100 * MILLISECOND..=100 * MILLISECOND + 100_000).contains(&(drops[0] - above)));
    let mut due = drops[0] as f64;
    for (count, drop) in drops.iter().enumerate() {
        let late = *drop as f64 - due;
        assert!((-50_000.0..=200_000.0).contains(&late), "drop {count} is {late} ns late");
        due += 1e8 / ((count + 1) as f64).sqrt();
    }
    // 2 √n intervals up to drop n.
    assert!(drops.len() > 150, "{} drops", drops.len());
}

#[test]
fn codel_takes_a_standing_queue_down() {
    let run = |discipline, ecn| {
        let mut settings = wire(u64::MAX, discipline);
        settings.queue.ecn = ecn;
        let mut link = Direction::new(settings, 1);
        let offer = Offer { ecn_capable: ecn, ..Offer::of(100_000) };
        // 20 ms of packets at once, then as many as it can take.
        (0..200).for_each(|_| link.offer(at(0), 0, offer).expect("no limit"));
        let mut last = 0;
        for step in 0..60_000 {
            link.offer(at(step * 100_000), 0, offer).expect("no limit");
            while let Some(arrival) = link.arrive(at(step * 100_000)) {
                last = nanoseconds(arrival.waited);
            }
        }
        (last, link.counts(at(6_000 * MILLISECOND)))
    };
    let (waits, _) = run(Discipline::DropTail, false);
    assert_eq!(waits / MILLISECOND, 20, "it would stay");
    let (waits, counts) = run(codel(), false);
    assert!(waits <= 5 * MILLISECOND, "{waits} ns");
    assert!((145..=160).contains(&counts.dropped_early), "no more than needed: {}", counts.dropped_early);
    let (waits, counts) = run(codel(), true);
    assert_eq!(counts.dropped_early, 0);
    assert!(counts.marked > 100, "nobody heeds its {} marks", counts.marked);
    assert_eq!(waits / MILLISECOND, 20);
}
