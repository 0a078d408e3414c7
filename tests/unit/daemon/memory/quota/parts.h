/* A program's view of the world, which agent.c and driver.c share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"

extern const struct quota_world *quota_world;
extern int quota_self;               /* which program this is */
extern uint64_t quota_busy_until_ns; /* its work takes until then */

void quota_preempt(void);
void quota_wait_ns(uint64_t ns);

/* -- driver.c -- */

void quota_fill_driver(void);
/* False: there is no room for a context. */
bool quota_make_context(int gpu);
/* Waits for the program's work. */
void quota_synchronize(void);
/* Addresses for a mapping of the program's own. */
uint64_t quota_reserve(uint64_t bytes);
