/*
 * Counts a service's requests; see service.h. It never blocks, and its only system calls are mmap
 * and clocks.
 */
#include "preload/measure/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/base/lock.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "proto/service_page.h"

#define API __attribute__((visibility("default")))

API int tandem_service(const char *name, uint64_t objective_ns, uint32_t batch_max);
API uint64_t tandem_arrived(uint32_t requests);
API void tandem_answered(uint64_t token, uint32_t requests);
API uint32_t tandem_batch(uint32_t mine);
API void tandem_ready(void);
API void tandem_layers(const uint32_t counts[TD_LAYER_KINDS]);

static struct td_lock lock = TD_LOCK_INIT(TD_RANK_STEPS);

/* Guarded by lock. */
static struct td_service_told told;
static bool declared, changed;
static struct td_service_page *replaced; /* the page before the current one; NULL: none */

/*
 * The batch that this thread works on: what it has answered since it asked for the batch. The last
 * request of a full batch starts it, so the shortest latency in it is the batch's own time.
 */
static __thread struct {
	uint32_t wanted, answered; /* number of requests */
	uint64_t least_ns;
} batch_of_thread __attribute__((tls_model("initial-exec")));

/* NULL: there is no page to count into. */
static struct td_service_page *_Atomic page;

static void *map_page(int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *mapped = mmap(NULL, TD_SERVICE_BYTES, PROT_READ | PROT_WRITE, flags, fd,
		fd < 0 ? 0 : TD_SERVICE_OFFSET);

	return mapped == MAP_FAILED ? NULL : mapped;
}

/* Copies the counters. An addition in between may be lost, which is too little to matter. */
static void carry_over(struct td_service_page *to, const struct td_service_page *from)
{
	atomic_store(&to->arrived, atomic_load(&from->arrived));
	atomic_store(&to->answered, atomic_load(&from->answered));
	atomic_store(&to->batch, atomic_load(&from->batch));
	for (unsigned i = 0; i < TD_LAYER_KINDS; i++)
		atomic_store(&to->layers[i], atomic_load(&from->layers[i]));
}

static void put_layers(struct td_service_page *to, const uint32_t counts[TD_LAYER_KINDS])
{
	for (unsigned i = 0; i < TD_LAYER_KINDS; i++)
		atomic_store_explicit(&to->layers[i], counts[i], memory_order_relaxed);
}

/* The first page begins with what the environment says about the network. */
static void replace_page(struct td_service_page *mapped)
{
	struct td_service_page *before = atomic_load(&page);

	if (before)
		carry_over(mapped, before);
	else
		put_layers(mapped, td_settings.layers);
	atomic_store(&page, mapped);
	if (replaced)
		munmap(replaced, TD_SERVICE_BYTES);
	replaced = before;
}

void td_service_map(int meter_fd)
{
	struct td_service_page *mapped;

	if (lseek(meter_fd, 0, SEEK_END) < TD_METER_FILE_BYTES)
		return;
	mapped = map_page(meter_fd);
	if (!mapped)
		return;
	td_lock_take(&lock);
	replace_page(mapped);
	td_lock_drop(&lock);
}

bool td_service_take(struct td_service_told *ret)
{
	bool has;

	td_lock_take(&lock);
	has = changed;
	changed = false;
	if (has)
		*ret = told;
	td_lock_drop(&lock);
	return has;
}

void td_service_again(void)
{
	td_lock_take(&lock);
	changed = declared;
	td_lock_drop(&lock);
}

void td_service_forked(void)
{
	td_lock_reset(&lock);
	replaced = NULL;
	atomic_store(&page, declared ? map_page(-1) : NULL);
	changed = declared;
}

/*
 * Until the daemon has given a page, the process counts into a private one. The caller holds the
 * lock.
 */
static int need_page(void)
{
	struct td_service_page *mapped;

	if (atomic_load(&page))
		return 0;
	mapped = map_page(-1);
	if (!mapped)
		return -ENOMEM;
	replace_page(mapped);
	return 0;
}

/*
 * Returns 0; -EINVAL if the name is empty or has more than 63 bytes; -ENOMEM if there is no page to
 * count into.
 */
int tandem_service(const char *name, uint64_t objective_ns, uint32_t batch_max)
{
	int r;

	if (!name || !*name || strlen(name) >= sizeof(told.name))
		return -EINVAL;
	td_lock_take(&lock);
	r = need_page();
	if (!r) {
		strcpy(told.name, name);
		told.objective_ns = objective_ns;
		told.batch_max = batch_max;
		declared = changed = true;
	}
	td_lock_drop(&lock);
	if (!r)
		td_agent_wake();
	return r;
}

uint64_t tandem_arrived(uint32_t requests)
{
	struct td_service_page *p = atomic_load_explicit(&page, memory_order_acquire);

	if (!p)
		return 0;
	atomic_fetch_add_explicit(&p->arrived, requests, memory_order_relaxed);
	return td_time_now_ns();
}

void tandem_answered(uint64_t token, uint32_t requests)
{
	struct td_service_page *p = atomic_load_explicit(&page, memory_order_acquire);
	uint64_t now_ns, latency_ns;

	if (!p || !token)
		return;
	now_ns = td_time_now_ns();
	latency_ns = now_ns > token ? now_ns - token : 0;
	atomic_fetch_add_explicit(&p->answered, requests, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&p->latency[td_histogram_bucket(latency_ns)], requests, memory_order_relaxed);
	if (!batch_of_thread.answered || latency_ns < batch_of_thread.least_ns)
		batch_of_thread.least_ns = latency_ns;
	batch_of_thread.answered += requests;
}

/* Counts the thread's batch, if it was full, and begins the next one. */
static void end_batch(struct td_service_page *p, uint32_t wanted)
{
	if (batch_of_thread.wanted && batch_of_thread.answered >= batch_of_thread.wanted)
		atomic_fetch_add_explicit(
			&p->batches[td_histogram_bucket(batch_of_thread.least_ns) / 2], 1,
			memory_order_relaxed);
	batch_of_thread.wanted = wanted;
	batch_of_thread.answered = 0;
}

uint32_t tandem_batch(uint32_t mine)
{
	struct td_service_page *p = atomic_load_explicit(&page, memory_order_acquire);
	uint32_t wanted = atomic_load_explicit(&td_gate.page.batch, memory_order_relaxed);
	uint32_t batch = wanted ? wanted : mine;

	if (p) {
		end_batch(p, batch);
		atomic_store_explicit(&p->batch, batch, memory_order_relaxed);
	}
	return batch;
}

/*
 * Tells the supervisor, by the pipe whose number and inode are in TANDEM_READY (cli/supervise). If
 * the program has closed that descriptor, the number may be that of another file, which is left
 * alone.
 */
void tandem_ready(void)
{
	const char *text = getenv("TANDEM_READY");
	char path[32], is[48], expected[48];
	unsigned long long inode;
	ssize_t n;
	int fd;

	if (!text || sscanf(text, "%d:%llu", &fd, &inode) != 2)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(expected, sizeof(expected), "pipe:[%llu]", inode);
	n = readlink(path, is, sizeof(is) - 1);
	is[n > 0 ? n : 0] = 0;
	if (!strcmp(is, expected))
		(void)!write(fd, "", 1);
}

void tandem_layers(const uint32_t counts[TD_LAYER_KINDS])
{
	td_lock_take(&lock);
	if (!need_page())
		put_layers(atomic_load(&page), counts);
	td_lock_drop(&lock);
}
