//! The frames of a capture leave a node at their times.

use super::Stage;
use crate::build::port_name;
use std::io::BufReader;
use std::sync::Arc;
use weftwire_capture::CaptureReader;
use weftwire_core::{Frame, LinkType};
use weftwire_linux::files::open_regular;
use weftwire_linux::packet_socket::PacketSocket;
use weftwire_linux::port::FramePort;
use weftwire_network::model::TrafficKind;

/// Sends the capture of a traffic; in the node's namespace. The file is read as it goes.
pub(crate) fn send(stage: &Arc<Stage>, number: usize) -> Result<(), String> {
    let traffic = &stage.network.traffic[number];
    let TrafficKind::Capture { file, port } = &traffic.kind else { return Ok(()) };
    let path = stage.base.join(file);
    let failed = |error: &dyn std::fmt::Display| format!("traffic `{}`: {}: {error}", traffic.name, path.display());
    let mut reader = CaptureReader::new(BufReader::new(open_regular(&path).map_err(|error| failed(&error))?))
        .map_err(|error| failed(&error))?;
    let mut socket = PacketSocket::open(&port_name(*port)).map_err(|error| failed(&error))?;
    let mut first = None;
    while let Some(record) = reader.next_record().map_err(|error| failed(&error))? {
        let at = traffic.start.nanoseconds() + record.time.since(*first.get_or_insert(record.time));
        if reader.interfaces().get(record.interface).is_none_or(|from| from.link != LinkType::Ethernet) {
            return Err(failed(&"its frames are not Ethernet's"));
        }
        if at > traffic.stop.nanoseconds() || !stage.wait_until(at) {
            break;
        }
        stage.begins(at);
        socket.send(&[Frame::new(&record.bytes)]);
    }
    let errors: u64 = socket.counters().send_errors.iter().map(|(_, count)| count).sum();
    if errors > 0 {
        stage.warn(format!("traffic `{}`: {errors} frames of the capture could not be sent", traffic.name));
    }
    Ok(())
}
