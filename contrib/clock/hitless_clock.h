/* The time of `hitless clock up`, from its page: map the file (4096 bytes, read only, shared) and call hitless_clock_read.
 * Returns 0, or -1 if the clock does not know the time. The time is between earliest and latest, in ns since 1970. */
#ifndef HITLESS_CLOCK_H
#define HITLESS_CLOCK_H
#include <stdint.h>
#include <time.h>
struct hitless_time { uint64_t earliest, latest, state, depth, epoch, elected, handover; };
static inline uint64_t hitless_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline int hitless_clock_read(const uint64_t *page, struct hitless_time *now) {
    uint64_t serial, w[11];
    int tries = 1000;
    if (page[0] != 0x4b434f4c43544948u /* "HITCLOCK" */ || page[1] != 1) return -1;
    do {
        if (tries-- == 0) return -1;
        serial = __atomic_load_n(page + 2, __ATOMIC_ACQUIRE);
        for (int i = 0; i < 11; i++) w[i] = __atomic_load_n(page + 8 + 16 * (serial & 1) + i, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (serial != __atomic_load_n(page + 2, __ATOMIC_RELAXED));
    if (w[6] == 0 || w[6] == 5) return -1; /* unsynchronized, evicted */
    uint64_t raw = hitless_ns(CLOCK_MONOTONIC_RAW), boot = hitless_ns(CLOCK_BOOTTIME);
    uint64_t elapsed = raw > w[0] ? raw - w[0] : 0, slept = boot > w[1] + elapsed ? boot - w[1] - elapsed : 0;
    uint64_t passed = elapsed + (uint64_t)(int64_t)(((__int128)elapsed * (int64_t)w[5]) >> 32);
    uint64_t growth = (uint64_t)(((unsigned __int128)passed * w[4]) >> 32) + 2;
    *now = (struct hitless_time){ w[2] + passed > growth ? w[2] + passed - growth : 0,
                                  w[3] + passed + growth + slept, w[6], w[7], w[8], w[9], w[10] };
    return 0;
}
#endif
