/*
 * Launches without a pause for a while and prints when it could: {"turns": [[first, last], ...]},
 * in monotonic ns, so that the turns of two processes can be compared. A pause of more than GAP
 * between two launches is the others' turns. A turn of a single launch does not count: its thread
 * was kept from reading the clock. The driver does nothing, so the drain takes no time and all of
 * the measured time is tandem's.
 *
 * usage: handover SECONDS
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "cuda/types.h"

#define GAP_NS    (2 * TD_NS_PER_MS)
#define TURNS_MAX 100000

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);

struct turn {
	uint64_t first_ns, last_ns;
};

int main(int argc, char **argv)
{
	static struct turn turns[TURNS_MAX];
	uint64_t now_ns, until_ns;
	size_t n = 0;

	if (argc != 2 || atoi(argv[1]) < 1) {
		fputs("usage: handover SECONDS\n", stderr);
		return 2;
	}
	until_ns = td_time_now_ns() + (uint64_t)atoi(argv[1]) * TD_NS_PER_S;
	do {
		uint64_t before_ns = td_time_now_ns();

		(void)cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		now_ns = td_time_now_ns();
		if (n && now_ns - turns[n - 1].last_ns <= GAP_NS) {
			turns[n - 1].last_ns = before_ns;
			continue;
		}
		if (!n || turns[n - 1].last_ns != turns[n - 1].first_ns)
			n++;
		turns[n - 1].first_ns = turns[n - 1].last_ns = now_ns;
	} while (now_ns < until_ns && n < TURNS_MAX);
	printf("{\"turns\": [");
	for (size_t i = 0; i < n; i++)
		printf("%s[%llu, %llu]", i ? ", " : "", (unsigned long long)turns[i].first_ns,
			(unsigned long long)turns[i].last_ns);
	puts("]}");
	return 0;
}
