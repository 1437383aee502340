use std::process::ExitCode;

/// A busy server allocates a lot of small things at once; the system's allocator showed in every profile.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    server::cli::main()
}
