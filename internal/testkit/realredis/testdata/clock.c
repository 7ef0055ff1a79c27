// Sets the clock of whoever is started with it, by the microseconds that the first 8 bytes
// of the file $CLOCK_AHEAD say.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static int64_t ahead(void) {
    static volatile int64_t *shared;
    if (!shared) {
        const char *path = getenv("CLOCK_AHEAD");
        int file = path ? open(path, O_RDONLY) : -1;
        if (file < 0) return 0;
        void *page = mmap(0, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
        if (page == MAP_FAILED) return 0;
        shared = page;
    }
    return *shared;
}

// later adds to a time whose fractions are of a second's part, and keeps these positive.
static void later(time_t *seconds, long *fractions, long second) {
    int64_t micro = ahead();
    *seconds += micro / 1000000;
    *fractions += micro % 1000000 * (second / 1000000);
    if (*fractions < 0) { *fractions += second; --*seconds; }
    if (*fractions >= second) { *fractions -= second; ++*seconds; }
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    later(&now->tv_sec, &now->tv_usec, 1000000);
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME) later(&now->tv_sec, &now->tv_nsec, 1000000000);
    return result;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
