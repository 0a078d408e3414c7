/* Steers fake_nvml.c. */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>

struct fake_nvml {
	_Atomic unsigned count, utilisation, users, samples;
	_Atomic unsigned refused; /* initialisations, while `refuses` */
	_Atomic int refuses;
	_Atomic int lost;    /* every call about a device fails with this */
	_Atomic int blocked; /* a call about utilisation waits for `go` */
	sem_t entered, go;
	_Atomic unsigned clock; /* MHz; 0: it does not tell */
	_Atomic unsigned
		buffered;     /* samples of 10, 20, 30 ... % at 1, 2, 3 ... s, the newest last */
	_Atomic unsigned xid; /* one event of the first GPU; 0: none */
	_Atomic unsigned gpm; /* it has GPM, and its SMs are so active; 0: it has none */
	_Atomic int gpm_samples, event_sets; /* that are allocated */
};

extern struct fake_nvml fake_nvml;
