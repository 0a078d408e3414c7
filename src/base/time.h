/* The monotonic clock. Policy and model code does not use it, but gets `now_ns` as a parameter. */
#pragma once

#include <stdint.h>

#define TD_NS_PER_US 1000ull
#define TD_NS_PER_MS 1000000ull
#define TD_NS_PER_S  1000000000ull

/* Returns CLOCK_MONOTONIC in ns, which all processes of a machine share. */
uint64_t td_time_now_ns(void);

/*
 * Sleeps until the monotonic clock reaches deadline_ns, also across signals. Preserves errno and is
 * no cancellation point.
 */
void td_time_sleep_until_ns(uint64_t deadline_ns);
