pub mod situation;
pub mod world;
