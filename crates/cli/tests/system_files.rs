//! Outputs as root: device nodes stay device nodes, owners stay, and a full disk is named.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real files and mounts")]

use anyhow::{Result, ensure};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use weftwire_testbed::skip_unless_root;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

fn folder(name: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn shell(folder: &Path, command: &str) -> Result<Output> {
    Ok(Command::new("sh").args(["-c", command]).current_dir(folder).output()?)
}

fn done(folder: &Path, command: &str) -> Result<()> {
    let output = shell(folder, command)?;
    ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn compile(to: &str) -> String {
    format!("{WEFT} compile {EXAMPLES}/syn-proxy.xl --output {to}")
}

#[test]
fn a_device_node_stays_one_and_owners_stay() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["mknod", "setpriv"]) else { return Ok(()) };
    let folder = folder("devices")?;
    // The same device as /dev/null, which no test may risk.
    done(&folder, "mknod null c 1 3 && chmod 600 null && mkdir shared && chmod 1777 shared")?;
    symlink("null", folder.join("link"))?;
    for name in ["null", "link"] {
        done(&folder, &compile(name))?;
        done(&folder, &format!("{WEFT} replay {EXAMPLES}/syn-proxy.xl --port 1=none --out {name} --trace {name}"))?;
    }
    let node = fs::symlink_metadata(folder.join("null"))?;
    ensure!(node.file_type().is_char_device() && node.mode() & 0o777 == 0o600, "{node:?}");

    let file = folder.join("owned.json");
    fs::write(&file, "old")?;
    chown(&file, Some(12_345), Some(54_321))?;
    fs::set_permissions(&file, Permissions::from_mode(0o604))?;
    done(&folder, &compile("owned.json"))?;
    let after = fs::metadata(&file)?;
    ensure!((after.uid(), after.gid(), after.mode() & 0o7777) == (12_345, 54_321, 0o604), "{after:?}");
    ensure!(after.len() > 1_000);

    // Without privileges: what may not be written is not replaced, though its folder would allow it.
    fs::set_permissions(&file, Permissions::from_mode(0o444))?;
    fs::rename(&file, folder.join("shared/owned.json"))?;
    let image = folder.join("shared/owned.json");
    let before = fs::read(&image)?;
    let output = shell(
        &folder,
        &format!("setpriv --reuid 12345 --regid 54321 --clear-groups {}", compile("shared/owned.json")),
    )?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && said.contains("cannot write shared/owned.json: Permission denied"), "{said}");
    ensure!(fs::read(&image)? == before);

    // A file that may be written in a folder that may not: it is written in its place.
    fs::create_dir(folder.join("closed"))?;
    fs::write(folder.join("closed/out.json"), "old")?;
    chown(folder.join("closed/out.json"), Some(12_345), None)?;
    done(&folder, &format!("setpriv --reuid 12345 --regid 54321 --clear-groups {}", compile("closed/out.json")))?;
    ensure!(fs::read(folder.join("closed/out.json"))? == before);
    Ok(())
}

/// A file system that is unmounted when this goes.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_named_once_and_leaves_nothing() -> Result<()> {
    let Some(_turn) = skip_unless_root(&["mount", "umount"]) else { return Ok(()) };
    let folder = folder("full")?;
    let disk = folder.join("disk");
    fs::create_dir(&disk)?;
    done(&folder, "mount -t tmpfs -o size=64k tmpfs disk")?;
    let disk = Mounted(disk);
    fs::write(disk.0.join("image.json"), "old")?;
    fs::write(disk.0.join("filler"), vec![0; 56 << 10])?;
    let capture = format!("1={EXAMPLES}/captures/syn-proxy.pcapng,interface=port1");
    let network = format!("{EXAMPLES}/networks/arq.toml");
    for (command, name) in [
        (format!("{WEFT} sim {network} --out disk/out"), "cannot write "),
        (compile("disk/image.json"), "cannot write disk/image.json: "),
        (
            format!("{WEFT} replay {EXAMPLES}/syn-proxy.xl --port '{capture}' --trace disk/trace"),
            "cannot write disk/trace: ",
        ),
    ] {
        let output = shell(&folder, &command)?;
        let said = String::from_utf8(output.stderr)?;
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
        ensure!(output.status.code() == Some(1) && errors.len() == 1, "{command}: {said}");
        ensure!(errors[0].contains(name) && errors[0].contains("No space left"), "{command}: {said}");
        ensure!(errors[0].matches("cannot write").count() == 1, "{command}: {said}");
        let mut left: Vec<_> = fs::read_dir(&disk.0)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
        left.sort();
        ensure!(left == ["filler", "image.json"], "{command} left {left:?}");
        ensure!(fs::read(disk.0.join("image.json"))? == b"old");
    }
    Ok(())
}
