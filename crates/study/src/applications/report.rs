//! The results as tables and pictures.

use super::{Study, highway, market};
use crate::sheet::{alone, csv, table};
use std::fmt::Write as _;
use weftwire_draw::chart::{Chart, Shape, stack};
use weftwire_draw::{Axis, Unit, document};

/// Shares of messages whose latency is told.
const SHARES: [f64; 8] = [0.5, 0.9, 0.95, 0.965, 0.99, 0.995, 0.999, 1.0];
const FIGURE_8: &[&str] =
    &["feed", "filter", "packets_per_second", "packets_at_host", "wanted", "got", "share", "latency_ns"];
const WINDOWS: &[&str] = &["rules", "window_start_ms", "hot_at_cache", "hot_past_cache"];
const FIGURE_11: &[&str] = &["rules", "at_cache", "hits", "past_cache", "share", "latency_of_cold_ns"];
const ALERTS: &[&str] = &["at_ns", "subscriber", "car", "speed_mph", "segment"];

/// The least of sorted values that at least this share of them does not exceed; 0 of none.
pub fn quantile(sorted: &[u64], share: f64) -> u64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0)
}

fn seconds(nanoseconds: &[u64]) -> Vec<f64> {
    // A stair of a thousand steps shows all that a picture can.
    (0..=1_000).map(|step| quantile(nanoseconds, f64::from(step) / 1_000.0) as f64 * 1e-9).collect()
}

impl Study {
    /// Figure 8 as CSV: latencies of messages of interest.
    pub fn figure_8_csv(&self) -> String {
        csv(FIGURE_8, self.figure_8_rows().into_iter())
    }

    fn figure_8_rows(&self) -> Vec<Vec<String>> {
        let line = |run: &market::Run, share: f64| {
            let numbers = [run.packets_at_host as usize, run.wanted, run.latencies_ns.len()].map(|it| it.to_string());
            let head = [run.feed.to_owned(), run.filter.to_owned(), format!("{:.0}", run.packets_per_second)];
            let tail = [share.to_string(), quantile(&run.latencies_ns, share).to_string()];
            head.into_iter().chain(numbers).chain(tail).collect()
        };
        self.market.iter().flat_map(|run| SHARES.map(|share| line(run, share))).collect()
    }

    /// Requests for the content that becomes hot as CSV, by window.
    pub fn hot_csv(&self) -> String {
        let lines = self.content.iter().flat_map(|run| {
            run.hot_by_window.iter().enumerate().map(|(window, (cached, past))| {
                vec![run.rules.to_owned(), (window * 100).to_string(), cached.to_string(), past.to_string()]
            })
        });
        csv(WINDOWS, lines)
    }

    /// Figure 11 as CSV: latencies of cold content.
    pub fn figure_11_csv(&self) -> String {
        csv(FIGURE_11, self.figure_11_rows().into_iter())
    }

    fn figure_11_rows(&self) -> Vec<Vec<String>> {
        let lines = self.content.iter().flat_map(|run| {
            SHARES.map(|share| {
                let numbers = [run.at_cache, run.hits, run.past_cache].map(|it| it.to_string());
                let tail = [share.to_string(), quantile(&run.cold_ns, share).to_string()];
                std::iter::once(run.rules.to_owned()).chain(numbers).chain(tail).collect()
            })
        });
        lines.collect()
    }

    /// Alerts of the highway as CSV.
    pub fn alerts_csv(&self) -> String {
        let line = |alert: &highway::Alert| {
            let speed = format!("{}.{}", alert.speed / 10, alert.speed % 10);
            let (car, segment) = (alert.car.to_string(), alert.segment.to_string());
            vec![alert.at_ns.to_string(), alert.subscriber.to_owned(), car, speed, segment]
        };
        csv(ALERTS, self.highway.iter().map(line))
    }

    /// Figure 8 as a picture.
    pub fn figure_8(&self) -> String {
        alone(&self.market_charts())
    }

    /// Where requests for hot content go, and Figure 11, as a picture.
    pub fn figure_11(&self) -> String {
        alone(&self.content_charts())
    }

    /// The highway's alerts as a picture.
    pub fn alerts(&self) -> String {
        alone(&[self.highway_chart()])
    }

    fn market_charts(&self) -> Vec<Chart> {
        let chart = |(feed, _): &(&str, _)| {
            let title = format!("Latency of messages of interest: {feed}");
            let mut chart =
                Chart::new(&title, Axis::logarithmic("latency", Unit::Seconds), Axis::new("messages", Unit::Share));
            for run in self.market.iter().filter(|run| run.feed == *feed) {
                let name = if run.filter == "switch" { "the switch filters" } else { "the host filters" };
                chart.add(name, Chart::distribution(seconds(&run.latencies_ns)));
            }
            chart
        };
        market::FEEDS.iter().map(chart).collect()
    }

    fn content_charts(&self) -> Vec<Chart> {
        let requests = Axis::new("requests in 100 ms", Unit::Plain);
        let mut windows =
            Chart::new("Requests for content that becomes hot", Axis::new("time", Unit::Seconds), requests);
        let mut cold = Chart::new(
            "Latency of cold content",
            Axis::new("latency", Unit::Seconds),
            Axis::new("requests", Unit::Share),
        );
        for run in &self.content {
            if run.rules == "meter" {
                let points = |pick: fn(&(u32, u32)) -> u32| {
                    let point = |(window, counts)| (window as f64 * 0.1, f64::from(pick(counts)));
                    Shape::Step(run.hot_by_window.iter().enumerate().map(point).collect())
                };
                windows.add("to the cache", points(|counts| counts.0));
                windows.add("to the producer", points(|counts| counts.1));
            }
            let name = if run.rules == "meter" { "hot content to the cache" } else { "everything to the cache" };
            cold.add(name, Chart::distribution(seconds(&run.cold_ns)));
        }
        vec![windows, cold]
    }

    fn highway_chart(&self) -> Chart {
        let segments = Axis { ends: (None, Some(10.0)), ..Axis::new("segment", Unit::Plain) };
        let mut chart = Chart::new("Alerts", Axis::new("time", Unit::Seconds), segments);
        for (place, subscriber) in highway::SUBSCRIBERS.iter().enumerate() {
            // Side by side where two subscribers have alerts of one segment.
            let point = |alert: &highway::Alert| {
                (alert.at_ns as f64 * 1e-9, f64::from(alert.segment) + 0.2 * (place as f64 - 1.5))
            };
            let of = self.highway.iter().filter(|alert| alert.subscriber == *subscriber);
            chart.add(subscriber, Shape::Dots(of.map(point).collect()));
        }
        chart
    }

    /// One HTML page of everything.
    pub fn page(&self) -> String {
        let title = "Applications of subscriptions, measured";
        let options = &self.options;
        let mut body = format!(
            "<header><h1>{title}</h1>\n<p>In the simulator, seed {}. The market's subscriber takes {} ns for a packet and {} ns for a \
             message; feeds come in bursts of {} packets and ask {} % of it. The cache takes {} ns for a request.</p></header>\n",
            options.seed, options.packet_ns, options.message_ns, options.burst, options.load, options.cache_ns
        );
        let mut section = |title: &str, note: &str, content: String| {
            let _ = writeln!(
                body,
                "<section>\n<h2>{title}</h2>\n<p class=\"note\">{note}</p>\n<div class=\"scroll\">\n{content}</div>\n</section>"
            );
        };
        section("Market data", "From sending to the end of the subscriber's work.", stack(&self.market_charts()));
        section("In numbers", "", table(FIGURE_8, self.figure_8_rows().into_iter()));
        section(
            "Hot and cold content",
            "A request is hot from the eleventh of a window on.",
            stack(&self.content_charts()),
        );
        section("In numbers", "", table(FIGURE_11, self.figure_11_rows().into_iter()));
        section("Highway", "Each dot is a report that a subscriber got.", self.highway_chart().svg());
        document(title, &body)
    }
}
