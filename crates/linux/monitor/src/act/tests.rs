//! A monitor that acts, by the messages that reach it and what it then asks of its host.

mod orders;
mod ports;
mod protection;
mod story;
