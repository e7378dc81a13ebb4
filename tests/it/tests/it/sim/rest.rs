//! Whether the threads of heartbeats have anything left to do.

/// Whether no heartbeat thread runs, or is about to: it says so itself only once it waits for its
/// timer. Until it has a name of its own, it has that of the thread which started it.
#[cfg(target_os = "linux")]
pub(super) fn heartbeats_rest() -> bool {
    let name = |text: &str| text.chars().take(15).collect::<String>();
    let own = std::thread::current().name().map(name);
    let names = [Some(name("idempotent-heartbeats")), own];
    let threads = std::fs::read_dir("/proc/self/task").expect("threads are listed");
    let running = threads.filter(|thread| {
        let path = thread.as_ref().map(|thread| thread.path().join("stat"));
        // A thread that has ended meanwhile has no such file.
        let stat = path
            .ok()
            .and_then(|path| std::fs::read_to_string(path).ok());
        let stat = stat.unwrap_or_default();
        let Some((name, state)) = stat
            .split_once('(')
            .and_then(|(_, stat)| stat.rsplit_once(") "))
        else {
            return false;
        };
        names.contains(&Some(name.to_owned())) && !state.starts_with('S')
    });
    // This one runs.
    running.count() <= 1
}

#[cfg(not(target_os = "linux"))]
pub(super) fn heartbeats_rest() -> bool {
    true
}
