//! The results in words and as tables.

use super::results::{BINS, Method, Results, SHORTEST, Statistics, Values, middle};
use std::fmt::Write as _;
use weftwire_draw::Unit;
use weftwire_report::table::Table;

/// Goals for policies that spin, in nanoseconds: of the median at every gap, and of the 99th percentile.
const GOALS: (i64, i64) = (100, 1_000);

/// What goes to standard output.
pub fn text(results: &Results) -> String {
    let mut out = String::new();
    machine(&mut out, results);
    let times = |of: fn(&Method) -> &Vec<Values>| -> Vec<(String, Vec<Option<Statistics>>)> {
        let with_values = results
            .methods
            .iter()
            .map(|method| (method.name.clone(), of(method).iter().map(Values::statistics).collect::<Vec<_>>()));
        with_values.filter(|(_, bins)| bins.iter().any(Option::is_some)).collect()
    };
    let released = times(|method| &method.release);
    for (ending, title) in [
        ("", "released late by, median / p99"),
        (", sending", "released late by, where each packet is a frame that is sent, median / p99"),
        (", weft run", "timers of a function in the loop of weft run, late by, median / p99"),
    ] {
        let wanted = |name: &str| if ending.is_empty() { !name.contains(',') } else { name.ends_with(ending) };
        let chosen: Vec<_> = released.iter().filter(|(name, _)| wanted(name)).cloned().collect();
        by_gap(&mut out, title, &chosen);
    }
    by_gap(&mut out, "left late by (the kernel's time stamp), median / p99", &times(|method| &method.departure));
    let mut gaps = times(|method| &method.gap);
    gaps.extend(
        results
            .kernel
            .iter()
            .map(|kernel| (kernel.name.clone(), kernel.bins.iter().map(|bin| bin.gap.statistics()).collect())),
    );
    by_gap(&mut out, "gaps between frames off by, median / p99", &gaps);
    kernel(&mut out, results);
    processors(&mut out, results);
    flows(&mut out, results);
    goals(&mut out, results);
    out
}

fn time(nanoseconds: i64) -> String {
    Unit::Seconds.text(nanoseconds as f64 * 1e-9)
}

fn line(out: &mut String, name: &str, text: &str) {
    // Writing to a string can't fail, here and below.
    let _ = writeln!(out, "{name:<16}{text}");
}

fn machine(out: &mut String, results: &Results) {
    let machine = &results.machine;
    let cpu = machine.cpu.map_or("any".to_owned(), |cpu| cpu.to_string());
    let priority = machine.priority.map_or("ordinary priority".to_owned(), |priority| format!("SCHED_FIFO {priority}"));
    let memory = if machine.memory_locked { "memory locked" } else { "memory not locked" };
    line(out, "machine", &format!("{}, {} processors", machine.kernel, machine.processors));
    line(out, "thread", &format!("processor {cpu}, {priority}, {memory}"));
    for refused in &machine.refused {
        line(out, "refused", refused);
    }
    let [median, p99] = machine.own_lateness_ns;
    line(
        out,
        "machine's own",
        &format!(
            "a bare loop reads the clock every {:.1} ns and sees deadlines late by {:.1} ns (median), {:.1} ns (p99); worst gap {}",
            machine.clock_reading_ns,
            median,
            p99,
            time(machine.own_worst_ns)
        ),
    );
    line(out, "margin", &format!("sleep+spin wakes up {} before a deadline", time(machine.margin_ns)));
    line(out, "rounds", &results.rounds.to_string());
    for skipped in &results.skipped {
        line(out, "not measured", skipped);
    }
}

/// A table with a row for each bin, from the longest gap to the shortest, and a column for each method.
fn by_gap(out: &mut String, title: &str, methods: &[(String, Vec<Option<Statistics>>)]) {
    if methods.is_empty() {
        return;
    }
    let _ = write!(out, "\n{title}\n{:>10}", "gap from");
    for (name, _) in methods {
        let _ = write!(out, "  {name:>22}");
    }
    out.push('\n');
    for bin in (0..BINS).rev() {
        let _ = write!(out, "{:>10}", Unit::Seconds.text(SHORTEST * (bin as f64).exp2()));
        for (_, bins) in methods {
            let text = match &bins[bin] {
                Some(values) => format!("{} / {}", time(values.median), time(values.p99)),
                None => "-".to_owned(),
            };
            let _ = write!(out, "  {text:>22}");
        }
        out.push('\n');
    }
}

fn kernel(out: &mut String, results: &Results) {
    if results.kernel.is_empty() {
        return;
    }
    let _ = write!(out, "\nkernel TCP: segments a frame, rate as a share of what was asked for\n{:>10}", "gap");
    for kernel in &results.kernel {
        let _ = write!(out, "  {:>27}", kernel.name);
    }
    out.push('\n');
    for bin in (0..BINS).rev() {
        let _ = write!(out, "{:>10}", Unit::Seconds.text(middle(bin)));
        for kernel in &results.kernel {
            let text = format!("{:.1}, {:.1} %", kernel.bins[bin].burst, kernel.bins[bin].rate * 100.0);
            let _ = write!(out, "  {text:>27}");
        }
        out.push('\n');
    }
}

fn processors(out: &mut String, results: &Results) {
    let _ =
        writeln!(out, "\n{:<30}{:>12}{:>22}{:>14}", "processor used by", "thread", "soft interrupts, all", "send call");
    let methods = results.methods.iter().map(|method| (&method.name, method.processor, method.send_cost_ns));
    for (name, used, cost) in methods.chain(results.kernel.iter().map(|kernel| (&kernel.name, kernel.processor, 0.0))) {
        let cost = if cost > 0.0 { format!("{cost:.0} ns") } else { String::new() };
        let (thread, soft) = (used.thread_share * 100.0, used.soft_interrupt_share * 100.0);
        let _ = writeln!(out, "{name:<30}{thread:>10.1} %{soft:>20.1} %{cost:>14}");
    }
    for method in results.methods.iter().filter(|method| method.refused + method.unseen > 0) {
        let _ =
            writeln!(out, "{}: {} frames refused, {} not seen to leave", method.name, method.refused, method.unseen);
    }
}

fn flows(out: &mut String, results: &Results) {
    let Some(first) = results.flows.first() else { return };
    let _ = writeln!(
        out,
        "\n{} flows\n{:<50}{:>12}{:>12}{:>9}{:>9}{:>20}{:>20}{:>20}",
        first.flows,
        "",
        "wanted/s",
        "reached/s",
        "CPU ns",
        "CPU",
        "rates within 0.1 %",
        "rate off p99, worst",
        "late median / p99"
    );
    for flows in &results.flows {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
        let cpu = flows.wanted.map_or("-".to_owned(), |_| format!("{:.0} %", flows.processor.thread_share * 100.0));
        let right = flows.right.map_or("-".to_owned(), |right| format!("{:.2} %", right * 100.0));
        let error = flows
            .rate_error
            .map_or("-".to_owned(), |[_, p99, worst]| format!("{:.4}, {:.4} %", p99 * 100.0, worst * 100.0));
        let late = flows.late_ns.map_or("-".to_owned(), |[median, p99, _]| format!("{} / {}", time(median), time(p99)));
        let _ = writeln!(
            out,
            "{:<50}{:>12}{:>12.0}{:>9.0}{cpu:>9}{right:>20}{error:>20}{late:>20}",
            flows.name,
            number(flows.wanted),
            flows.reached,
            flows.cost_ns
        );
    }
}

/// Whether the goals were met, in words.
fn goals(out: &mut String, results: &Results) {
    out.push('\n');
    for method in results.methods.iter().filter(|method| matches!(method.name.as_str(), "spin" | "sleep+spin")) {
        let bins: Vec<(usize, Statistics)> =
            method.release.iter().enumerate().filter_map(|(bin, values)| Some((bin, values.statistics()?))).collect();
        let mut goal = |name: &str, of: fn(&Statistics) -> i64, most: i64, own: f64| {
            let Some((bin, worst)) = bins.iter().map(|(bin, values)| (*bin, of(values))).max_by_key(|pair| pair.1)
            else {
                return;
            };
            let met = if worst <= most { "met" } else { "NOT met" };
            let gap = Unit::Seconds.text(SHORTEST * (bin as f64).exp2());
            let _ = writeln!(
                out,
                "{:<12}{name} <= {} at every gap: {met}; most at gaps from {gap}: {}, {:.1} times the machine's own",
                method.name,
                time(most),
                time(worst),
                worst as f64 / own.max(1.0)
            );
        };
        goal("median", |values| values.median, GOALS.0, results.machine.own_lateness_ns[0]);
        goal("p99", |values| values.p99, GOALS.1, results.machine.own_lateness_ns[1]);
    }
}

/// `gaps`: a row for each method, series and bin; `flows`: one for each run of many flows.
pub fn tables(results: &Results) -> Vec<Table> {
    let mut rows: Vec<(&str, &str, usize, Statistics)> = Vec::new();
    for method in &results.methods {
        for (series, bins) in [("release", &method.release), ("departure", &method.departure), ("gap", &method.gap)] {
            let known = bins.iter().enumerate().filter_map(|(bin, values)| Some((bin, values.statistics()?)));
            rows.extend(known.map(|(bin, values)| (method.name.as_str(), series, bin, values)));
        }
    }
    for kernel in &results.kernel {
        let known = kernel.bins.iter().enumerate().filter_map(|(bin, values)| Some((bin, values.gap.statistics()?)));
        rows.extend(known.map(|(bin, values)| (kernel.name.as_str(), "gap", bin, values)));
    }
    let integers = |of: fn(&Statistics) -> i64| rows.iter().map(move |row| of(&row.3)).collect::<Vec<_>>();
    let gaps = Table::new("gaps")
        .text("method", rows.iter().map(|row| row.0))
        .text("series", rows.iter().map(|row| row.1))
        .float("gap_from_s", rows.iter().map(|row| SHORTEST * (row.2 as f64).exp2()))
        .unsigned("count", rows.iter().map(|row| row.3.count as u64))
        .integer("p25_ns", integers(|values| values.p25))
        .integer("median_ns", integers(|values| values.median))
        .integer("p75_ns", integers(|values| values.p75))
        .integer("p99_ns", integers(|values| values.p99))
        .integer("p999_ns", integers(|values| values.p999))
        .integer("worst_ns", integers(|values| values.worst));
    let flows = || results.flows.iter();
    let flows = Table::new("flows")
        .text("run", flows().map(|run| run.name.as_str()))
        .unsigned("flows", flows().map(|run| run.flows as u64))
        .float("wanted_packets_per_s", flows().map(|run| run.wanted))
        .float("reached_packets_per_s", flows().map(|run| run.reached))
        .float("cost_ns", flows().map(|run| run.cost_ns))
        .float("thread_share", flows().map(|run| run.processor.thread_share))
        .float("right_share", flows().map(|run| run.right))
        .float("rate_error_median", flows().map(|run| run.rate_error.map(|errors| errors[0])))
        .float("rate_error_p99", flows().map(|run| run.rate_error.map(|errors| errors[1])))
        .float("rate_error_worst", flows().map(|run| run.rate_error.map(|errors| errors[2])))
        .integer("late_median_ns", flows().map(|run| run.late_ns.map(|late| late[0])))
        .integer("late_p99_ns", flows().map(|run| run.late_ns.map(|late| late[1])))
        .integer("late_worst_ns", flows().map(|run| run.late_ns.map(|late| late[2])));
    vec![gaps, flows]
}

#[cfg(test)]
mod tests {
    use super::super::results::Series;
    use super::*;

    #[test]
    fn goals_name_the_worst_gap() {
        let mut results = Results::default();
        results.machine.own_lateness_ns = [10.0, 20.0];
        let spin = results.method("spin");
        (0..100).for_each(|late| spin.series(Series::Release, 0).push(late));
        (0..100).for_each(|late| spin.series(Series::Release, 9).push(late * 3));
        let text = text(&results);
        assert!(
            text.contains("median <= 100 ns at every gap: NOT met; most at gaps from 625 µs: 150 ns, 15.0 times"),
            "{text}"
        );
        assert!(
            text.contains("p99 <= 1 µs at every gap: met") || text.contains("p99 <= 1.00 µs at every gap: met"),
            "{text}"
        );
    }

    #[test]
    fn tables_have_a_row_for_each_bin_with_values() {
        let mut results = Results::default();
        results.method("spin").series(Series::Release, 3).push(5);
        let tables = tables(&results);
        assert_eq!(tables.iter().map(Table::rows).collect::<Vec<_>>(), [1, 0]);
        assert!(tables[0].to_csv().contains("spin,release,"));
    }
}
