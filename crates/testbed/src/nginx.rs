//! A web server of a test's own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process::{Running, wait_for};
use crate::{Namespace, Payload};

/// An nginx in a namespace, on port 80, with files of its own in a temporary folder.
/// Both are gone when this is dropped.
pub struct Nginx {
    process: Running,
    folder: Folder,
}

impl Nginx {
    /// Starts the server and waits until it accepts connections. It serves `payloads` by their file names.
    ///
    /// # Errors
    ///
    /// If the files cannot be written or nginx does not come up.
    pub fn start(namespace: &Namespace, payloads: &[&Payload]) -> Result<Nginx> {
        let folder = Folder(std::env::temp_dir().join(format!("{}-nginx", namespace.name())));
        let files = folder.0.join("files");
        fs::create_dir_all(&files).with_context(|| files.display().to_string())?;
        for payload in payloads {
            let name = payload.path.file_name().context("a payload has a file name")?;
            std::os::unix::fs::symlink(fs::canonicalize(&payload.path)?, files.join(name))?;
        }
        fs::write(folder.0.join("nginx.conf"), configuration(&folder.0))?;
        let process = serve(namespace, &folder.0)?;
        Ok(Nginx { process, folder })
    }

    /// Kills the server without a goodbye and starts it anew, as after a crash.
    ///
    /// # Errors
    ///
    /// If it does not come up again.
    pub fn restart(self, namespace: &Namespace) -> Result<Nginx> {
        let Nginx { process, folder } = self;
        process.kill();
        let process = serve(namespace, &folder.0)?;
        Ok(Nginx { process, folder })
    }

    /// The process number of the server's master.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// A folder that is removed with all that is in it when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays in the system's folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn serve(namespace: &Namespace, folder: &Path) -> Result<Running> {
    let folder = folder.to_str().context("the temporary folder's path is not UTF-8")?;
    let mut process = namespace.spawn(&["nginx", "-e", "stderr", "-p", folder, "-c", "nginx.conf"])?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
    let up = wait_for("nginx to accept connections", Duration::from_secs(10), || {
        !process.is_running() || namespace.connect(local, Duration::from_secs(1)).is_ok_and(|it| it.is_ok())
    });
    if up.is_err() || !process.is_running() {
        let output = process.stop()?;
        bail!("nginx does not come up: {}{}", output.stdout, output.stderr);
    }
    Ok(process)
}

fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "\
user root;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 80 backlog=4096;
        root {folder}/files;
    }}
}}
"
    )
}
