//! What must always be true, each test a promise of the design.

mod agents;
mod approvals;
mod claims;
mod clocks;
mod forms;
mod handing;
mod kinds;
mod model;
mod peers;
mod people;
mod slots;
