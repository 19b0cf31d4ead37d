//! Scripts in packetdrill's style: what they say, the packets they tell of, and what a host does with them.

pub mod packet;
pub mod run;
pub mod script;
