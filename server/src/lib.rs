//! The program around the engine and the pages: configuration, the private Postgres, HTTP, the command line.

pub mod cli;
pub mod database;
pub mod http;
mod keys;
pub mod postgres;
pub mod serve;
