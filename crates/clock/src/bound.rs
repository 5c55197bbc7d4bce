//! What a clock may be wrong by: ε over time (Eq. 3.1), and intervals that contain the truth.
