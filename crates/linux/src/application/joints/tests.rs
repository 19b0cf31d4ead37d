use super::*;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use weftwire_core::inspect::Inspect;
use weftwire_core::{Arrivals, Change, Command, Connections, Deadline, Function, MacAddress, ORPHAN, Outbox};

/// A function whose flows take `room` bytes each and keep what they were told.
#[derive(Default)]
struct Told {
    flows: u64,
    room: usize,
    written: Vec<u8>,
    closed: bool,
    aborted: bool,
    abandoned: bool,
    consumed: usize,
}

impl Function for Told {
    fn frames(&mut self, _: Time, arrivals: &mut Arrivals, _: &mut Outbox) {
        arrivals.clear();
    }

    fn control(&mut self, _: Time, command: Command, _: &mut Outbox) {
        self.abandoned |=
            matches!(&command.change, Change::SetRegister { register, value: 1, .. } if register == ORPHAN);
    }

    fn fire(&mut self, _: Time, _: &mut Outbox) {}

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        None
    }
}

impl Inspect for Told {}

impl Connections for Told {
    fn connect(&mut self, _: Time, endpoints: &Endpoints, _: &mut Outbox) -> Result<FlowId, CallError> {
        if endpoints.local_port == 1 {
            return Err(CallError::TableFull);
        }
        self.flows += 1;
        Ok(FlowId(self.flows))
    }

    fn write(&mut self, _: Time, _: FlowId, bytes: &[u8], _: &mut Outbox) -> Result<usize, CallError> {
        let count = bytes.len().min(self.room);
        self.room -= count;
        self.written.extend(&bytes[..count]);
        Ok(count)
    }

    fn close(&mut self, _: Time, _: FlowId, _: &mut Outbox) -> Result<(), CallError> {
        self.closed = true;
        Ok(())
    }

    fn abort(&mut self, _: Time, _: FlowId, _: &mut Outbox) -> Result<(), CallError> {
        self.aborted = true;
        Ok(())
    }

    fn consumed(&mut self, _: Time, _: FlowId, length: usize, _: &mut Outbox) -> Result<(), CallError> {
        self.consumed += length;
        Ok(())
    }
}

/// A side that opens connections, and keeps how they end.
#[derive(Default)]
struct Opens {
    wanted: Vec<Wanted>,
    ended: Vec<(Outcome, Totals)>,
}

impl Side for Opens {
    const SEES_OFF: bool = false;

    fn wants(&self) -> bool {
        !self.wanted.is_empty()
    }

    fn next_wanted(&mut self) -> Option<Wanted> {
        self.wanted.pop()
    }

    fn refused(&mut self, _: Wanted, error: CallError) -> Result<(), LinuxError> {
        Err(error.into())
    }

    fn takes(&mut self, connections: usize, _: usize) -> bool {
        connections == 0
    }

    fn end_for(&mut self, _: Option<&Endpoints>) -> io::Result<Option<End>> {
        Ok(None)
    }

    fn over(&mut self, _: u64, _: Option<Endpoints>, outcome: Outcome, totals: Totals) {
        self.ended.push((outcome, totals));
    }

    fn is_over(&self) -> bool {
        true
    }
}

/// A connection on the way, and who is at its end.
struct Scene {
    function: Told,
    out: Outbox,
    joints: Joints<Opens>,
    user: UnixStream,
}

const FLOW: FlowId = FlowId(1);

impl Scene {
    fn new(within: Option<Duration>) -> Scene {
        let (own, user) = UnixStream::pair().unwrap();
        user.set_nonblocking(true).unwrap();
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        let endpoints = Endpoints {
            protocol: 6,
            local_address: address,
            local_port: 0,
            remote_address: address,
            remote_port: 80,
            local_mac: MacAddress::UNSPECIFIED,
            remote_mac: MacAddress::UNSPECIFIED,
            vlan: None,
        };
        let wanted = Wanted { endpoints, within, end: End::local(own).unwrap() };
        let joints = Joints::new(Opens { wanted: vec![wanted], ..Opens::default() }).unwrap();
        let mut scene = Scene { function: Told::default(), out: Outbox::new(), joints, user };
        let Scene { function, out, joints, .. } = &mut scene;
        joints.connect(&mut Calls { function, now: Time::ZERO, out }).unwrap();
        scene
    }

    /// Works until nothing is left to do.
    fn work_at(&mut self, now: Time) {
        let Scene { function, out, joints, .. } = self;
        for _ in 0..10_000 {
            // What a turn asks for may be told in the next one.
            let more = joints.work(&mut Calls { function, now, out });
            if !more && !joints.work(&mut Calls { function, now, out }) {
                return;
            }
        }
        panic!("it never has enough");
    }

    fn work(&mut self) {
        self.work_at(Time::ZERO);
    }

    fn ended(&self) -> Option<&(Outcome, Totals)> {
        self.joints.side.ended.first()
    }
}

#[test]
fn nothing_is_read_that_the_flow_does_not_take() {
    let mut scene = Scene::new(None);
    scene.function.room = 1_000;
    scene.user.write_all(&[7; 50_000]).unwrap();
    scene.work();
    assert_eq!(scene.function.written.len(), 1_000);
    // The socket fills up behind what was read once.
    let mut more = 0;
    while let Ok(count) = scene.user.write(&[7; 10_000]) {
        more += count;
        scene.work();
        assert!(more < 10_000_000, "all of it is read");
    }
    scene.function.room = usize::MAX;
    scene.joints.released(FLOW, 1_000);
    scene.work();
    assert_eq!(scene.function.written.len(), 50_000 + more);
}

#[test]
fn what_is_not_read_is_not_consumed() {
    let mut scene = Scene::new(None);
    scene.joints.delivered(FLOW, &[7; 4_000_000]);
    scene.work();
    let consumed = scene.function.consumed;
    assert!(consumed < 1_000_000, "{consumed} bytes went into a socket that nobody reads");
    let mut read = vec![0; 65_536];
    let mut total = 0;
    while total < 4_000_000 {
        total += scene.user.read(&mut read).unwrap();
        scene.work();
    }
    assert_eq!(scene.function.consumed, 4_000_000);
}

#[test]
fn a_pipe_is_filled_without_waiting() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let again = crate::system::pipe_without_waiting(&File::from(OwnedFd::from(writer.try_clone().unwrap()))).unwrap();
    let mut scene = Scene::new(None);
    let end = End::files(File::open("/dev/null").unwrap(), again);
    scene.joints.joints.get_mut(&FLOW).unwrap().attach(end, &scene.joints.readiness);
    scene.joints.delivered(FLOW, &[7; 1_000_000]);
    scene.work();
    // As much as a pipe takes, at once, and not a page at a time; and it does not wait for the reader.
    assert_eq!(scene.function.consumed, 65_536);
    assert!(crate::system::may_wait(writer.as_fd()), "whoever shares the pipe sees no change");
    let (mut read, mut total) = (vec![0; 65_536], 0);
    while total < 1_000_000 {
        total += reader.read(&mut read).unwrap();
        scene.work();
    }
    assert_eq!(scene.function.consumed, 1_000_000);
}

#[test]
fn a_connection_is_closed_when_both_directions_are_and_everything_was_acknowledged() {
    let mut scene = Scene::new(None);
    scene.function.room = 100;
    scene.joints.notified(FLOW, "established");
    scene.user.write_all(b"question").unwrap();
    scene.user.shutdown(std::net::Shutdown::Write).unwrap();
    scene.work();
    assert!(scene.function.closed && scene.ended().is_none());
    scene.joints.delivered(FLOW, b"answer");
    scene.joints.notified(FLOW, "finished");
    scene.work();
    let mut answer = String::new();
    scene.user.read_to_string(&mut answer).unwrap();
    assert!(answer == "answer" && scene.ended().is_none(), "nothing was acknowledged");
    scene.joints.released(FLOW, 8);
    scene.work();
    let Some((Outcome::Closed, totals)) = scene.ended() else { panic!("{:?}", scene.ended()) };
    assert_eq!(*totals, Totals { sent: 8, unacknowledged: 0, received: 6, unwritten: 0 });
    assert!(scene.joints.is_over() && !scene.function.aborted);
}

/// A connection that nobody would read any more need not wait for its other end: the function is told, and may end it.
#[test]
fn a_connection_without_reader_is_abandoned() {
    let mut scene = Scene::new(None);
    scene.joints.notified(FLOW, "established");
    scene.user.shutdown(std::net::Shutdown::Write).unwrap();
    scene.work();
    assert!(scene.function.closed && !scene.function.abandoned, "it still reads");
    drop(std::mem::replace(&mut scene.user, UnixStream::pair().unwrap().0));
    scene.work();
    assert!(scene.function.abandoned && scene.ended().is_none(), "the other end may still finish");
    scene.joints.ended(FLOW);
    scene.work();
    assert!(matches!(scene.ended(), Some((Outcome::Closed, _))), "{:?}", scene.ended());

    // Data has come and gone before: its writer has been told that there is room.
    let mut scene = Scene::new(None);
    scene.joints.notified(FLOW, "established");
    scene.joints.delivered(FLOW, b"answer");
    scene.work();
    scene.user.read_exact(&mut [0; 6]).unwrap();
    drop(std::mem::replace(&mut scene.user, UnixStream::pair().unwrap().0));
    scene.work();
    assert!(scene.function.closed && scene.function.abandoned && !scene.function.aborted);
}

#[test]
fn what_came_before_a_reset_is_passed_on() {
    let mut scene = Scene::new(None);
    scene.joints.notified(FLOW, "established");
    scene.joints.delivered(FLOW, b"before");
    scene.joints.notified(FLOW, "reset");
    scene.joints.ended(FLOW);
    scene.work();
    let mut text = String::new();
    scene.user.read_to_string(&mut text).unwrap();
    assert!(text == "before" && matches!(scene.ended(), Some((Outcome::Reset, _))), "{:?}", scene.ended());
    assert!(!scene.function.aborted, "it is gone");
}

#[test]
fn an_end_that_fails_breaks_the_connection_off() {
    let mut scene = Scene::new(None);
    drop(std::mem::replace(&mut scene.user, UnixStream::pair().unwrap().0));
    scene.joints.delivered(FLOW, b"nobody reads this");
    scene.work();
    assert!(scene.function.aborted && matches!(scene.ended(), Some((Outcome::Broken(_), _))), "{:?}", scene.ended());
}

#[test]
fn a_flow_that_ends_without_a_word_is_lost_unless_all_was_said() {
    let mut scene = Scene::new(None);
    scene.joints.notified(FLOW, "established");
    scene.joints.ended(FLOW);
    scene.work();
    assert!(matches!(scene.ended(), Some((Outcome::Lost, _))), "{:?}", scene.ended());
    let mut scene = Scene::new(None);
    scene.joints.notified(FLOW, "unreachable");
    scene.work();
    assert!(scene.ended().is_none(), "it may pass");
    scene.joints.ended(FLOW);
    scene.work();
    assert!(matches!(scene.ended(), Some((Outcome::Unreachable, _))), "{:?}", scene.ended());
    // A machine that says nothing of its connections.
    let mut scene = Scene::new(None);
    scene.joints.ended(FLOW);
    scene.work();
    assert!(matches!(scene.ended(), Some((Outcome::Closed, _))), "{:?}", scene.ended());
}

#[test]
fn a_connection_that_is_not_open_in_time_is_given_up() {
    let limit = Time::ZERO.after(1_000);
    let mut scene = Scene::new(Some(Duration::from_micros(1)));
    assert_eq!(scene.joints.deadline(), Some(limit));
    scene.work_at(limit);
    assert!(scene.function.aborted && matches!(scene.ended(), Some((Outcome::NotOpened, _))), "{:?}", scene.ended());
    assert_eq!(scene.joints.deadline(), None);
    let mut scene = Scene::new(Some(Duration::from_micros(1)));
    scene.joints.notified(FLOW, "established");
    scene.work_at(limit);
    assert!(scene.ended().is_none() && scene.joints.deadline().is_none());
}

#[test]
fn a_machine_that_nobody_can_hold_up_is_cut_off() {
    let mut scene = Scene::new(None);
    for _ in 0..70 {
        scene.joints.delivered(FLOW, &vec![7; 1 << 20]);
    }
    scene.work();
    assert!(scene.function.aborted, "more than it may hold");
}
