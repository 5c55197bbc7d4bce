//! Flow sizes that papers measured, as knots of their cumulative distributions.
//!
//! Bytes, and the percent of flows that are no larger. Read off the published figures; each table names its paper.

/// Alizadeh et al., DCTCP (SIGCOMM'10), web search, as HPCC (SIGCOMM'19) rounds it. Mean 1.71 MB.
pub(super) const WEB_SEARCH: &[(u64, f64)] = &[
    (10_000, 15.0),
    (20_000, 20.0),
    (30_000, 30.0),
    (50_000, 40.0),
    (80_000, 53.0),
    (200_000, 60.0),
    (1_000_000, 70.0),
    (2_000_000, 80.0),
    (5_000_000, 90.0),
    (10_000_000, 97.0),
    (30_000_000, 100.0),
];

/// Roy et al. (SIGCOMM'15), Hadoop at Facebook, as HPCC rounds it. Mean 120 KB.
pub(super) const FB_HADOOP: &[(u64, f64)] = &[
    (100, 1.0),
    (200, 2.0),
    (300, 5.0),
    (350, 15.0),
    (400, 20.0),
    (500, 30.0),
    (600, 40.0),
    (700, 50.0),
    (1_000, 60.0),
    (2_000, 67.0),
    (7_000, 70.0),
    (30_000, 72.0),
    (50_000, 82.0),
    (80_000, 87.0),
    (120_000, 90.0),
    (300_000, 95.0),
    (1_000_000, 97.5),
    (2_000_000, 99.0),
    (10_000_000, 100.0),
];

/// Alibaba's block storage, published with HPCC. Mean 40.9 KB.
pub(super) const ALI_STORAGE: &[(u64, f64)] = &[
    (4_000, 22.93),
    (8_000, 69.21),
    (16_000, 80.61),
    (32_000, 90.47),
    (64_000, 93.53),
    (128_000, 96.77),
    (256_000, 97.53),
    (2_000_000, 100.0),
];

/// Greenberg et al., VL2 (SIGCOMM'09), data mining, with the sizes of the public traffic generators and the tail of
/// pFabric (SIGCOMM'13), where 3.6 % of flows are larger than 35 MB; other generators place 98 % at 100 MB. Mean
/// 7.67 MB, pFabric's 5,117 packets.
pub(super) const DATA_MINING: &[(u64, f64)] = &[
    (180, 10.0),
    (216, 20.0),
    (560, 30.0),
    (900, 40.0),
    (1_100, 50.0),
    (1_870, 60.0),
    (3_160, 70.0),
    (10_000, 80.0),
    (400_000, 90.0),
    (3_160_000, 95.0),
    (100_000_000, 99.0),
    (1_000_000_000, 100.0),
];

/// All RPCs at Google (Sivaram, 2008; W3 of Homa, SIGCOMM'18), reduced to where the curve bends: nowhere more than one
/// percentage point off.
pub(super) const GOOGLE_RPC: &[(u64, f64)] = &[
    (3, 6.5),
    (32, 9.7),
    (64, 15.5),
    (85, 25.3),
    (110, 31.9),
    (170, 42.3),
    (260, 50.7),
    (310, 59.8),
    (400, 70.5),
    (510, 78.4),
    (760, 83.6),
    (1_200, 87.7),
    (1_700, 90.0),
    (2_600, 92.0),
    (5_800, 95.2),
    (10_000, 97.2),
    (16_000, 98.4),
    (25_000, 98.86),
    (40_000, 99.15),
    (93_000, 99.56),
    (130_000, 99.71),
    (200_000, 99.81),
    (350_000, 99.9),
    (520_000, 99.95),
    (830_000, 99.97),
    (1_400_000, 99.983),
    (2_300_000, 99.99),
    (4_000_000, 99.9952),
    (8_200_000, 99.9987),
    (15_000_000, 100.0),
];

/// Atikoglu et al. (SIGMETRICS'12), Facebook's key-value store (W1 of Homa), reduced likewise.
pub(super) const FB_KEY_VALUE: &[(u64, f64)] = &[
    (1, 0.6),
    (2, 18.4),
    (3, 27.6),
    (6, 30.5),
    (10, 32.8),
    (11, 41.8),
    (13, 42.2),
    (15, 47.0),
    (30, 50.5),
    (57, 56.3),
    (116, 65.8),
    (190, 74.2),
    (280, 81.1),
    (400, 86.9),
    (550, 91.2),
    (740, 94.3),
    (990, 96.5),
    (1_300, 97.9),
    (1_800, 98.9),
    (2_500, 99.5),
    (3_500, 99.78),
    (5_200, 99.92),
    (7_900, 99.973),
    (12_000, 99.991),
    (19_000, 99.9975),
    (33_000, 99.9996),
    (100_000, 100.0),
];
