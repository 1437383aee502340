//! Points at which the fault test kills the program: a debug build started with `LAYBY_FAULT=<point>` aborts when it
//! reaches that point, `LAYBY_FAULT=<point>:2` the second time. A release build has none.

#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    };

    static ARMED: LazyLock<Option<(String, u32)>> = LazyLock::new(|| {
        let text = std::env::var("LAYBY_FAULT").ok()?;
        let (name, time) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_owned(), time.parse().unwrap_or(1)))
    });
    static REACHED: AtomicU32 = AtomicU32::new(0);

    if let Some((armed, time)) = &*ARMED
        && armed == name
        && REACHED.fetch_add(1, Ordering::SeqCst) + 1 == *time
    {
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &str) {}
