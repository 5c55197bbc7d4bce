use live::config::LinkConfig;
use live::load::{self, Bulk, Congestion, PingPong};
use live::stage::{Stage, plug};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::{Prob, Rate};
fn main() {
    let mut args = std::env::args().skip(1);
    let rootless = args.next().as_deref() == Some("rootless");
    let backend = args.next().unwrap_or("auto".into());
    let rate: Option<Rate> = args.next().and_then(|r| r.parse().ok());
    let standing = live::net::become_root_of_own_namespaces(rootless).unwrap();
    println!("{standing:?}");
    let stop = AtomicBool::new(false);
    let plain = Stage::new(1500).unwrap();
    let guarded = Stage::new(1600).unwrap();
    std::thread::scope(|scope| {
        for end in 0..2 {
            plain.address(end, plug(end)).unwrap();
        }
        plain.serve(scope, &stop).unwrap();
        let daemons: Vec<_> = (0..2)
            .map(|end| {
                let mut config = LinkConfig::new(plug(end));
                config.mtu = Some(1500);
                config.rate = rate;
                config.host = backend.parse().unwrap();
                guarded.protect(scope, end, config, move |text| println!("{end}: {text}")).unwrap()
            })
            .collect();
        println!("backend {}", daemons[0].backend);
        for end in 0..2 {
            guarded.address(end, "hit0").unwrap();
        }
        guarded.serve(scope, &stop).unwrap();
        println!("active {}", daemons[0].wait_until_active(&stop));
        plain.set_rate(rate).unwrap();
        guarded.set_rate(rate).unwrap();
        for round in 0..3 {
            for (name, stage, loss) in [
                ("clean", &plain, 0.0),
                ("chain", &guarded, 0.0),
                ("protected", &guarded, 1e-3),
                ("prot1e-2", &guarded, 1e-2),
                ("corrupting", &plain, 1e-3),
            ] {
                stage.set_loss(Prob::literal(loss)).unwrap();
                let before = stage.count().unwrap();
                let pings = if name == "corrupting" { 2_000 } else { 20_000 };
                let pp = stage.ends[0]
                    .with(|| {
                        load::pingpong::run(
                            stage.server(),
                            &PingPong {
                                count: pings,
                                size: 64,
                                congestion: Congestion::Cubic,
                                within: Duration::from_secs(60),
                            },
                            &stop,
                            &|_| {},
                        )
                    })
                    .unwrap()
                    .unwrap();
                let bulk = stage.ends[0]
                    .with(|| {
                        load::bulk::run(
                            stage.server(),
                            &Bulk {
                                duration: Duration::from_secs(2),
                                warmup: Duration::from_millis(300),
                                congestion: Congestion::Cubic,
                            },
                            &stop,
                            &|_| {},
                        )
                    })
                    .unwrap()
                    .unwrap();
                let count = stage.count().unwrap() - before;
                println!(
                    "{round} {name:10} p50 {:?} p99 {:?} p999 {:?} max {:?}  bulk {:.3} Gb/s retrans {} wire {:?}",
                    pp.p50(),
                    pp.p99(),
                    pp.p999(),
                    pp.max(),
                    bulk.bits_per_second() as f64 / 1e9,
                    bulk.retransmitted,
                    count
                );
            }
        }
        for d in daemons {
            let s = d.stop().unwrap();
            println!(
                "recovered {} given up {} p50 {:?} p99 {:?} max {:?} copies {} loss {:?}/{:?}\n{:?}",
                s.recovered,
                s.given_up,
                s.recovery_p50_us,
                s.recovery_p99_us,
                s.recovery_max_us,
                s.copies,
                s.loss_in,
                s.loss_out,
                s.counters.iter().filter(|(_, v)| **v > 0).collect::<Vec<_>>()
            );
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
