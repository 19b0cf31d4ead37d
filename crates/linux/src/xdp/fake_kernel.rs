//! Queues whose kernel is the test: what the memory of AF_XDP ports goes through, also under Miri.

use super::queue::{Queue, Received, Rings};
use super::shared::tests::{from_kernel, to_kernel};
use super::shared::{Consumer, Mapping, PIECE, Producer};
use super::umem::{Umem, UmemLender};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use weftwire_core::Buffer;
use weftwire_core::buffer::{HEADROOM, Pool};

/// Chunks of these tests.
const CHUNKS: usize = 8;
const RING: u32 = 8;

/// The other ends of a queue's rings.
struct Kernel {
    umem: &'static Umem,
    fill: ManuallyDrop<Consumer<u64>>,
    receive: ManuallyDrop<Producer<libc::xdp_desc>>,
    send: ManuallyDrop<Consumer<libc::xdp_desc>>,
    completion: ManuallyDrop<Producer<u64>>,
}

impl Kernel {
    fn with_queue(umem: &'static Umem) -> (Queue, Kernel) {
        let (fill, kernel_fill) = to_kernel(RING);
        let (receive, kernel_receive) = from_kernel(RING);
        let (send, kernel_send) = to_kernel(RING);
        let (completion, kernel_completion) = from_kernel(RING);
        let kernel = Kernel {
            umem,
            fill: kernel_fill,
            receive: kernel_receive,
            send: kernel_send,
            completion: kernel_completion,
        };
        let mut queue = Queue::new(umem, Rings { fill, receive, send, completion });
        queue.begin();
        (queue, kernel)
    }

    /// A frame comes in, if there is a chunk to receive into.
    fn receive(&mut self, frame: &[u8]) -> bool {
        let Some(chunk) = self.fill.take() else { return false };
        self.fill.release();
        let address = chunk + HEADROOM as u64;
        self.umem.area().kernel_writes(address, frame);
        self.describe(address, frame.len() as u32);
        true
    }

    fn describe(&mut self, address: u64, length: u32) {
        assert!(self.receive.put(libc::xdp_desc { addr: address, len: length, options: 0 }));
        self.receive.publish();
    }

    /// Looks at the next frame that is to be sent.
    fn take(&mut self) -> Option<(u64, Vec<u8>)> {
        let entry = self.send.take()?;
        self.send.release();
        Some((entry.addr, self.umem.area().kernel_reads(entry.addr, entry.len as usize)))
    }

    /// The frame at this address is sent.
    fn complete(&mut self, address: u64) {
        assert!(self.completion.put(address));
        self.completion.publish();
    }
}

/// A memory of the test's own, which lasts as long as the process, as Miri wants to see.
fn umem() -> &'static Umem {
    static ALL: Mutex<Vec<&'static Umem>> = Mutex::new(Vec::new());
    // Nobody else maps it: Miri knows no memory of files.
    let umem = Umem::on(File::open("/dev/null").unwrap().into(), Mapping::anonymous(CHUNKS * PIECE).unwrap());
    ALL.lock().unwrap().push(umem);
    umem
}

fn receive(queue: &mut Queue) -> (Vec<Buffer>, u64) {
    let mut received: Vec<Received> = Vec::new();
    let unusable = queue.receive(&mut queue_state(queue), 32, &mut received);
    (received.into_iter().map(|(chunk, frame)| Buffer::lent(chunk, frame).unwrap()).collect(), unusable)
}

fn queue_state(queue: &Queue) -> std::sync::MutexGuard<'static, super::umem::State> {
    queue.umem().state()
}

fn send(queue: &mut Queue, frame: &[u8]) -> bool {
    let address = queue.umem().address_of(frame).expect("it lies in the memory");
    let sent = queue.send(&mut queue_state(queue), address, frame.len());
    queue.rings.send.publish();
    sent
}

fn free(umem: &Umem) -> usize {
    umem.state().free()
}

#[test]
fn a_frame_is_received_changed_and_sent_where_it_lies() {
    let umem = umem();
    let (mut queue, mut kernel) = Kernel::with_queue(umem);
    queue.refill(&mut umem.state(), CHUNKS);
    assert_eq!(free(umem), CHUNKS / 2);
    assert!(kernel.receive(b"a frame"));
    let (mut frames, unusable) = receive(&mut queue);
    assert_eq!((frames.len(), unusable, &frames[0][..]), (1, 0, &b"a frame"[..]));
    let mut frame = frames.remove(0);
    assert_eq!(frame.headroom(), HEADROOM);
    frame.prepend(b"changed: ");
    let place = umem.address_of(&frame);
    assert!(send(&mut queue, &frame));
    // The kernel has not yet looked, and the function is done with it.
    Pool::default().give_back(frame);
    let before = free(umem);
    let (address, bytes) = kernel.take().unwrap();
    assert_eq!((&bytes[..], Some(address)), (&b"changed: a frame"[..], place));
    kernel.complete(address);
    assert_eq!(free(umem), before);
    queue.complete(&mut umem.state());
    assert_eq!(free(umem), before + 1);
}

#[test]
fn a_frame_is_free_when_the_last_port_has_sent_it() {
    let umem = umem();
    let (mut one, mut kernel_one) = Kernel::with_queue(umem);
    let (mut two, mut kernel_two) = Kernel::with_queue(umem);
    let mut pool = Pool::default();
    pool.borrow_from(Box::new(UmemLender(umem)));
    let [mut first, mut second] = [pool.take(10), pool.take(10)];
    first.extend_from_slice(b"first");
    second.extend_from_slice(b"second");
    assert_eq!(free(umem), CHUNKS - 2);
    for frame in [&first, &second] {
        assert!(send(&mut one, frame) && send(&mut two, frame));
    }
    // Twice by the same port.
    assert!(send(&mut two, &first));
    let [at_first, at_second] = [&first, &second].map(|frame| umem.address_of(frame).unwrap());
    pool.give_back(first);
    drop(second);
    let turn = |queue: &mut Queue, kernel: &mut Kernel, address| {
        while kernel.take().is_some() {}
        kernel.complete(address);
        queue.complete(&mut umem.state());
        free(umem)
    };
    assert_eq!(turn(&mut two, &mut kernel_two, at_second), CHUNKS - 2);
    assert_eq!(turn(&mut one, &mut kernel_one, at_second), CHUNKS - 1);
    assert_eq!(turn(&mut two, &mut kernel_two, at_first), CHUNKS - 1);
    assert_eq!(turn(&mut one, &mut kernel_one, at_first), CHUNKS - 1);
    // Nobody sends that one any more: once too often does no harm.
    assert_eq!(turn(&mut one, &mut kernel_one, at_first), CHUNKS - 1);
    assert_eq!(turn(&mut two, &mut kernel_two, at_first), CHUNKS);
}

#[test]
fn what_the_kernel_can_not_mean_does_no_harm() {
    let umem = umem();
    let (mut queue, mut kernel) = Kernel::with_queue(umem);
    queue.refill(&mut umem.state(), CHUNKS);
    let chunk = kernel.fill.take().unwrap();
    kernel.fill.release();
    kernel.describe(u64::MAX, 60);
    kernel.describe((CHUNKS * PIECE) as u64, 60);
    // A chunk that it has not got.
    kernel.describe((0..CHUNKS as u64).map(|number| number * PIECE as u64).find(|at| *at < chunk).unwrap_or(0), 60);
    kernel.describe(chunk + 1, PIECE as u32);
    kernel.complete(chunk);
    kernel.complete(u64::MAX);
    queue.complete(&mut umem.state());
    let (frames, unusable) = receive(&mut queue);
    assert_eq!((frames.len(), unusable), (0, 4));
    assert_eq!(free(umem), CHUNKS / 2 + 1, "the chunk came back");
}

#[test]
fn queues_share_the_memory_and_leave_half_of_it() {
    let umem = umem();
    let (mut one, mut kernel_one) = Kernel::with_queue(umem);
    let (mut two, mut kernel_two) = Kernel::with_queue(umem);
    for _ in 0..3 {
        one.refill(&mut umem.state(), CHUNKS);
        two.refill(&mut umem.state(), CHUNKS);
        assert_eq!(free(umem), CHUNKS / 2);
    }
    for kernel in [&mut kernel_one, &mut kernel_two] {
        assert!(kernel.receive(b"1") && kernel.receive(b"2") && !kernel.receive(b"3"));
    }
    let kept = receive(&mut one).0;
    one.refill(&mut umem.state(), CHUNKS);
    assert!(kernel_one.receive(b"3"));
    assert_eq!(kept.iter().map(|frame| frame[0]).collect::<Vec<_>>(), b"12");
}

#[test]
fn all_memory_comes_back_from_a_queue_that_ends() {
    let umem = umem();
    let (mut queue, mut kernel) = Kernel::with_queue(umem);
    queue.refill(&mut umem.state(), CHUNKS);
    assert!(kernel.receive(b"kept") && kernel.receive(b"unread"));
    let kept = receive(&mut queue).0.remove(0);
    assert!(send(&mut queue, &kept));
    drop(queue);
    assert_eq!(free(umem), CHUNKS - 1);
    assert_eq!(&kept[..], b"kept");
    drop(kept);
    assert_eq!((free(umem), umem.state().queues), (CHUNKS, 0));
}

#[test]
fn frames_that_were_not_looked_at_are_withdrawn() {
    let umem = umem();
    let (mut queue, mut kernel) = Kernel::with_queue(umem);
    let mut pool = Pool::default();
    pool.borrow_from(Box::new(UmemLender(umem)));
    for number in 0..5 {
        let mut frame = pool.take(10);
        frame.extend_from_slice(&[number]);
        assert!(send(&mut queue, &frame));
    }
    assert_eq!(free(umem), CHUNKS - 5);
    let (address, _) = kernel.take().unwrap();
    assert_eq!(queue.withdraw(&mut umem.state()), 4);
    assert_eq!(free(umem), CHUNKS - 1);
    kernel.complete(address);
    queue.complete(&mut umem.state());
    assert_eq!((free(umem), kernel.take()), (CHUNKS, None));
}

/// Any order of events: every chunk is in one place at a time, and in the end all are free.
#[test]
fn no_order_of_events_loses_or_doubles_a_chunk() {
    let runs = if cfg!(miri) { 2 } else { 200 };
    for seed in 0..runs {
        let mut random = seed;
        let mut choose = |most: usize| {
            // Knuth's multiplier.
            random = u64::wrapping_add(u64::wrapping_mul(random, 6_364_136_223_846_793_005), 1_442_695_040_888_963_407);
            (random >> 33) as usize % most
        };
        let umem = umem();
        let mut ports = [Kernel::with_queue(umem), Kernel::with_queue(umem)];
        let (mut lent, mut on_the_wire) = (Vec::<(Buffer, u8)>::new(), [Vec::new(), Vec::new()]);
        for step in 0..200_u8 {
            let at = choose(2);
            let (queue, kernel) = &mut ports[at];
            match choose(6) {
                0 => queue.refill(&mut umem.state(), CHUNKS),
                1 => {
                    kernel.receive(&[step; 60]);
                }
                2 => lent.extend(receive(queue).0.into_iter().map(|frame| {
                    let mark = frame[0];
                    (frame, mark)
                })),
                3 if !lent.is_empty() => {
                    let (frame, mark) = &lent[choose(lent.len())];
                    assert!(
                        frame.iter().all(|byte| byte == mark),
                        "seed {seed}: somebody has written into a lent chunk"
                    );
                    send(queue, frame);
                }
                4 if !lent.is_empty() => drop(lent.swap_remove(choose(lent.len()))),
                _ => {
                    on_the_wire[at].extend(kernel.take());
                    if !on_the_wire[at].is_empty() {
                        let (address, bytes) = on_the_wire[at].swap_remove(choose(on_the_wire[at].len()));
                        let now = umem.area().kernel_reads(address, bytes.len());
                        assert_eq!(now, bytes, "seed {seed}: somebody has written what is being sent");
                        kernel.complete(address);
                    }
                    queue.complete(&mut umem.state());
                }
            }
        }
        drop(ports);
        assert_eq!(free(umem), CHUNKS - lent.len(), "seed {seed}");
        drop(lent);
        assert_eq!(free(umem), CHUNKS, "seed {seed}");
    }
}
