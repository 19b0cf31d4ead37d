//! Packets released by a schedule: how late each was seen to be due, and how late it left.

use crate::line::{FAR_MAC, Line, NEAR, NEAR_MAC};
use crate::observer::Observer;
use crate::on_own_thread;
use crate::usage::{Meter, Usage};
use std::hint::black_box;
use weftwire_linux::LinuxError;
use weftwire_linux::pacer::departure::DepartureSocket;
use weftwire_linux::pacer::{Departures, Place, Policy, Standing, Waiter};

/// Bytes of each frame: 1,500 of payload and the Ethernet header.
pub const FRAME: usize = 1_514;
/// `EtherType` of the frames: local experiments (IEEE 802).
const KIND: [u8; 2] = [0x88, 0xb5];
/// Where a frame has its number.
const NUMBER: usize = 14;
/// Time before the first packet, in nanoseconds.
const START: i64 = 1_000_000;
/// How long before its time a frame is handed to a kernel that holds it back, in nanoseconds.
const LEAD: i64 = 1_000_000;

/// What came of one schedule.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// How long after its time each packet was released, in nanoseconds, in the order of the schedule.
    pub released_ns: Vec<i64>,
    /// How long after its time each frame left the interface, by the kernel's time stamp; `None` if it was not seen to.
    /// Empty if nothing was watched.
    pub departed_ns: Vec<Option<i64>>,
    /// How long the calls that send took, on average, in nanoseconds.
    pub send_cost_ns: f64,
    /// Frames that the kernel refused.
    pub refused: u64,
    /// Processor time.
    pub usage: Usage,
    /// The place that the thread got.
    pub standing: Standing,
}

/// Releases a packet at each time of the schedule (nanoseconds from its start, rising), and does nothing else.
pub fn release(schedule: &[i64], policy: Policy, place: Place) -> Sweep {
    on_own_thread(|| {
        let standing = place.take();
        let (released, usage, _) = run(schedule, policy, 0, |number, _| {
            black_box(number);
        });
        Sweep { released_ns: released, usage, standing, ..Sweep::default() }
    })
}

/// Sends a frame at each time of the schedule over the line. Where the line's kernel holds frames back until their time by
/// itself, they are handed to it a millisecond before. With `watched`, the kernel tells when each frame left, which makes sending cost more.
///
/// # Errors
/// No permission, or the line's interface is gone.
pub fn send(line: &Line, schedule: &[i64], policy: Policy, place: Place, watched: bool) -> Result<Sweep, LinuxError> {
    let sent = line.near.run(|| {
        let socket = DepartureSocket::open(NEAR)?;
        let observer = if watched { Some(Observer::open(NEAR)?) } else { None };
        let lead = if matches!(socket.departures(), Departures::Honoured { .. }) { LEAD } else { 0 };
        let standing = place.take();
        let (mut frame, mut refused, mut busy) = (frame(), 0, 0);
        let mut waiter = Waiter::new(policy);
        let (released, usage, origin) = run(schedule, policy, lead, |number, deadline| {
            frame[NUMBER..NUMBER + 4].copy_from_slice(&(number as u32).to_be_bytes());
            let before = waiter.now();
            refused += u64::from(socket.send(&frame, deadline).is_err());
            busy += waiter.now() - before;
        });
        let Some(observer) = observer else {
            let send_cost = busy as f64 / schedule.len().max(1) as f64;
            return Ok(Sweep {
                released_ns: released,
                send_cost_ns: send_cost,
                refused,
                usage,
                standing,
                ..Sweep::default()
            });
        };
        let mut departed = vec![None; schedule.len()];
        let seen = observer.drain(|frame| {
            if frame.head.get(12..NUMBER) == Some(&KIND[..])
                && let Some(number) = frame.head.get(NUMBER..NUMBER + 4)
            {
                let number = number.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
                if let (Some(place), Some(time)) = (departed.get_mut(number), schedule.get(number)) {
                    *place = Some(frame.at_ns - origin - time);
                }
            }
        });
        seen.map_err(|error| LinuxError::system("see frames leave", error))?;
        let send_cost = busy as f64 / schedule.len().max(1) as f64;
        Ok(Sweep { released_ns: released, departed_ns: departed, send_cost_ns: send_cost, refused, usage, standing })
    });
    sent.map_err(|error| LinuxError::system("enter the namespace of the line", error))?
}

/// Follows the schedule, each packet `lead` early; returns how late each was, and when the schedule began.
fn run(schedule: &[i64], policy: Policy, lead: i64, mut act: impl FnMut(usize, i64)) -> (Vec<i64>, Usage, i64) {
    // Written to here, so that no page is missing later.
    let mut released = vec![i64::MIN; schedule.len()];
    let mut waiter = Waiter::new(policy);
    let meter = Meter::start();
    let origin = waiter.now() + START + lead;
    for (number, (time, late)) in schedule.iter().zip(&mut released).enumerate() {
        let deadline = origin + time;
        *late = waiter.wait_until(deadline - lead) + lead - deadline;
        act(number, deadline);
    }
    (released, meter.stop(), origin)
}

/// A frame from one end of the line to the other.
pub(crate) fn frame() -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[0..6].copy_from_slice(&FAR_MAC.octets());
    frame[6..12].copy_from_slice(&NEAR_MAC.octets());
    frame[12..14].copy_from_slice(&KIND);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn no_packet_is_early_whatever_the_policy() {
        let schedule: Vec<i64> = (0..200).map(|number| number * 10_000).collect();
        for policy in [Policy::Sleep, Policy::SleepSpin { margin: Duration::from_micros(60) }, Policy::Spin] {
            let sweep = release(&schedule, policy, Place::default());
            assert_eq!(sweep.released_ns.len(), schedule.len());
            assert!(sweep.released_ns.iter().all(|late| *late >= 0), "{policy:?}");
        }
    }
}
