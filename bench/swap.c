/*
 * How fast the backend swap moves memory, against the rate of the link: one pinned copy of the same
 * size. It runs in this process, with the backend alone: no daemon decides, no kernel runs. Run it
 * on the software GPU (`softgpu run --`) or on a real one.
 *
 *   out   off the device until nothing is left on it
 *   in    all of it back
 *   both  two processes at once, one each way: of twice the link's rate
 *   to mapped host, from mapped host
 *         the memory is exchanged for the host's at the same addresses, and back
 *
 * usage: swap MEBIBYTES ALLOCATIONS RUNS
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/row.h"
#include "preload/agent/plans.h"
#include "preload/base/backend.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"

#define RUNS_MAX 100

static int slot;

/* Shared memory of the two processes. */
static struct shared {
	_Atomic unsigned arrived;
	double rates[2][RUNS_MAX];
} * shared;

static void check(int r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "swap: %s: %d\n", what, r);
	exit(1);
}

static void quiet(unsigned any)
{
	(void)any;
}

static double rate(uint64_t bytes, uint64_t began_ns)
{
	return (double)bytes / (double)(td_time_now_ns() - began_ns);
}

static void use_gpu(void)
{
	CUcontext context;

	check(td_real_load(), "no driver");
	check(td_real.cuInit(0), "cuInit");
	check(td_real.cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
	slot = td_context_use();
	check(slot < 0, "context");
}

static void allocate(uint64_t bytes, unsigned count)
{
	uint64_t address;

	for (unsigned i = 0; i < count; i++) {
		check(td_backend_swap.alloc((unsigned)slot, bytes / count, &address), "alloc");
		check(td_real.cuMemsetD8_v2(address, 1, bytes / count), "memset");
	}
	check(td_real.cuCtxSynchronize(), "synchronize");
}

static double move_out(uint64_t bytes)
{
	uint64_t began_ns = td_time_now_ns();

	check(td_backend_swap.shrink((unsigned)slot, 0, quiet), "shrink");
	return rate(bytes, began_ns);
}

static double move_in(uint64_t bytes)
{
	uint64_t began_ns = td_time_now_ns();

	check(td_backend_swap.fill((unsigned)slot, UINT64_MAX, quiet), "fill");
	return rate(bytes, began_ns);
}

static void send_nothing(const struct td_msg *msg)
{
	(void)msg;
}

/* Chunks change their place only behind a closed gate. */
static void close_gate(void)
{
	td_plans_init(send_nothing);
	td_gate_init();
	td_gate_write(TD_WORD_CLOSED | TD_WORD_STEP);
	while (!td_plans_is_still())
		(void)td_plans_step(td_time_now_ns());
}

static double move_to_mapped(uint64_t bytes)
{
	uint64_t began_ns = td_time_now_ns();

	check(td_backend_swap.reach((unsigned)slot, 0, quiet), "reach");
	return rate(bytes, began_ns);
}

/* One pinned copy each way, best of three; the smaller. */
static double link_rate(uint64_t bytes)
{
	double best[2] = {0};
	CUdeviceptr device;
	CUstream stream;
	void *host;

	check(td_real.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	check(td_real.cuMemHostAlloc(&host, bytes, 0), "cuMemHostAlloc");
	check(td_real.cuMemAlloc_v2(&device, bytes), "cuMemAlloc");
	for (int i = 0; i < 6; i++) {
		uint64_t began_ns = td_time_now_ns();
		double r;

		check(i % 2 ? td_real.cuMemcpyHtoDAsync_v2(device, host, bytes, stream)
			    : td_real.cuMemcpyDtoHAsync_v2(host, device, bytes, stream),
			"copy");
		check(td_real.cuStreamSynchronize(stream), "synchronize");
		r = rate(bytes, began_ns);
		best[i % 2] = r > best[i % 2] ? r : best[i % 2];
	}
	check(td_real.cuMemFree_v2(device), "cuMemFree");
	check(td_real.cuMemFreeHost(host), "cuMemFreeHost");
	return best[0] < best[1] ? best[0] : best[1];
}

static void print(
	const char *what, uint64_t mib, unsigned count, double *rates, double whole, unsigned runs)
{
	char figure[128];

	snprintf(
		figure, sizeof(figure), "%s, %llu MiB in %u", what, (unsigned long long)mib, count);
	for (unsigned i = 0; i < runs; i++)
		rates[i] *= 100 / whole;
	bench_row(figure, "% of the link", rates, runs);
}

static void meet(unsigned round)
{
	atomic_fetch_add(&shared->arrived, 1);
	while (atomic_load(&shared->arrived) < 2 * round)
		td_time_sleep_until_ns(td_time_now_ns() + 10 * TD_NS_PER_US);
}

/* One of two processes: moves out when the other moves in. */
static void one_of_two(unsigned me, uint64_t bytes, unsigned count, unsigned runs)
{
	use_gpu();
	allocate(bytes, count);
	if (me)
		(void)move_out(bytes);
	for (unsigned i = 0; i < 2 * runs; i++) {
		double r;

		meet(i + 1);
		r = (i + me) % 2 ? move_in(bytes) : move_out(bytes);
		if (i >= 2)
			shared->rates[me][i / 2] = i % 2 ? (shared->rates[me][i / 2] + r) / 2 : r;
	}
}

/* The first pair of moves pins the host memory: not counted. */
static void both(uint64_t bytes, unsigned count, unsigned runs)
{
	pid_t pids[2];
	int status;

	for (unsigned me = 0; me < 2; me++) {
		pids[me] = fork();
		if (!pids[me]) {
			one_of_two(me, bytes, count, runs + 1);
			_exit(0);
		}
	}
	for (unsigned me = 0; me < 2; me++)
		check(waitpid(pids[me], &status, 0) != pids[me] || status, "one of two");
}

int main(int argc, char **argv)
{
	double out[RUNS_MAX], in[RUNS_MAX], two[RUNS_MAX], link;
	double to[RUNS_MAX], from[RUNS_MAX];
	uint64_t mib, bytes;
	unsigned count, runs;

	if (argc != 4 || (mib = strtoull(argv[1], NULL, 10)) < 2 ||
		(count = (unsigned)atoi(argv[2])) < 1 || (runs = (unsigned)atoi(argv[3])) < 1 ||
		runs >= RUNS_MAX) {
		fputs("usage: swap MEBIBYTES ALLOCATIONS RUNS\n", stderr);
		return 2;
	}
	bytes = mib << 20;
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared == MAP_FAILED, "mmap");
	both(bytes, count, runs);
	use_gpu();
	link = link_rate(bytes);
	allocate(bytes, count);
	/* Once for the host memory to be pinned. */
	(void)move_out(bytes);
	(void)move_in(bytes);
	for (unsigned i = 0; i < runs; i++) {
		out[i] = move_out(bytes);
		in[i] = move_in(bytes);
		two[i] = shared->rates[0][i + 1] + shared->rates[1][i + 1];
	}
	close_gate();
	for (unsigned i = 0; i < runs; i++) {
		to[i] = move_to_mapped(bytes);
		from[i] = move_in(bytes);
	}
	print("out", mib, count, out, link, runs);
	print("in", mib, count, in, link, runs);
	print("both ways at once", mib, count, two, 2 * link, runs);
	print("to mapped host", mib, count, to, link, runs);
	print("from mapped host", mib, count, from, link, runs);
	bench_row("the link", "GB/s", &link, 1);
	return 0;
}
