/* Loaded before the system's library, it has a disk stand still when there is a file named DISK_STALLS: whoever synchronises
   something next takes that file away and never comes back. The wall clock stops with it, so that nobody sees how long it takes. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* In microseconds since 1970; 0 while it goes. */
static atomic_long stopped_at;

static long now_in_micros(void) {
    struct timespec exact;
    long stopped = atomic_load(&stopped_at);
    if (stopped)
        return stopped;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &exact);
    return exact.tv_sec * 1000000L + exact.tv_nsec / 1000;
}

int gettimeofday(struct timeval *now, void *zone) {
    long micros = now_in_micros();
    (void)zone;
    now->tv_sec = micros / 1000000L;
    now->tv_usec = micros % 1000000L;
    return 0;
}

time_t time(time_t *where) {
    time_t seconds = now_in_micros() / 1000000L;
    if (where)
        *where = seconds;
    return seconds;
}

int fdatasync(int file) {
    const char *stalls = getenv("DISK_STALLS");
    if (stalls && access(stalls, F_OK) == 0) {
        atomic_store(&stopped_at, now_in_micros());
        unlink(stalls);
        for (;;)
            pause();
    }
    return syscall(SYS_fdatasync, file);
}
