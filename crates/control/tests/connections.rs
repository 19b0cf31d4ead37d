//! Who may come in, by TLS and by number: the right certificate and a free place, and a line that says what is wrong otherwise.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of a platform: files and sockets")]

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use weftwire_control::follow::Follower;
use weftwire_control::keeper::{Keeper, KeeperOptions};
use weftwire_control::server::{Limits, Listener, serve};
use weftwire_control::state::{Network, formats_digest};
use weftwire_control::store::Store;
use weftwire_control::table::{FieldOrder, FollowedTable};
use weftwire_control::tls::{self, Files, TlsError};
use weftwire_control::{Address, Client, ClientError};
use weftwire_core::Port;
use weftwire_linux::reach::Reach;
use weftwire_route::{Settings, fat_tree};
use weftwire_subscribe::MessageFormats;
use weftwire_text::SourceMap;
use weftwire_workload::ITCH_FORMATS;

const LIMIT: Duration = Duration::from_secs(20);

/// A folder of a test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("connections-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn formats() -> Arc<MessageFormats> {
    Arc::new(MessageFormats::read("formats", ITCH_FORMATS, &mut SourceMap::default(), &mut Vec::new()).unwrap())
}

/// A controller that runs in this process, and what it says.
struct Running {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    address: Address,
    said: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(folder: &Path, listen: Address, tls: Option<tls::Server>, limits: Limits) -> Running {
        let network = Network {
            topology: fat_tree(4).unwrap(),
            settings: Settings::default(),
            policy: "tested".into(),
            formats: formats(),
            formats_digest: formats_digest(ITCH_FORMATS),
            notes: Vec::new(),
        };
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let saying = said.clone();
        let listener = Listener::open(&listen, None).unwrap().limited(limits);
        let listener = listener.reporting(move |line| saying.lock().unwrap().push(line));
        let address = listener.address().clone();
        let listener = match tls {
            Some(tls) => listener.secured(tls),
            None => listener,
        };
        let store = Store::open(&folder.join("store"), 7).unwrap();
        let started = Keeper::start(network, store, KeeperOptions::default()).unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving =
            tokio::spawn(async move { serve(started, listener, async { drop(stopped.await) }).await.unwrap() });
        Running { stop, serving, address, said }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.serving.await.unwrap();
    }

    /// What the controller says, once it says something with these words.
    async fn hears(&self, words: &str) -> String {
        let find = || self.said.lock().unwrap().iter().find(|line| line.contains(words)).cloned();
        let heard = async {
            loop {
                match find() {
                    Some(line) => return line,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        tokio::time::timeout(LIMIT, heard).await.expect(words)
    }

    /// Asks, and says what is wrong if there is no answer.
    async fn ask(&self, tls: Option<&tls::Client>) -> Result<(), ClientError> {
        Client::connect(&self.address, tls).await?.topology().await.map(drop)
    }

    async fn refuses(&self, tls: Option<&tls::Client>, expected: &str) {
        let error = self.ask(tls).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, ClientError::Insecure { .. }) && text.contains(expected), "{expected}: {text}");
        assert!(!text.contains('\n'), "{text}");
    }
}

fn tcp() -> Address {
    Address::Tcp("127.0.0.1:0".to_owned())
}

/// An authority and its certificate's file.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = folder.join(format!("{name}.pem"));
        fs::write(&file, issuer.pem()).unwrap();
        Authority { issuer, file }
    }

    /// Files of an end with a certificate for a name; the other end's is to be from `trusted`.
    fn files(&self, name: &str, is_valid: bool, trusted: &Authority) -> Files {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = if is_valid { date_time_ymd(2100, 1, 1) } else { date_time_ymd(2001, 1, 1) };
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let stem = self.file.with_extension("").display().to_string();
        let [certificate_file, key_file] =
            ["certificate", "key"].map(|what| PathBuf::from(format!("{stem}-{name}-{is_valid}-{what}.pem")));
        fs::write(&certificate_file, certificate.pem()).unwrap();
        fs::write(&key_file, key.serialize_pem()).unwrap();
        Files { certificate: certificate_file, key: key_file, authority: trusted.file.clone() }
    }
}

fn client(files: Files) -> tls::Client {
    tls::Client::open(files).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_certificates_of_the_authority_come_in_and_each_refusal_says_why() {
    let folder = folder("tls");
    let (own, other) = (Authority::new(&folder, "own"), Authority::new(&folder, "other"));
    let server = tls::Server::open(own.files("127.0.0.1", true, &own)).unwrap();
    let running = Running::start(&folder, tcp(), Some(server), Limits::default());

    let right = client(own.files("alice", true, &own));
    running.ask(Some(&right)).await.unwrap();
    // A switch follows by the same certificates.
    let follower = Follower {
        address: running.address.clone(),
        tls: Some(right),
        reach: Reach::default(),
        switch: "pod1-edge1".to_owned(),
        formats: formats_digest(ITCH_FORMATS),
    };
    let mut table = FollowedTable::new(formats(), FieldOrder::Chosen, (1..=4).map(Port));
    follower.fetch(&mut table).await.unwrap();

    let of_other = client(other.files("alice", true, &own));
    running.refuses(Some(&of_other), "does not trust the authority of this end's certificate").await;
    let trusts_other = client(own.files("alice", true, &other));
    running.refuses(Some(&trusts_other), "not from the authority that was given for it").await;
    let expired = client(own.files("alice", false, &own));
    running.refuses(Some(&expired), "says that this end's certificate has expired").await;
    running.refuses(None, "give --tls-cert, --tls-key and --server-ca").await;
    running.hears("refused 127.0.0.1:").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_another_one_is_not_trusted() {
    let folder = folder("servers");
    let own = Authority::new(&folder, "own");
    let right = client(own.files("alice", true, &own));
    for (name, is_valid, expected) in [
        ("elsewhere.example", true, "is not for `127.0.0.1` but for "),
        ("127.0.0.1", false, "the controller's certificate has expired"),
    ] {
        let server = tls::Server::open(own.files(name, is_valid, &own)).unwrap();
        let running = Running::start(&folder, tcp(), Some(server), Limits::default());
        running.refuses(Some(&right), expected).await;
        running.stop().await;
    }
    let plain = Running::start(&folder, tcp(), None, Limits::default());
    plain.refuses(Some(&right), "the controller does not speak TLS").await;
    plain.ask(None).await.unwrap();
    plain.stop().await;
}

/// A client without a certificate, as other programs may be.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_certificate_is_refused() {
    let folder = folder("none");
    let own = Authority::new(&folder, "own");
    let server = tls::Server::open(own.files("127.0.0.1", true, &own)).unwrap();
    let running = Running::start(&folder, tcp(), Some(server), Limits::default());
    let mut roots = RootCertStore::empty();
    roots.add(own.issuer.as_ref().der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(running.address.to_string()).await.unwrap();
    let name = "127.0.0.1".try_into().unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let error = stream.read_u8().await.unwrap_err();
    let reason = tls::explain(&error, "the controller").unwrap();
    assert_eq!(reason, "the controller wants a certificate of this end, and got none");
    drop(stream);
    let said = running.hears("shown no certificate").await;
    assert!(said.ends_with("the client has shown no certificate"), "{said}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_were_replaced_hold_for_the_next_connection() {
    let folder = folder("rotation");
    let (old, new) = (Authority::new(&folder, "old"), Authority::new(&folder, "new"));
    let files = old.files("127.0.0.1", true, &old);
    let server = tls::Server::open(files.clone()).unwrap();
    let running = Running::start(&folder, tcp(), Some(server), Limits::default());
    let (with_old, with_new) = (client(old.files("alice", true, &old)), client(new.files("alice", true, &new)));
    running.ask(Some(&with_old)).await.unwrap();
    running.refuses(Some(&with_new), "not from the authority").await;
    let replaced = new.files("127.0.0.1", true, &new);
    // A certificate without its key is not taken.
    fs::copy(&replaced.certificate, &files.certificate).unwrap();
    running.ask(Some(&with_old)).await.unwrap();
    fs::copy(&replaced.key, &files.key).unwrap();
    fs::copy(&replaced.authority, &files.authority).unwrap();
    running.ask(Some(&with_new)).await.unwrap();
    let error = running.ask(Some(&with_old)).await.unwrap_err();
    assert!(matches!(error, ClientError::Insecure { .. }), "{error}");
    running.hears("this is not the key of the certificate").await;
    running.stop().await;
}

#[test]
fn files_that_do_not_do_are_told() {
    let folder = folder("files");
    let own = Authority::new(&folder, "own");
    let files = own.files("a", true, &own);
    let empty = folder.join("empty");
    fs::write(&empty, "nothing").unwrap();
    let says = |files: Files, expected: &str| {
        for error in [tls::Server::open(files.clone()).unwrap_err(), tls::Client::open(files).unwrap_err()] {
            assert!(error.to_string().contains(expected), "{expected}: {error}");
        }
    };
    says(Files { key: folder.join("absent"), ..files.clone() }, "absent: No such file");
    says(Files { certificate: empty.clone(), ..files.clone() }, "empty has no certificate; a PEM file");
    says(Files { authority: empty.clone(), ..files.clone() }, "-----BEGIN CERTIFICATE-----");
    says(Files { key: empty, ..files.clone() }, "has no private key");
    says(Files { key: own.files("b", true, &own).key, ..files.clone() }, "not the key of the certificate in");
    fs::write(&files.certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert!(matches!(tls::Server::open(files), Err(TlsError::Unfit { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_and_idle_connections_lock_nobody_out() {
    let folder = folder("silent");
    let limits = Limits { connections: 4, ..Limits::default() };
    let running = Running::start(&folder, Address::Unix(folder.join("socket")), None, limits);
    let Address::Unix(path) = &running.address else { unreachable!("it is a Unix socket") };
    let silent: Vec<_> =
        std::iter::repeat_with(|| std::os::unix::net::UnixStream::connect(path).unwrap()).take(8).collect();
    // One that watches keeps its place, however many idle ones come.
    let watcher = Client::connect(&running.address, None).await.unwrap();
    let mut watch = watcher.watch().await.unwrap();
    watch.message().await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..8 {
        let client = Client::connect(&running.address, None).await.unwrap();
        client.topology().await.unwrap();
        idle.push(client);
    }
    let wanted = weftwire_control::protocol::Subscription { host: "pod1-host1".into(), filter: "true".into() };
    idle[7].subscribe(vec![wanted]).await.unwrap();
    assert_eq!(watch.message().await.unwrap().unwrap().changes.len(), 1);
    // An idle client that has lost its connection makes another one.
    idle[0].topology().await.unwrap();
    // When all places are busy, one that comes is let go at once.
    let mut watches = Vec::new();
    for client in &idle[..3] {
        let mut watch = client.watch().await.unwrap();
        watch.message().await.unwrap();
        watches.push(watch);
    }
    let late = async { Client::connect(&running.address, None).await?.topology().await };
    let late = tokio::time::timeout(LIMIT, late).await.expect("it does not wait");
    assert!(late.is_err());
    drop((silent, watches, watch));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_begin_in_time_is_let_go() {
    let folder = folder("slow");
    let own = Authority::new(&folder, "own");
    let limits = Limits { opening: Duration::from_millis(50), ..Limits::default() };
    for tls in [None, Some(tls::Server::open(own.files("127.0.0.1", true, &own)).unwrap())] {
        let running = Running::start(&folder, tcp(), tls, limits);
        let Address::Tcp(place) = running.address.clone() else { unreachable!("it is a TCP socket") };
        let ended = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(place).unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            // Either kind of end will do, and the protocol's own farewell before it.
            stream.read_to_end(&mut Vec::new()).is_ok_and(|_| true)
        });
        assert!(ended.await.unwrap());
        running.stop().await;
    }
}
