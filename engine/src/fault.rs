//! Points at which the fault test kills the program: a debug build started with `LAYBY_FAULT=<point>` aborts when it
//! reaches that point, `LAYBY_FAULT=<point>:2` the second time; with `LAYBY_FAULT=<point>:2:stop` it stands still there, as
//! after SIGSTOP, until it is told to go on. A release build has none.

#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    };

    static ARMED: LazyLock<Option<(String, u32, bool)>> = LazyLock::new(|| {
        let text = std::env::var("LAYBY_FAULT").ok()?;
        let mut parts = text.split(':');
        let name = parts.next()?.to_owned();
        let time = parts.next().and_then(|time| time.parse().ok()).unwrap_or(1);
        Some((name, time, parts.next() == Some("stop")))
    });
    static REACHED: AtomicU32 = AtomicU32::new(0);

    if let Some((armed, time, stops)) = &*ARMED
        && armed == name
        && REACHED.fetch_add(1, Ordering::SeqCst) + 1 == *time
    {
        if !stops {
            std::process::abort();
        }
        let itself = std::process::id().to_string();
        let _ = std::process::Command::new("kill").args(["-STOP", &itself]).status();
    }
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &str) {}
