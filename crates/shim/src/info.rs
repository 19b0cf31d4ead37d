//! `TCP_INFO`: what a machine's registers tell of a connection.

use crate::connection::Phase;
use crate::socket::Role;
use crate::{Errno, Fd, Host};
use weftwire_core::inspect::FlowDetail;

/// What is known of a connection. What no register of the machine says is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// `tcpi_state`: the number that Linux has for the state.
    pub state: Option<u8>,
    /// `tcpi_retransmits`, `tcpi_backoff`: timeouts in a row; register `backoff`.
    pub backoff: Option<u8>,
    /// `tcpi_probes`: probes of a closed window in a row; register `probes`.
    pub probes: Option<u8>,
    /// `tcpi_options`: 1 timestamps (register `stamped`), 2 SACK (`selective`), 4 window scaling (`scaling`).
    pub options: Option<u8>,
    /// `tcpi_snd_wscale`: register `peer_shift`.
    pub send_scale: Option<u8>,
    /// `tcpi_rto` in microseconds: register `timeout`, doubled for each timeout.
    pub timeout: Option<u32>,
    /// `tcpi_snd_mss` in bytes: register `mss`.
    pub segment: Option<u32>,
    /// `tcpi_unacked` in segments: from registers `una` and `next`.
    pub unacknowledged: Option<u32>,
    /// `tcpi_rtt` in microseconds: register `smoothed`.
    pub round_trip: Option<u32>,
    /// `tcpi_rttvar` in microseconds: register `deviation`.
    pub deviation: Option<u32>,
    /// `tcpi_snd_ssthresh` in segments: register `threshold`.
    pub threshold: Option<u32>,
    /// `tcpi_snd_cwnd` in segments: register `congestion_window`.
    pub window: Option<u32>,
}

/// Bytes of `struct tcp_info` up to what this module may know.
const LENGTH: usize = 104;
/// `tcpi_snd_ssthresh` of a connection that has lost nothing.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Where Linux has the numbers of states from: `include/net/tcp_states.h`.
const CLOSED: u8 = 7;
const LISTEN: u8 = 10;

/// The number of a state.
fn state_number(name: &str) -> Option<u8> {
    Some(match name {
        "established" => 1,
        "syn_sent" => 2,
        "syn_received" => 3,
        "fin_wait_1" => 4,
        "fin_wait_2" => 5,
        "time_wait" => 6,
        "closed" => CLOSED,
        "close_wait" => 8,
        "last_ack" => 9,
        "closing" => 11,
        _ => return None,
    })
}

impl TcpInfo {
    /// What a flow's registers tell.
    fn of(flow: &FlowDetail) -> TcpInfo {
        let register = |name: &str| flow.registers.iter().find(|it| it.name == name).map(|it| it.value);
        let small = |name: &str| register(name).and_then(|value| u8::try_from(value).ok());
        let micro = |value: i64| u32::try_from(value / 1_000).ok();
        let number = |value: i64| u32::try_from(value).ok();
        let segment = register("mss").filter(|mss| *mss > 0);
        let backoff = small("backoff");
        let timeout = register("timeout").and_then(|timeout| micro(timeout << backoff.unwrap_or(0).min(16)));
        let flags = [("stamped", 1), ("selective", 2), ("scaling", 4)];
        let options = flags.map(|(name, bit)| register(name).map(|on| bit * u8::from(on != 0)));
        let unacknowledged = register("next").zip(register("una")).zip(segment).map(|((next, una), segment)| {
            let bytes = (next as u32).wrapping_sub(una as u32);
            bytes.div_ceil(segment as u32)
        });
        TcpInfo {
            state: state_number(&flow.summary.state),
            backoff,
            probes: small("probes"),
            options: options.into_iter().flatten().reduce(|left, right| left | right),
            send_scale: small("peer_shift"),
            timeout,
            segment: segment.and_then(number),
            unacknowledged,
            round_trip: register("smoothed").and_then(micro),
            deviation: register("deviation").and_then(micro),
            threshold: register("threshold").zip(segment).and_then(|(bytes, segment)| {
                let threshold = number(bytes)?;
                Some(if threshold >= NO_THRESHOLD { NO_THRESHOLD } else { threshold / segment as u32 })
            }),
            window: register("congestion_window").zip(segment).and_then(|(bytes, segment)| number(bytes / segment)),
        }
    }

    /// As Linux lays `struct tcp_info` out, up to and with `tcpi_total_retrans`. What is not known is 0.
    pub fn to_bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[0] = self.state.unwrap_or(0);
        bytes[2] = self.backoff.unwrap_or(0);
        bytes[3] = self.probes.unwrap_or(0);
        bytes[4] = self.backoff.unwrap_or(0);
        bytes[5] = self.options.unwrap_or(0);
        bytes[6] = self.send_scale.unwrap_or(0) & 0x0f;
        let words = [
            (8, self.timeout),
            (16, self.segment),
            (24, self.unacknowledged),
            (68, self.round_trip),
            (72, self.deviation),
            (76, self.threshold),
            (80, self.window),
        ];
        for (at, word) in words {
            bytes[at..at + 4].copy_from_slice(&word.unwrap_or(0).to_ne_bytes());
        }
        bytes
    }

    /// A value by the name that Linux has for it, e.g. `tcpi_rtt`; `None`: no such name, or not known.
    pub fn named(&self, name: &str) -> Option<u32> {
        match name {
            "tcpi_state" => self.state.map(u32::from),
            "tcpi_retransmits" | "tcpi_backoff" => self.backoff.map(u32::from),
            "tcpi_probes" => self.probes.map(u32::from),
            "tcpi_options" => self.options.map(u32::from),
            "tcpi_snd_wscale" => self.send_scale.map(u32::from),
            "tcpi_rto" => self.timeout,
            "tcpi_snd_mss" => self.segment,
            "tcpi_unacked" => self.unacknowledged,
            "tcpi_rtt" => self.round_trip,
            "tcpi_rttvar" => self.deviation,
            "tcpi_snd_ssthresh" => self.threshold,
            "tcpi_snd_cwnd" => self.window,
            _ => None,
        }
    }
}

impl Host {
    /// What is known of a socket's connection (`TCP_INFO`).
    ///
    /// # Errors
    /// [`Errno::BadDescriptor`]; [`Errno::NotSupported`]: the socket watches others.
    pub fn tcp_info(&self, fd: Fd) -> Result<TcpInfo, Errno> {
        let only = |state| TcpInfo { state: Some(state), ..TcpInfo::default() };
        Ok(match &self.socket_of(fd)?.role {
            Role::Fresh => only(CLOSED),
            Role::Listening(_) => only(LISTEN),
            Role::Watching(_) => return Err(Errno::NotSupported),
            Role::Connected(stream) => {
                let live = self.connection(stream.flow).is_some_and(|connection| connection.phase != Phase::Ended);
                let flow = live.then(|| self.machine.flow(stream.flow)).flatten();
                flow.map_or_else(|| only(CLOSED), |flow| TcpInfo::of(&flow))
            }
        })
    }
}
