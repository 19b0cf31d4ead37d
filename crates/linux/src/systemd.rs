//! What the service manager is told (sd_notify(3)), if one is there.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells the service manager at this address, which is what the environment's `NOTIFY_SOCKET` says, that this process is the service's main
/// one from now on. Does not wait.
///
/// # Errors
/// Nobody is there, or takes it.
pub(crate) fn tell_main_process(address: &OsStr) -> io::Result<()> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(format!("MAINPID={}", std::process::id()).as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_wherever_it_listens() {
        let number = std::process::id();
        let path = std::env::temp_dir().join(format!("weft-notify-{number}"));
        let name = format!("@weft-notify-{number}");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name[1..]).unwrap()).unwrap();
        for (listens, address) in [(by_path, path.as_os_str()), (by_name, OsStr::new(&name))] {
            tell_main_process(address).unwrap();
            let mut bytes = [0; 64];
            let length = listens.recv(&mut bytes).unwrap();
            assert_eq!(bytes[..length], *format!("MAINPID={number}").as_bytes());
        }
        std::fs::remove_file(&path).unwrap();
        assert!(tell_main_process(path.as_os_str()).is_err());
    }
}
