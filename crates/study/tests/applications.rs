//! The applications behave as their figures are to show.

use std::ops::ControlFlow;
use weftwire_study::applications::{Options, Study, StudyError, quantile};

#[test]
fn filtering_in_the_network_is_early() {
    let options = Options { packets: 4_000, ..Options::default() };
    let study = Study::run(&options, &mut |_| ControlFlow::Continue(())).expect("networks and rules are right");
    let mut shares = Vec::new();
    let mut watch = |share| {
        shares.push(share);
        ControlFlow::Continue(())
    };
    assert_eq!(study, Study::run(&options, &mut watch).expect("the same again"));
    // One after each part, and more in the long ones.
    assert!(shares.len() > 11 && shares.is_sorted() && shares.last() == Some(&1.0), "{shares:?}");

    // Both places of filtering find all messages, and the switch's subscriber has them earlier: it gets little.
    for feed in study.market.chunks(2) {
        let [switch, host] = feed else { panic!("each feed is filtered twice") };
        assert!(switch.wanted > 10 && switch.wanted == host.wanted);
        assert_eq!((switch.latencies_ns.len(), host.latencies_ns.len()), (switch.wanted, host.wanted));
        assert!(switch.packets_at_host * 2 < host.packets_at_host && host.packets_at_host == 4_000);
        let tail = |run: &weftwire_study::applications::market::Run| quantile(&run.latencies_ns, 0.99);
        assert!(tail(switch) * 3 < tail(host), "{} {}", tail(switch), tail(host));
        // Two links of 500 ns and the work on one packet are the least.
        assert!(switch.latencies_ns[0] >= 1_109, "{}", switch.latencies_ns[0]);
    }

    // With meters the cache gets what is hot: nearly all of its requests are hits, and cold content does not wait for it.
    let [meter, all] = &study.content[..] else { panic!("there are two sets of rules") };
    assert_eq!(meter.at_cache + meter.past_cache, all.at_cache);
    assert!(meter.hits + 1 == meter.at_cache && all.hits < all.at_cache, "{} {}", meter.hits, meter.at_cache);
    assert!(quantile(&meter.cold_ns, 0.95) < quantile(&all.cold_ns, 0.95));
    assert!(meter.hot_by_window[3].0 > 50 && meter.hot_by_window[13].0 == 0, "{:?}", meter.hot_by_window);
    assert!(meter.hot_by_window[4..12].iter().all(|(cached, past)| *past == 10 && *cached > 80));

    assert!(!study.highway.is_empty());
    assert!(study.highway.iter().filter(|alert| alert.subscriber == "rescue").all(|alert| alert.speed == 0));
    for (csv, lines) in [(study.figure_8_csv(), 33), (study.figure_11_csv(), 17), (study.hot_csv(), 33)] {
        assert_eq!(csv.lines().count(), lines, "{csv}");
    }
    assert_eq!(study.alerts_csv().lines().count(), 1 + study.highway.len());
    assert!(study.page().contains("Hot and cold content"));
    assert!([study.figure_8(), study.figure_11(), study.alerts()].iter().all(|picture| picture.starts_with("<svg")));
}

#[test]
fn who_watches_may_break_it_off_everywhere() {
    let options = Options { packets: 4_000, ..Options::default() };
    for until in [0.1, 0.2, 0.5, 0.9] {
        let mut last = 0.0;
        let outcome = Study::run(&options, &mut |share| {
            assert!(last < until, "it went on");
            last = share;
            if share < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(outcome.unwrap_err(), StudyError::Interrupted);
    }
}
