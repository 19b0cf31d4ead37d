//! The language of the scripts: a part of packetdrill's.
//!
//! ```text
//! // A comment. The first one says what the script shows.
//! --ip_version=ipv6                      only over IPv6, or over ipv4
//! --offer_stamps=0                       an initial value of a register, or another parameter of the shim
//!
//! 0     socket(..., SOCK_STREAM, IPPROTO_TCP) = 3        at this second
//! +.01  listen(3, 1) = 0                                 so many seconds after what came before
//! +0...0.2 accept(3, ..., ...) = 4                       a call that waits, until 0.2 s after what came before
//! +0    < S 0:0(0) win 65535 <mss 1460>                  a segment arrives
//! +0    > S. 0:0(0) ack 1 <...>                          a segment leaves, whatever its options
//! +.2~+.3 > . 1:1001(1000) ack 1                         it leaves between these two times
//! +0    < icmp unreachable port [0:0(0)]                 what ICMP says of a segment: net, host, port or too_big MTU
//! +1    silence                                          nothing leaves until then
//! ```
//!
//! Sequence numbers count from the initial one of this end, and for the other end as they are written. Segments with `#2` are of
//! another connection than those without. What scripts do not say of a segment that leaves (its window, PSH, whether a reset
//! acknowledges) is not looked at; the order of options and their padding is free. Scripts run over both families; over IPv6
//! an MSS of 1460 that leaves is 1440.

use super::packet::{Segment, TcpOption};
use weft_shim::Family;

pub struct Script {
    /// What the first comment says.
    pub shows: String,
    /// The only family that it is about.
    pub family: Option<Family>,
    pub parameters: Vec<String>,
    pub events: Vec<(usize, Event)>,
}

pub struct Event {
    pub when: When,
    pub what: What,
}

/// Seconds, as nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct When {
    pub relative: bool,
    pub at: i64,
    /// The end of a range.
    pub latest: Option<i64>,
    /// When a call that waits is over.
    pub over: Option<i64>,
}

pub enum What {
    Arrives(usize, Segment),
    Error(Error, Segment),
    Leaves(usize, Segment),
    Silence,
    Call(SystemCall),
}

/// What ICMP says.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    Net,
    Host,
    Port,
    TooBig(u16),
}

pub struct SystemCall {
    pub name: String,
    pub arguments: Vec<String>,
    pub result: i64,
    pub error: Option<String>,
}

impl Script {
    pub fn parse(text: &str) -> Result<Script, String> {
        let mut script = Script { shows: String::new(), family: None, parameters: Vec::new(), events: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(comment) = line.strip_prefix("//") {
                if script.shows.is_empty() {
                    script.shows = comment.trim().into();
                }
            } else if let Some(option) = line.strip_prefix("--") {
                match option {
                    "ip_version=ipv4" => script.family = Some(Family::V4),
                    "ip_version=ipv6" => script.family = Some(Family::V6),
                    _ => script.parameters.push(option.into()),
                }
            } else if !line.is_empty() {
                let code = line.split("//").next().unwrap_or(line).trim();
                let event = event(code).map_err(|error| format!("line {}: {error}: {line}", number + 1))?;
                script.events.push((number + 1, event));
            }
        }
        Ok(script)
    }
}

fn event(line: &str) -> Result<Event, String> {
    let (time, what) = line.split_once(char::is_whitespace).ok_or("a time and an event")?;
    let what = what.trim();
    let what = if let Some(error) = what.strip_prefix("< icmp unreachable ") {
        let (error, range) = error.split_once('[').ok_or("the segment that it is about")?;
        let words: Vec<&str> = error.split_whitespace().collect();
        let error = match words[..] {
            ["net"] => Error::Net,
            ["host"] => Error::Host,
            ["port"] => Error::Port,
            ["too_big", mtu] => Error::TooBig(number(mtu)?),
            _ => return Err(format!("`{error}`: write net, host, port or too_big MTU")),
        };
        let (_, segment) = segment_of(&format!(". {}", range.trim_end_matches(']')))?;
        What::Error(error, segment)
    } else if let Some(segment) = what.strip_prefix('<') {
        let (connection, segment) = segment_of(segment)?;
        What::Arrives(connection, segment)
    } else if let Some(segment) = what.strip_prefix('>') {
        let (connection, segment) = segment_of(segment)?;
        What::Leaves(connection, segment)
    } else if what == "silence" {
        What::Silence
    } else {
        What::Call(call(what)?)
    };
    Ok(Event { when: when(time)?, what })
}

fn when(text: &str) -> Result<When, String> {
    let relative = text.starts_with('+');
    let seconds = |text: &str| {
        let value = text.trim_start_matches('+').parse::<f64>().map_err(|_| format!("`{text}` is no time"))?;
        Ok::<i64, String>((value * 1e9).round() as i64)
    };
    let mut when = When { relative, at: 0, latest: None, over: None };
    if let Some((from, to)) = text.split_once("...") {
        (when.at, when.over) = (seconds(from)?, Some(seconds(to)?));
    } else if let Some((from, to)) = text.split_once('~') {
        (when.at, when.latest) = (seconds(from)?, Some(seconds(to)?));
    } else {
        when.at = seconds(text)?;
    }
    Ok(when)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

/// `#2 S. 0:0(0) ack 1 win 100 <mss 1460>`.
fn segment_of(text: &str) -> Result<(usize, Segment), String> {
    let (text, options) = match text.split_once('<') {
        Some((text, options)) => (text, options.strip_suffix('>').ok_or("`>` behind the options")?),
        None => (text, ""),
    };
    let mut words = text.split_whitespace().peekable();
    let connection = match words.next_if(|word| word.starts_with('#')) {
        Some(word) => number(&word[1..])?,
        None => 1,
    };
    let mut segment = Segment { flags: words.next().ok_or("flags")?.replace('-', ""), ..Segment::default() };
    let range = words.next().ok_or("sequence numbers")?;
    let (start, rest) = range.split_once(':').ok_or("FIRST:LAST(LENGTH)")?;
    let (end, length) = rest.split_once('(').ok_or("FIRST:LAST(LENGTH)")?;
    (segment.sequence, segment.length) = (number(start)?, number(length.trim_end_matches(')'))?);
    if segment.sequence.wrapping_add(segment.length as u32) != number::<u32>(end)? {
        return Err("the length does not fit the sequence numbers".into());
    }
    while let Some(word) = words.next() {
        let value = words.next().ok_or("a value")?;
        match word {
            "ack" => segment.acknowledgment = Some(number(value)?),
            "win" => segment.window = Some(number(value)?),
            _ => return Err(format!("`{word}`: write ack or win")),
        }
    }
    segment.options = match options {
        "..." => None,
        _ => Some(options.split(',').map(str::trim).filter(|it| !it.is_empty()).map(option).collect::<Result<_, _>>()?),
    };
    Ok((connection, segment))
}

fn option(text: &str) -> Result<TcpOption, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words[..] {
        ["mss", bytes] => TcpOption::Mss(number(bytes)?),
        ["wscale", shift] => TcpOption::Scale(number(shift)?),
        ["sackOK"] => TcpOption::SackPermitted,
        ["nop"] => TcpOption::Nop,
        ["eol"] => TcpOption::End,
        ["TS", "val", value, "ecr", echo] => TcpOption::Timestamps(number(value)?, number(echo)?),
        ["sack", ref blocks @ ..] => {
            let mut all = [None; 4];
            for (at, block) in blocks.iter().enumerate() {
                let (left, right) = block.split_once(':').ok_or("LEFT:RIGHT")?;
                *all.get_mut(at).ok_or("at most four blocks")? = Some((number(left)?, number(right)?));
            }
            TcpOption::Sack(all)
        }
        _ => return Err(format!("`{text}` is no option of TCP that scripts have")),
    })
}

/// `name(argument, [argument], {a, b}) = result ERROR (words)`.
fn call(text: &str) -> Result<SystemCall, String> {
    let open = text.find('(').ok_or("a call, a segment or silence")?;
    let mut depth = 0;
    let close = text[open..].char_indices().find(|(_, letter)| {
        depth += match letter {
            '(' | '[' | '{' => 1,
            ')' | ']' | '}' => -1,
            _ => 0,
        };
        depth == 0
    });
    let close = open + close.ok_or("`)`")?.0;
    let mut arguments = vec![String::new()];
    let mut depth = 0;
    for letter in text[open + 1..close].chars() {
        depth += match letter {
            '(' | '[' | '{' => 1,
            ')' | ']' | '}' => -1,
            _ => 0,
        };
        match arguments.last_mut() {
            Some(last) if letter != ',' || depth > 0 => last.push(letter),
            _ => arguments.push(String::new()),
        }
    }
    let (result, error) = match text[close + 1..].trim().strip_prefix('=') {
        Some(result) => {
            let mut words = result.split_whitespace();
            let result = number(words.next().ok_or("a result")?)?;
            (result, words.next().filter(|word| !word.starts_with('(')).map(str::to_owned))
        }
        None => (0, None),
    };
    let arguments = arguments.iter().map(|argument| argument.trim().to_owned()).collect();
    Ok(SystemCall { name: text[..open].trim().into(), arguments, result, error })
}
