#![allow(clippy::all, clippy::print_stdout, clippy::disallowed_methods)]
use sim::link::*; use units::*; use faults::*;
fn main(){
  let a: Vec<String> = std::env::args().collect();
  let rate: Rate = a[1].parse().unwrap(); let loss: Prob = a[2].parse().unwrap();
  let mode = match a[3].as_str(){"o"=>Mode::Ordered,"n"=>Mode::NonBlocking,"0"=>Mode::None,"u"=>Mode::UecLlr,"a"=>Mode::Auto,_=>Mode::Both};
  let profile = if a[4]=="t"{Profile::Tofino}else{Profile::Ideal};
  let frames: Count = a[5].parse().unwrap(); let exact = a.get(6).is_some_and(|x| x=="x");
  let c = Config{rate, mode, profile, frames: frames.0, exact, forward: Schedule::always(Model::PerFrame(loss)), ..Config::default()};
  let t=std::time::Instant::now();
  let o = run(&c,&Unwatched).unwrap();
  println!("{:.2}s  lost {} eff {:.2e} speed {:?} corrupted {} recovered {} given_up {} replay {} pauses {} tx {} rx {} rec {:?} transit {:?} events {} skipped {:.3} dup {} reord {} ovf {}", t.elapsed().as_secs_f64(), o.frames_lost,o.effective_loss,o.effective_speed,o.frames_corrupted,o.recovered,o.given_up,o.retransmissions,o.pauses,o.tx_buffer_peak_bytes,o.rx_buffer_peak_bytes,o.recovery_delay_us,o.transit_us,o.events,o.frames_skipped as f64/o.frames_offered as f64,o.frames_duplicated,o.frames_reordered,o.overflows);
}
