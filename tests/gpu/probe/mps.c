/* Question 12: MPS with a control daemon of our own. */
#include "probe.h"

#include <signal.h>
#include <string.h>

const char probe_name[] = "mps";
const char probe_question[] =
	"Can MPS be started without touching settings, how many clients and which thread "
	"percentages does it take, and what does a client killed amid work do to another?";

int probe_role(const char *role)
{
	uint64_t t;

	probe_begin();
	(void)probe_kernel("spin");
	probe_say("ready");
	probe_listen();
	t = probe_now_ns();
	probe_spin(NULL, 1,
		!strcmp(role, "long") ? 5000000000ull
		: probe_quick         ? 20000000
				      : 500000000);
	probe_say("%s", probe_error(cu.cuCtxSynchronize()));
	probe_say("%f", probe_us_since(t) / 1e3);
	return 0;
}

/* Two clients at once; the figure is the first one's. Returns its outcome. */
static const char *beside(const char *first, const char *second, const char *name)
{
	static char outcome[120];
	struct probe_child clients[2] = {probe_start("short", first), probe_start("short", second)};

	for (int i = 0; i < 2; i++)
		(void)probe_line(&clients[i]);
	for (int i = 0; i < 2; i++)
		probe_tell(&clients[i], "go");
	snprintf(outcome, sizeof(outcome), "%s", probe_line(&clients[0]));
	probe_value(probe_number(&clients[0]), "ms", "kernel of 500 ms beside another, %s", name);
	for (int i = 0; i < 2; i++)
		(void)probe_end(&clients[i], 10000);
	return *outcome ? outcome : "died";
}

/* How many clients become ready, up to 64. */
static unsigned count_clients(void)
{
	static struct probe_child clients[64];
	unsigned most = probe_quick ? 2 : 64, n = 0, started = 0;

	while (started < most) {
		clients[started] = probe_start("short", NULL);
		if (strcmp(probe_line(&clients[started++]), "ready"))
			break;
		n++;
	}
	for (unsigned i = 0; i < started; i++)
		(void)probe_end(&clients[i], 1);
	return n;
}

static const char *neighbour_of_a_killed_one(void)
{
	static char outcome[120];
	struct probe_child clients[2] = {probe_start("long", NULL), probe_start("short", NULL)};

	for (int i = 0; i < 2; i++)
		(void)probe_line(&clients[i]);
	for (int i = 0; i < 2; i++)
		probe_tell(&clients[i], "go");
	probe_sleep_ms(100);
	kill(clients[0].pid, SIGKILL);
	snprintf(outcome, sizeof(outcome), "%s", probe_line(&clients[1]));
	for (int i = 0; i < 2; i++)
		(void)probe_end(&clients[i], 10000);
	return *outcome ? outcome : "died";
}

void probe_run(void)
{
	char shares[120], priority[120], neighbour[120];
	unsigned clients;

	if (!probe_mps_start())
		probe_answer("not asked: nvidia-cuda-mps-control is not here or does not start");
	snprintf(shares, sizeof(shares), "%s",
		beside("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50",
			"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "each with half of the threads"));
	snprintf(priority, sizeof(priority), "%s",
		beside("CUDA_MPS_CLIENT_PRIORITY=0", "CUDA_MPS_CLIENT_PRIORITY=1",
			"of lower client priority"));
	snprintf(neighbour, sizeof(neighbour), "%s", neighbour_of_a_killed_one());
	clients = count_clients();
	probe_mps_stop();
	probe_value(clients, "clients", "at once (tried up to 64)");
	probe_answer("starts; with thread percentages: %s; with client priorities: %s; neighbour "
		     "of a client killed amid work: %s",
		shares, priority, neighbour);
}
