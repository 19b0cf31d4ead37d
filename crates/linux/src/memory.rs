//! How much memory this process may still take.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that this process may still take: what the machine has available with its swap, what its control groups allow,
/// and its limit of addresses (`ulimit -v`), the least of them. `None` if nothing is known.
pub fn available() -> Option<u64> {
    [available_to_all(), addresses()].into_iter().flatten().min()
}

/// Bytes that this process, its children and the kernel may still take for them: of the machine and of control groups.
pub fn available_to_all() -> Option<u64> {
    [machine(), groups()].into_iter().flatten().min()
}

fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((kilobytes("MemAvailable")? + kilobytes("SwapFree").unwrap_or(0)) * 1024)
}

/// Of the control group and all above it.
fn groups() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let found = text.lines().filter_map(|line| {
        let (front, path) = line.split_once("::").or_else(|| line.split_once(":memory:"))?;
        let (root, most, used) = match line.contains("::") && front == "0" {
            true => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            false => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        };
        Path::new(path).ancestors().filter_map(|group| left(&Path::new(root).join(below(group)), most, used)).min()
    });
    found.min()
}

fn below(group: &Path) -> PathBuf {
    group.strip_prefix("/").map_or_else(|_| group.to_owned(), Path::to_owned)
}

/// What a control group may still take. Its caches of files can be had back.
fn left(group: &Path, most: &str, used: &str) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let most: u64 = read(most)?.trim().parse().ok()?;
    let used: u64 = read(used)?.trim().parse().ok()?;
    let caches = read("memory.stat").unwrap_or_default();
    let caches = caches.lines().filter_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        ["inactive_file", "active_file"].contains(&name).then(|| bytes.parse::<u64>().ok())?
    });
    Some(most.saturating_sub(used.saturating_sub(caches.sum())))
}

fn addresses() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one `rlimit`, which outlives the call.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    if result != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let pages: u64 = fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    // SAFETY: no pointers.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    Some(limit.rlim_cur.saturating_sub(pages * page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_known() {
        let available = available().unwrap();
        assert!(available > 1 << 20 && available <= machine().unwrap(), "{available}");
    }

    #[test]
    fn a_group_has_what_it_does_not_use_and_its_caches() {
        let folder = std::env::temp_dir().join(format!("weft-memory-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("max", "1000\n");
        write("used", "900\n");
        assert_eq!(left(&folder, "max", "used"), Some(100));
        write("memory.stat", "anon 500\ninactive_file 30\nactive_file 20\nshmem 9\n");
        assert_eq!(left(&folder, "max", "used"), Some(150));
        write("max", "max\n");
        assert_eq!(left(&folder, "max", "used"), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
