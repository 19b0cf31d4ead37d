//! Small mistakes that somebody could make in an engine. [`crate::mutants`] sees that the test vectors notice each of them.

/// A mistake: a stretch of a source file of `crates/engine/src`, and what stands there instead. A stretch that ends in `;` or `}` is statements,
/// any other an expression.
pub struct Mutation {
    /// The file.
    pub file: &'static str,
    /// What stands there, once.
    pub original: &'static str,
    /// What stands there instead.
    pub mutated: &'static str,
}

const fn at(file: &'static str, original: &'static str, mutated: &'static str) -> Mutation {
    Mutation { file, original, mutated }
}

/// All mistakes, by file.
pub const MUTATIONS: [Mutation; 61] = [
    at("chance.rs", "draw.earlier", "0"),
    at("chance.rs", "seed ^ KEY_SEED", "seed"),
    at(
        "flow_table.rs",
        "if moved { entered } else { instance.rank.max(instance.last_active) }",
        "instance.last_active",
    ),
    at("flow_table.rs", "self.len() >= self.max", "self.len() > self.max"),
    at("flow_table.rs", "order == IDLE && self.rules.holds(line) && instance.is_held()", "false"),
    at("flow_table.rs", "self.rules.expiry(line, active) < now", "false"),
    at("flow_table.rs", "now != first.since", "false"),
    at("control.rs", "found.kind.cut(value)", "value"),
    at("limits.rs", "count <= most", "count < most"),
    at("limits.rs", "self.has_buffers(stored, 1)", "self.has_buffers(stored, 0)"),
    at("lines.rs", "now.since(first.since.at) >= group.idle", "now.since(first.since.at) > group.idle"),
    at(
        "lines.rs",
        "members().map(|line| lines.len(line)).sum::<usize>() <= group.above",
        "members().map(|line| lines.len(line)).sum::<usize>() < group.above",
    ),
    at("lines.rs", "state.expire.unwrap_or(image.flow.expire)", "image.flow.expire"),
    at("lines.rs", "state.expire.is_none() && image.flow.hold", "image.flow.hold"),
    at("lines.rs", "time > 0", "true"),
    at("operations.rs", "*draws - 1", "*draws"),
    at("operations.rs", "self.program.image.registers[register].kind.cut(value)", "value"),
    at("packets.rs", "self.put_out + bytes <= MOST_OUTPUT", "true"),
    at("packets.rs", "found.finish();", ""),
    at("packets.rs", "self.program.fits(found, *link)", "true"),
    at(
        "operations.rs",
        "self.instance.timers.len() >= self.program.image.flow.max_timers as usize",
        "self.instance.timers.len() > self.program.image.flow.max_timers as usize",
    ),
    at("operations.rs", "delay.max(0)", "delay"),
    at("operations.rs", "if due == self.at { self.occasion.depth } else { 0 }", "self.occasion.depth"),
    at("operations.rs", "depth >= ZERO_TIME_DEPTH", "depth > ZERO_TIME_DEPTH"),
    at("operations.rs", "setting.timer == timer", "true"),
    at("operations.rs", "compare(test.comparison, setting.payload[usize::from(test.value)], *right)", "true"),
    at("operations.rs", "self.out.push(Output::Released { flow: self.instance.flow, length });", ""),
    at("operations.rs", "length.min(behind.len())", "behind.len()"),
    at("packets.rs", "again.is_none()", "false"),
    at("program.rs", "destination < source", "destination > source"),
    at("program.rs", "source.swap_with_slice(destination);", ""),
    at(
        "program.rs",
        "append(&flow.common) && append(&flow.source) && append(&flow.destination)",
        "append(&flow.source) && append(&flow.destination) && append(&flow.common)",
    ),
    at("program.rs", "preparation.unwrap_or_default()", "&[][..]"),
    at(
        "reference.rs",
        "compare(condition.comparison, self.read(&condition.left), self.read(&condition.right)) == expected",
        "expected",
    ),
    at("reference.rs", "*optional", "true"),
    at("reference.rs", "self.deleted = true", "()"),
    at("run.rs", "self.remove(PacketRef::Work);", ""),
    at("run.rs", "groups[1] & !groups[0] != 0", "groups[1] != 0"),
    at("run.rs", "!self.deleted", "true"),
    at("run.rs", "event == Event::Packet", "true"),
    at("run.rs", "row.and_then(|row| row.next).or(self.pending)", "self.pending.or(row.and_then(|row| row.next))"),
    at("run.rs", "self.pending = Some(next);", ""),
    at(
        "run.rs",
        "self.pending = None;\n            if self.deleted {\n                return;\n            }",
        "self.pending = None;",
    ),
    at("run.rs", "now.div_euclid(1_000_000)", "now.div_euclid(1_000)"),
    at("run.rs", "i64::from(self.instance.closed)", "0"),
    at("runtime.rs", "!self.run_due(now.after(-1), out)", "!self.run_due(now, out)"),
    at("runtime.rs", "self.earliest = self.earliest.max(now.after(1));", ""),
    at("runtime.rs", "*at <= limit", "*at < limit"),
    at(
        "runtime.rs",
        "[timer, sample, expiry].into_iter().flatten().min()",
        "[timer, sample, expiry].into_iter().flatten().min_by_key(|(at, due)| (*at, std::cmp::Reverse(*due)))",
    ),
    at("runtime.rs", "arrival.then(|| self.table.activity(at))", "Some(self.table.activity(at))"),
    at("runtime.rs", "!self.program.cell(instance.state, Event::Expire).1.is_empty()", "false"),
    at("runtime.rs", "self.table.to_evict(at)", "None"),
    at("runtime.rs", "instance.earlier + 1", "instance.earlier"),
    at("runtime.rs", "self.shared.calendar.remove(handle);", "let _ = handle;"),
    at("runtime.rs", "self.shared.ports.link(port) == Some(link)", "true"),
    at("runtime.rs", "instance.closed = true", "()"),
    at("runtime.rs", "instance.open = false", "()"),
    at("runtime.rs", "bytes.len().min(SEND_BUFFER - instance.send_buffer.len())", "bytes.len()"),
    at("runtime.rs", "instance.last_active = active;", ""),
    at("value.rs", "i128::from(index) - i128::from(table.base)", "i128::from(index)"),
    at("value.rs", "value::divides_by_zero(operator, right)", "false"),
];
