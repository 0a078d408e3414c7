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
};

extern struct fake_nvml fake_nvml;
