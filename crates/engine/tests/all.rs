//! The tests of the engine in one program, so that what they share is compiled once. Beside it stand those that count allocations,
//! push many flows, or run the vectors alone.

#[macro_use]
mod support;

mod arrays;
mod batches;
mod corpus;
mod events;
mod executor;
mod flows;
mod live_state;
mod order;
mod random;
mod spread;
mod succession;
mod tallies;
mod turns;
