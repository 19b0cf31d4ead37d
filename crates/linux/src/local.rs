//! Unix sockets of this machine: where they are, and who is at the other end (unix(7)).
//!
//! Root's are below `/run/weft`, those of a user below `$XDG_RUNTIME_DIR/weft`, and nobody else may change a folder on
//! the way there: so nobody else can take a name, stand in the way of one, or pose as a service. Each service has a
//! folder of its own, which belongs to the user that the service becomes, and a lock on its name beside the folder. Where a
//! path is given by hand, the place may be one of anybody's; therefore every client also asks the kernel who listens.

use crate::error::LinuxError;
use crate::privileges::{User, is_root, own_uid, sudo_uid};
use crate::system::{check, set_option, socket};
use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// The folder of root's services.
pub const ROOT: &str = "/run/weft";

/// The folder of all runs, below that of root or of the user.
const RUNS: &str = "runs";
/// A name is looked at again so often, this far apart, before it counts as taken: whoever sweeps holds it for a moment.
const LOOKS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(5);

/// What listens on a socket of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service<'a> {
    /// A run of this name: its control socket.
    Run(&'a str),
    /// The controller of subscriptions.
    Controller,
}

impl Service<'_> {
    /// The service's folder below that of all services, and the socket's name in it.
    fn place(self) -> (PathBuf, &'static str) {
        match self {
            Service::Run(name) => (Path::new(RUNS).join(plain(name)), "control.sock"),
            Service::Controller => (PathBuf::from("controller"), "grpc.sock"),
        }
    }
}

/// A name as a folder may have it.
fn plain(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '_' };
    let name: String = name.chars().map(plain).take(64).collect();
    if name.is_empty() { "_".into() } else { name }
}

/// Where a service of root, or of this user, listens if nobody says otherwise.
///
/// # Errors
/// [`LinuxError::NoRunTimeDirectory`].
pub fn socket_of(service: Service<'_>) -> Result<PathBuf, LinuxError> {
    let (folder, name) = service.place();
    Ok(base()?.join(folder).join(name))
}

/// The control sockets of this user's runs and of root's, living or dead.
pub fn sockets_of_runs() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = folders_of_runs();
    folders.retain(|folder| fs::symlink_metadata(folder).is_ok_and(|data| data.is_dir()));
    let runs = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut sockets: Vec<PathBuf> = runs.map(|run| run.path().join("control.sock")).collect();
    sockets.retain(|socket| fs::symlink_metadata(socket).is_ok_and(|data| data.file_type().is_socket()));
    sockets.sort_unstable();
    sockets
}

/// The folders of this user's runs and of root's.
pub fn folders_of_runs() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = base().ok().into_iter().chain([PathBuf::from(ROOT)]).collect();
    folders.dedup();
    folders.iter().map(|folder| folder.join(RUNS)).collect()
}

/// The folder of all services of root, or of this user.
fn base() -> Result<PathBuf, LinuxError> {
    if is_root() {
        return Ok(PathBuf::from(ROOT));
    }
    let given = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|given| given.is_absolute());
    let usual = || Some(PathBuf::from(format!("/run/user/{}", own_uid()))).filter(|usual| usual.is_dir());
    given.or_else(usual).map(|directory| directory.join("weft")).ok_or(LinuxError::NoRunTimeDirectory)
}

/// A service's name and folder, which are its alone as long as this value lives.
#[derive(Debug)]
pub struct Place {
    folder: PathBuf,
    socket: PathBuf,
    lock: NameLock,
    /// Folder and lock go with this value.
    own: bool,
}

impl Place {
    /// Takes a service's name, and makes its folder anew. What services left that were killed, or could not remove all as
    /// they had given up their privileges, goes. Waits for nobody.
    ///
    /// # Errors
    /// [`LinuxError::NameTaken`]; [`LinuxError::UnsafeFolder`] if others may change the folders on the way;
    /// [`LinuxError::NoRunTimeDirectory`], [`LinuxError::System`].
    pub fn take(service: Service<'_>) -> Result<Place, LinuxError> {
        let base = base()?;
        let (folder, socket) = service.place();
        Place::take_below(&base, &base.join(folder), socket)
    }

    fn take_below(base: &Path, folder: &Path, socket: &str) -> Result<Place, LinuxError> {
        let failed = |error| LinuxError::system(format!("make the folder {}", folder.display()), error);
        own_folder(base)?;
        let parent = folder.parent().filter(|parent| *parent != base);
        if let Some(parent) = parent {
            own_folder(parent)?;
        }
        let lock = NameLock::take(folder)?.ok_or_else(|| LinuxError::NameTaken {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path: folder.join(socket).display().to_string(),
        })?;
        if let Some(parent) = parent {
            sweep(parent);
        }
        clear(folder).map_err(failed)?;
        // Root's folders may be passed by users to whom the socket belongs, and read by nobody.
        let mode = if is_root() { 0o711 } else { 0o700 };
        DirBuilder::new().mode(mode).create(folder).map_err(failed)?;
        fs::set_permissions(folder, Permissions::from_mode(mode)).map_err(failed)?;
        Ok(Place { folder: folder.to_owned(), socket: folder.join(socket), lock, own: true })
    }

    /// Where the service is to listen.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The name and folder of another process, by its lock. They are that one's until [`Place::own`].
    pub fn inherit(socket: &Path, lock: OwnedFd) -> Place {
        let folder = socket.parent().unwrap_or(socket).to_owned();
        let lock = NameLock { path: folder.with_extension("lock"), _file: lock };
        Place { folder, socket: socket.to_owned(), lock, own: false }
    }

    /// The lock, for a process that is to go on with the name.
    ///
    /// # Errors
    /// The kernel has no descriptor left.
    pub fn share_lock(&self) -> io::Result<OwnedFd> {
        self.lock._file.try_clone()
    }

    /// Says whether name and folder are this process's, and go with this value.
    pub fn own(&mut self, own: bool) {
        self.own = own;
    }

    /// Gives the folder to the user that the service becomes, so that it can remove its socket.
    ///
    /// # Errors
    /// [`LinuxError::System`].
    pub fn give_to(&self, user: User) -> Result<(), LinuxError> {
        lchown(&self.folder, Some(user.uid), Some(user.gid))
            .map_err(|error| LinuxError::system(format!("give the folder {} away", self.folder.display()), error))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        // Without privileges neither can be removed any more; the next service to start does it.
        if clear(&self.folder).is_ok() {
            self.lock.remove();
        }
    }
}

/// Makes a folder that nobody but this user may change, or sees that it is one.
pub fn own_folder(path: &Path) -> Result<(), LinuxError> {
    let failed = |error| LinuxError::system(format!("make the folder {}", path.display()), error);
    let unsafe_folder = |path: &Path, reason| LinuxError::UnsafeFolder { path: path.display().to_string(), reason };
    // Who may write to the folder above may put another one in the place of this one.
    if let Some(above) = path.parent() {
        let data = fs::metadata(above).map_err(failed)?;
        if ![0, own_uid()].contains(&data.uid()) || data.mode() & 0o022 != 0 && data.mode() & libc::S_ISVTX == 0 {
            return Err(unsafe_folder(above, "others may change it"));
        }
    }
    let mode = if is_root() { 0o755 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(path) {
        // Whatever the process's mask took away.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    let data = fs::symlink_metadata(path).map_err(failed)?;
    match data {
        data if !data.is_dir() => Err(unsafe_folder(path, "it is no folder")),
        data if data.uid() != own_uid() => Err(unsafe_folder(path, "it belongs to another user")),
        data if data.mode() & 0o022 != 0 => Err(unsafe_folder(path, "others may change it")),
        _ => Ok(()),
    }
}

/// Removes a folder, or whatever else stands there, and does not follow symbolic links.
fn clear(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Removes the folders and locks of services that are gone.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let dead = path.extension().is_some_and(|extension| extension == "lock");
        let folder = path.with_extension("");
        // Neither is an error: a service that is there holds its lock, and what can't be removed stays.
        if dead
            && let Ok(Some(lock)) = NameLock::try_take(&folder)
            && clear(&folder).is_ok()
        {
            lock.remove();
        }
    }
}

/// A lock on the name of a folder, by the file `FOLDER.lock`. It goes with the process.
#[derive(Debug)]
struct NameLock {
    path: PathBuf,
    _file: OwnedFd,
}

impl NameLock {
    /// The lock, or `None` if another process has it.
    fn take(folder: &Path) -> Result<Option<NameLock>, LinuxError> {
        for look in 0..LOOKS {
            if look > 0 {
                sleep(BETWEEN);
            }
            if let Some(lock) = NameLock::try_take(folder)? {
                return Ok(Some(lock));
            }
        }
        Ok(None)
    }

    fn try_take(folder: &Path) -> Result<Option<NameLock>, LinuxError> {
        let path = folder.with_extension("lock");
        lock_file(&path)
            .map(|file| file.map(|file| NameLock { path: path.clone(), _file: file }))
            .map_err(|error| LinuxError::system(format!("lock {}", path.display()), error))
    }

    /// Removes the file. To be called while the lock is held.
    fn remove(&self) {
        // Without the right to it stays, and is found free.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens and locks a file, which is made if it is not there. `None`: another process has the lock, or the file was
/// removed just now.
pub(crate) fn lock_file(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file: File =
        OpenOptions::new().read(true).write(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    // SAFETY: takes numbers.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let same = fs::symlink_metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|own| own.ino() == there.ino()));
    Ok(same.then(|| file.into()))
}

/// Somebody listens on a socket who is neither root nor this user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "user {uid} listens there, who is neither you nor root, and might pose as another; \
     if that is whom you want, run this as that user"
)]
pub struct StrangePeer {
    /// The user's number.
    pub uid: u32,
}

/// Connects to a socket on which root or this user listens, or, for root, the user who called `sudo`. Waits no longer
/// than `patience` until the connection is taken; so long writing may take later, too.
///
/// # Errors
/// As of [`UnixStream::connect`]; of the kind [`io::ErrorKind::TimedOut`] if nobody takes the connection; a
/// [`StrangePeer`].
pub fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let socket = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    let limit = libc::timeval {
        tv_sec: patience.as_secs().cast_signed(),
        // Zero would be without limit.
        tv_usec: i64::from(patience.subsec_micros().max(1)),
    };
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDTIMEO, &limit)?;
    connect_by(&socket, path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, format!("nobody took the connection within {patience:?}"))
        }
        _ => error,
    })?;
    let uid = peer(&socket)?;
    let trusted = [0, own_uid()].contains(&uid) || is_root() && sudo_uid() == Some(uid);
    if trusted { Ok(socket.into()) } else { Err(io::Error::other(StrangePeer { uid })) }
}

/// Whether somebody listens on a socket. Does not wait.
pub fn is_alive(path: &Path) -> bool {
    let Ok(socket) = socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0) else { return false };
    // So many wait already that there is no place for one more: then somebody listens.
    connect_by(&socket, path).map_or_else(|error| error.kind() == io::ErrorKind::WouldBlock, |()| true)
}

fn connect_by(socket: &OwnedFd, path: &Path) -> io::Result<()> {
    // SAFETY: sockaddr_un is plain data for which all zeros is valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a socket's path has 1 to 107 bytes"));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    loop {
        // SAFETY: the kernel reads `length` bytes of the address.
        match check(unsafe { libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop),
        }
    }
}

/// The user at the other end of a connection: of a listener, who he was when he began to listen.
pub(crate) fn peer(socket: &impl AsRawFd) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `peer`.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut peer).cast(),
            &mut length,
        )
    })?;
    Ok(peer.uid)
}

/// A socket's file, which goes with this value.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl SocketFile {
    /// The file of a socket that another process listened on before.
    pub(crate) fn of(path: &Path) -> SocketFile {
        SocketFile(path.to_owned())
    }

    /// The file stays: another process listens there now.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone already, or belong to a folder in which this user may remove nothing.
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens on a socket that is for this user alone, or for `owner` if this is root; and for root. One left by a process that
/// is dead is replaced. Does not wait.
///
/// # Errors
/// [`LinuxError::SocketInUse`], [`LinuxError::NoSocket`] if something else has the name, [`LinuxError::System`].
pub fn listen(path: &Path, owner: Option<User>) -> Result<(UnixListener, SocketFile), LinuxError> {
    let failed = |error| LinuxError::system(format!("listen on {}", path.display()), error);
    if fs::symlink_metadata(path).is_ok_and(|data| !data.file_type().is_socket()) {
        return Err(LinuxError::NoSocket(path.display().to_string()));
    }
    if is_alive(path) {
        return Err(LinuxError::SocketInUse(path.display().to_string()));
    }
    // It gets its name once nobody else may open it. Until then it has one that no other socket has, of this process either.
    static EARLY: AtomicU64 = AtomicU64::new(0);
    let number = EARLY.fetch_add(1, Ordering::Relaxed);
    let early = SocketFile(path.with_file_name(format!(".{}-{number}", std::process::id())));
    let listener = UnixListener::bind(&early.0).map_err(failed)?;
    fs::set_permissions(&early.0, Permissions::from_mode(0o600)).map_err(failed)?;
    if let Some(owner) = owner.filter(|_| is_root()) {
        lchown(&early.0, Some(owner.uid), Some(owner.gid)).map_err(failed)?;
    }
    fs::rename(&early.0, path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok((listener, SocketFile(path.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// A folder of a test's own, below one that is safe.
    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Home {
            let home = env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
            DirBuilder::new().mode(0o700).create(&home).unwrap();
            Home(home)
        }

        fn take(&self, name: &str) -> Result<Place, LinuxError> {
            let base = self.0.join("weft");
            Place::take_below(&base, &base.join(RUNS).join(name), "control.sock")
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_name_is_taken_once_whatever_stands_in_its_place() {
        let home = Home::new("place");
        let place = home.take("twin").unwrap();
        assert!(home.take("twin").unwrap_err().to_string().contains("`twin` is active already"));
        drop(place);
        let runs = home.0.join("weft").join(RUNS);
        assert_eq!(fs::read_dir(&runs).unwrap().count(), 0, "nothing is left");

        // What killed runs left, or a bug: a socket, a symbolic link to what must stay, and a pipe.
        let precious = home.0.join("precious");
        fs::create_dir(&precious).unwrap();
        fs::create_dir(runs.join("other")).unwrap();
        fs::write(runs.join("other.lock"), "").unwrap();
        std::os::unix::fs::symlink(&precious, runs.join("twin")).unwrap();
        let place = home.take("twin").unwrap();
        assert!(precious.is_dir() && !runs.join("other").exists() && !runs.join("other.lock").exists());
        assert!(place.socket().parent().unwrap().read_dir().unwrap().next().is_none());
    }

    /// Sockets of one process and folder that come to be at once.
    #[test]
    fn sockets_do_not_stand_in_each_others_way() {
        let home = Home::new("early");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let home = &home.0;
                scope.spawn(move || {
                    for round in 0..50 {
                        drop(listen(&home.join(format!("{thread}-{round}.sock")), None).unwrap());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&home.0).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn folders_that_others_may_change_are_refused() {
        let home = Home::new("unsafe");
        let weft = home.0.join("weft");
        fs::create_dir(&weft).unwrap();
        fs::set_permissions(&weft, Permissions::from_mode(0o1777)).unwrap();
        let error = home.take("run").unwrap_err().to_string();
        assert!(error.contains("others may change it"), "{error}");
        fs::remove_dir(&weft).unwrap();
        fs::write(&weft, "").unwrap();
        assert!(home.take("run").unwrap_err().to_string().contains("it is no folder"));
        fs::remove_file(&weft).unwrap();
        fs::set_permissions(&home.0, Permissions::from_mode(0o777)).unwrap();
        assert!(home.take("run").unwrap_err().to_string().contains("others may change it"));
    }

    #[test]
    fn a_listener_that_takes_nobody_holds_nobody_up() {
        let home = Home::new("hung");
        let path = home.0.join("socket");
        // One waits, as the queue's length says, and one more has no place.
        let socket = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        // SAFETY: takes numbers; a second call changes the length of the queue.
        check(unsafe { libc::listen(listener.as_raw_fd(), 0) }).unwrap();
        connect_by(&socket, &path).unwrap();
        let start = Instant::now();
        assert!(is_alive(&path));
        let error = connect(&path, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(start.elapsed() < Duration::from_secs(10));
        assert!(matches!(listen(&path, None), Err(LinuxError::SocketInUse(_))));
    }

    #[test]
    fn only_sockets_are_replaced() {
        let home = Home::new("fifo");
        let path = home.0.join("pipe");
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a valid C string.
        check(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }).unwrap();
        let error = listen(&path, None).unwrap_err().to_string();
        assert!(error.contains("is there and is no socket"), "{error}");
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        // A listener that is closed without its file being removed: what a killed run leaves.
        drop(UnixListener::bind(&path).unwrap());
        let (_listener, file) = listen(&path, None).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(connect(&path, Duration::from_secs(5)).is_ok());
        drop(file);
        assert!(!path.exists());
    }
}
