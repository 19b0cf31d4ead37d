//! The SYN proxy, packet by packet: what kernels would only show as a connection that works or does not.

mod ends;
mod full_table;
mod guesses;
mod handshake;
mod proxy;
mod server_opens;
mod translation;
