//! What must always be true, each test a promise of the design.

mod agents;
mod claims;
mod peers;
mod people;
mod slots;
