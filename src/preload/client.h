/*
 * This process as the daemon's client: registration, the agent thread that carries plans out, fail-soft.
 *
 * States: not started; alone (no daemon: the gate is private); registered. The agent is started by the first use of a context and tries
 * to reach the daemon again whenever it is alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda/types.h"
#include "preload/backend.h"

/* Makes the calling thread's current context known; starts the client at the first. False: there is none. */
bool td_client_use_context(void);

/* The slot (number of the GPU in this process) of the calling thread's context, -1: none. */
int td_client_slot(void);

/* The calling thread's context may be another one from now on. */
void td_client_context_changed(void);
void td_client_context_gone(CUcontext context);

/* What cuMemGetInfo shall call the total; 0: ask the driver. */
uint64_t td_client_capacity(unsigned slot);

const struct td_backend *td_client_backend(void);

/* No daemon at present. */
bool td_client_is_alone(void);

/* A thread waits at the gate, or was armed. */
void td_client_want(uint32_t word);

/* Streams that capture at present. */
unsigned td_client_captures(void);
void td_client_capture_began(void);
void td_client_capture_ended(void);
