/*
 * Question 1: the cost of virtual memory by the piece, and when a released piece can be another
 * process's.
 */
#include "probe.h"

const char probe_name[] = "chunks";
const char probe_question[] =
	"What do create, map, set access, unmap and release cost per chunk of 2 MiB to 1 GiB, and "
	"when can another process have released memory?";

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc access_rights = {
	{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void one_size(uint64_t bytes, unsigned rounds)
{
	static struct probe_series create, map, access, unmap, release;
	CUdeviceptr at;

	MUST(cuMemAddressReserve, &at, bytes, 0, 0, 0);
	for (unsigned i = 0; i < rounds; i++) {
		CUmemGenericAllocationHandle handle;
		uint64_t t = probe_now_ns();

		MUST(cuMemCreate, &handle, bytes, &prop, 0);
		probe_add(&create, probe_us_since(t));
		t = probe_now_ns();
		MUST(cuMemMap, at, bytes, 0, handle, 0);
		probe_add(&map, probe_us_since(t));
		t = probe_now_ns();
		MUST(cuMemSetAccess, at, bytes, &access_rights, 1);
		probe_add(&access, probe_us_since(t));
		t = probe_now_ns();
		MUST(cuMemUnmap, at, bytes);
		probe_add(&unmap, probe_us_since(t));
		t = probe_now_ns();
		MUST(cuMemRelease, handle);
		probe_add(&release, probe_us_since(t));
	}
	MUST(cuMemAddressFree, at, bytes);
	probe_figure(&create, "us", "create, %llu MiB", (unsigned long long)bytes >> 20);
	probe_figure(&map, "us", "map, %llu MiB", (unsigned long long)bytes >> 20);
	probe_figure(&access, "us", "set access, %llu MiB", (unsigned long long)bytes >> 20);
	probe_figure(&unmap, "us", "unmap, %llu MiB", (unsigned long long)bytes >> 20);
	probe_figure(&release, "us", "release, %llu MiB", (unsigned long long)bytes >> 20);
}

/* Takes all that it can get, as soon as it is told to; says how long that took. */
int probe_role(const char *role)
{
	CUmemGenericAllocationHandle handle;
	uint64_t t;

	(void)role;
	probe_begin();
	probe_say("ready");
	probe_listen();
	t = probe_now_ns();
	while (cu.cuMemCreate(&handle, probe_quick ? 8u << 20 : 1u << 30, &prop, 0) &&
		probe_us_since(t) < 2e6)
		;
	probe_say("%f", probe_us_since(t));
	return 0;
}

/* This process holds all but less than what the other one wants; then lets go. */
static bool reuse(void)
{
	uint64_t piece = probe_quick ? 8u << 20 : 1u << 30;
	CUmemGenericAllocationHandle held[512];
	struct probe_child child = probe_start("taker", NULL);
	unsigned n = 0;
	double us;

	(void)probe_line(&child);
	while (n < 512 && !cu.cuMemCreate(&held[n], piece, &prop, 0))
		n++;
	probe_tell(&child, "go");
	probe_sleep_ms(20);
	while (n)
		(void)cu.cuMemRelease(held[--n]);
	us = probe_number(&child);
	probe_value(us, "us", "until another process has a piece that is released after 20 ms");
	return probe_end(&child, 5000) == 0;
}

void probe_run(void)
{
	uint64_t most;
	bool reused;

	probe_begin();
	most = probe_within(1u << 30);
	for (uint64_t bytes = 2u << 20; bytes <= most; bytes *= probe_quick ? 16 : 2)
		one_size(bytes, probe_quick ? 3 : bytes >= 256u << 20 ? 10 : 40);
	reused = reuse();
	probe_answer("chunks of 2 MiB to %llu MiB measured; another process %s released memory",
		(unsigned long long)most >> 20, reused ? "gets" : "did not get");
}
