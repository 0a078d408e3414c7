/*
 * Helpers of the probes. A probe is a small program that asks a GPU's driver one question and
 * prints one JSON row:
 *     {"question", "answer", "figures": [{"name", "median", "p5", "p95", "n", "unit"}],
 *      "driver", "gpu", "software"}
 *
 * The driver and NVML are opened at run time. A missing or refused call ends the probe with an
 * answer that names it, never with a crash. No probe changes a setting of the card. Memory stays
 * within a fraction of the free memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "cuda/signatures.h"
#include "cuda/types.h"

/* Every probe defines these two, and its answer() below. */
extern const char probe_name[], probe_question[];
void probe_run(void);
/*
 * Runs a second process of the probe, which was started with this role. Returns its exit code.
 * Probes without one return 2.
 */
int probe_role(const char *role);

struct probe_cuda {
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult(*symbol) TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL
};

/* All symbols of the driver; one that it lacks answers CUDA_ERROR_NOT_SUPPORTED. */
extern struct probe_cuda cu;

/* --quick: sizes and times for a test of the probe itself. */
extern bool probe_quick;

/* -- ending -- */

/* The answer. Prints the row and ends the program with 0. */
void probe_answer(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Ends with "not supported by this driver: <call>: <error>" when r is not 0. */
#define MUST(call, ...) probe_must(cu.call(__VA_ARGS__), #call)
void probe_must(CUresult r, const char *call);
const char *probe_error(CUresult r);

/* -- figures -- */

#define PROBE_SAMPLES 4096

struct probe_series {
	double values[PROBE_SAMPLES];
	size_t n;
};

void probe_add(struct probe_series *series, double value);
/* Adds the figure to the row and empties the series. Nothing when it has no values. */
void probe_figure(struct probe_series *series, const char *unit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void probe_value(double value, const char *unit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
double probe_median(struct probe_series *series);

/* -- time -- */

uint64_t probe_now_ns(void);
double probe_us_since(uint64_t began_ns);
void probe_sleep_ms(unsigned ms);

/* -- the GPU -- */

/* cuInit and the primary context of device 0, current. Answers "no GPU" where there is none. */
void probe_begin(void);
/* The same in a child; 0 or the error. */
CUresult probe_begin_quietly(void);
CUfunction probe_kernel(const char *name);
/* A launch without attributes. */
CUresult probe_launch(
	CUfunction f, unsigned blocks, unsigned threads, CUstream stream, void **params);
/* Full of threads for `ns`. */
void probe_spin(CUstream stream, unsigned blocks, uint64_t ns);
/* Is the driver a software GPU's? */
bool probe_is_software(void);
uint64_t probe_free_bytes(void);
/* bytes, or a quarter of what is free if that is less. */
uint64_t probe_within(uint64_t bytes);
int probe_attribute(int attribute);

/* -- other processes -- */

struct probe_child {
	pid_t pid;
	int to, from; /* pipes to its standard input and from its standard output */
};

/* This program again, in that role; extra: NAME=VALUE for its environment, or NULL. */
struct probe_child probe_start(const char *role, const char *extra);
/* A line that it has printed, without its end; "" when it is gone. */
const char *probe_line(const struct probe_child *child);
/* A number that it has printed; NAN when it is gone. */
double probe_number(const struct probe_child *child);
void probe_tell(const struct probe_child *child, const char *line);
/* Waits at most that long, then kills. Its exit code, or -signal. */
int probe_end(struct probe_child *child, unsigned most_ms);

/*
 * Starts an MPS control daemon in a folder of its own and this process's environment; false where
 * MPS does not exist. Children become its clients.
 */
bool probe_mps_start(void);
void probe_mps_stop(void);

/* In a child: says a line, waits for one. */
void probe_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void probe_listen(void);

/* -- NVML -- */

/* A function of libnvidia-ml.so.1, or NULL. nvmlInit_v2 has been called. */
void *probe_nvml(const char *name);
/* Handle of the GPU that device 0 is, by UUID; NULL: unknown. */
void *probe_nvml_device(void);
