/*
 * Hard memory limits under everything that may happen to a job, by properties and from seeds. It
 * runs the daemon's node with its policies, and up to 20 programs of libtandem's own code
 * (quota/agent.c), whose threads allocate, free and launch, come and go, while messages take their
 * time and every setting changes.
 *
 * After each single step:
 * - no job has more on a GPU than its hard limit (a lower limit takes nothing away), and no program
 *   more than it is charged;
 * - what all have and may have on a GPU does not come to exceed its capacity;
 * - nothing runs while memory of it is away, and nobody's connection is dropped.
 *
 * When the noise is over every program ends, within a bounded time.
 *
 * TANDEM_QUOTA_SEEDS="FIRST COUNT" tries others, TANDEM_QUOTA_TRACE=1 prints the events.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "unit/daemon/memory/quota/life.h"

/* -- the turns -- */

static bool is_late(const struct packet *p)
{
	return p && w.now_ns >= p->sent_ns + w.delay_ns;
}

static bool hear_somebody(bool all)
{
	struct line *chosen = NULL;
	unsigned n = 0;

	for (struct line *line = w.lines; line && w.up; line = line->next) {
		bool ends = line->hung_up && !line->dropped;

		if (line->dropped || (!line->up.first && !ends) || w.now_ns < line->stops_ns)
			continue;
		if (!all && !is_late(line->up.first) && below(16) < line->slow)
			continue;
		if (below(++n) == 0)
			chosen = line;
	}
	if (!chosen)
		return false;
	hear(chosen);
	w.stepped = false;
	return true;
}

static bool let_arrive(bool all)
{
	struct line *chosen = NULL;
	unsigned n = 0;

	for (struct line *line = w.lines; line; line = line->next) {
		if (line->hung_up || line->arrived == line->down.count)
			continue;
		if (!all && !is_late(line->down.first) && below(16) < line->slow)
			continue;
		if (below(++n) == 0)
			chosen = line;
	}
	if (!chosen)
		return false;
	chosen->arrived += all || below(2) ? 1 : chosen->down.count - chosen->arrived;
	return true;
}

static bool run_somebody(uint64_t *ret_next_ns)
{
	struct fiber *chosen = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < w.born; i++) {
		for (unsigned t = 0; t < THREADS; t++) {
			struct fiber *f = &w.programs[i].fibers[t];
			uint64_t at_ns = f->alive ? wakes_ns(f) : UINT64_MAX;

			if (at_ns > w.now_ns && at_ns < *ret_next_ns)
				*ret_next_ns = at_ns;
			if (at_ns <= w.now_ns && below(++n) == 0)
				chosen = f;
		}
	}
	if (!chosen)
		return false;
	resume(chosen);
	return true;
}

static void reap(void)
{
	for (unsigned i = 0; i < w.born; i++) {
		struct program *p = &w.programs[i];
		bool has = p->has[0] || p->has[1] || p->contexts[0] || p->contexts[1] ||
			   p->paged[0] || p->paged[1];

		if (p->alive && is_done(p))
			end_program(p);
		if (!p->alive && has && (!w.noise || below(20) == 0))
			free_memory(p);
	}
	for (struct line **at = &w.lines; *at;) {
		struct line *line = *at;

		if (!line->hung_up || !line->dropped || line->process) {
			at = &line->next;
			continue;
		}
		*at = line->next;
		clear(&line->up);
		clear(&line->down);
		free(line);
	}
}

static void act(void)
{
	uint64_t next_ns = UINT64_MAX;
	bool done = false, idle;

	switch (below(8)) {
	case 0:
	case 1:
	case 2: done = run_somebody(&next_ns); break;
	case 3:
	case 4: done = let_arrive(false); break;
	case 5:
	case 6: done = hear_somebody(false); break;
	default:
		if (w.up && (!w.stepped || w.wakeup_ns <= w.now_ns)) {
			node_step();
			done = true;
		}
	}
	w.now_ns += below(4) ? 0 : below(20000);
	if (done)
		return;
	/* Time passes once nothing else can happen, or by chance. */
	next_ns = UINT64_MAX;
	idle = below(6) != 0;
	if (idle && (run_somebody(&next_ns) || let_arrive(true) || hear_somebody(true)))
		return;
	if (w.up && !w.stepped) {
		node_step();
		return;
	}
	(void)run_somebody(&next_ns);
	for (const struct line *line = w.lines; line; line = line->next)
		if (line->stops_ns > w.now_ns && line->stops_ns < next_ns)
			next_ns = line->stops_ns;
	if (w.up && w.wakeup_ns < next_ns)
		next_ns = w.wakeup_ns;
	if (next_ns != UINT64_MAX && next_ns > w.now_ns) {
		uint64_t most_ns = w.now_ns + w.delay_ns / 8;

		next_ns = next_ns < most_ns || (idle && !w.noise) ? next_ns : most_ns;
		w.now_ns = next_ns - 1;
		step_again();
		w.now_ns = next_ns;
	}
}

static void turn(void)
{
	w.turns++;
	act();
	check();
	if (w.noise && below(12) == 0) {
		make_noise();
		check();
	}
	reap();
}

static bool anybody(void)
{
	for (unsigned i = 0; i < w.born; i++)
		if (w.programs[i].alive)
			return true;
	return false;
}

static void settle(void)
{
	uint64_t end_ns;

	w.noise = false;
	trace("the noise is over");
	if (!w.up)
		daemon_begin(true);
	set_option("policy", below(4) ? "tandem" : below(2) ? "nvshare" : "timeshare");
	set_option("enabled", "on");
	set_option("host.limit", "none");
	set_option("drain.deadline", "15s");
	for (unsigned i = 0; i < JOBS; i++)
		(void)td_node_set_job(&w.node, td_identity_local(1000), w.jobs[i].name, "paused",
			"off", w.now_ns, NULL);
	w.stepped = false;
	end_ns = w.now_ns + END_NS;
	while (anybody()) {
		turn();
		if (w.now_ns > end_ns || w.turns > ALL_TURNS)
			violated("%u programs wait for ever",
				members(0) + members(1) + members(2) + members(3) + members(4));
	}
	for (unsigned i = 0; i < 4000; i++)
		turn();
	for (unsigned g = 0; g < QUOTA_GPUS; g++)
		if (w.used[g])
			violated("%llu bytes are left on GPU %u", (unsigned long long)w.used[g], g);
	if (!td_list_empty(&w.node.clients))
		violated("clients are left");
}

static void live(uint64_t seed)
{
	static const char *const limits[] = {"8m", "16m", "30m", "48m", "60m", "60m"};

	w.seed = w.random = seed;
	w.now_ns = TD_NS_PER_S;
	w.delay_ns = seed % 8 ? DELAY_NS : LONG_DELAY_NS;
	w.noise = true;
	daemon_begin(false);
	for (unsigned i = 0; i < JOBS; i++) {
		struct job *job = &w.jobs[i];

		snprintf(job->name, sizeof(job->name), "j%u", i);
		job->backend = below(4) ? TD_BACKEND_SWAP : TD_BACKEND_PLAIN;
		job->class = (uint8_t)below(TD_CLASS_N);
		job->refuses = below(6) == 0;
		if (below(6))
			strcpy(job->mem, limits[below(6)]);
		if (job->backend == TD_BACKEND_SWAP && below(5) == 0)
			strcpy(job->soft, below(2) ? "8m" : "20m");
		for (unsigned g = 0; g < QUOTA_GPUS; g++)
			job->bound[g] = UINT64_MAX;
	}
	begin_program(0);
	while (w.turns < NOISE_TURNS)
		turn();
	settle();
}

/* -- the copies of the code: each has its own globals -- */

static void load(void)
{
	static bool loaded;
	char name[64];
	int from = loaded ? -1 : open(QUOTA_AGENT, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (loaded)
		return;
	loaded = true;
	CHECK(from >= 0 && !fstat(from, &st));
	for (unsigned i = 0; i < PROGRAMS; i++) {
		int fd = memfd_create("program", MFD_CLOEXEC);
		off_t at = 0;
		void *library;

		CHECK(fd >= 0);
		while (at < st.st_size) {
			void *part =
				mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, from, 0);

			CHECK(part != MAP_FAILED &&
				write(fd, part, (size_t)st.st_size) == st.st_size);
			munmap(part, (size_t)st.st_size);
			at = st.st_size;
		}
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
		if (!library)
			printf("# %s\n", dlerror());
		CHECK(library != NULL);
		w.programs[i].code = dlsym(library, "quota_program");
		CHECK(w.programs[i].code != NULL);
	}
	close(from);
}

/* Each in a process of its own, which begins with all of the copies as they were loaded. */
static int try(void (*what)(uint64_t seed), uint64_t seed)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		what(seed);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFSIGNALED(status))
		printf("# seed %llu: signal %d\n", (unsigned long long)seed, WTERMSIG(status));
	return status;
}

/* -- what has been found so -- */

#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond))                                                                       \
			violated("%d: %s", __LINE__, #cond);                                       \
	} while (0)

/* One program with one thread, of a job with a limit. */
static void begin_script(uint8_t backend, const struct quota_op *ops, unsigned count)
{
	w.now_ns = TD_NS_PER_S;
	w.delay_ns = DELAY_NS;
	w.noise = true;
	w.script = ops;
	w.script_count = count;
	daemon_begin(false);
	for (unsigned i = 0; i < JOBS; i++)
		w.jobs[i].bound[0] = w.jobs[i].bound[1] = UINT64_MAX;
	w.jobs[0] = (struct job){
		.name = "j0", .backend = backend, .mem = "30m", .bound = {UINT64_MAX, UINT64_MAX}};
	begin_program(0);
	w.programs[0].threads = 1;
	w.programs[0].fibers[2] = (struct fiber){0};
}

static void live_for(uint64_t ns)
{
	uint64_t end_ns = w.now_ns + ns;

	while (w.now_ns < end_ns) {
		act();
		check();
	}
}

static void free_while_work_is_in_flight(uint64_t seed)
{
	static const struct quota_op ops[] = {{QUOTA_USE, 0, 0, 0, 0},
		{QUOTA_ALLOCATE, 0, 8 * MIB, 0, 0}, {QUOTA_LAUNCH, 0, 0, 500 * MS, 0},
		{QUOTA_FREE, 0, 0, 0, 0}};
	const struct td_client *client;

	w.random = seed;
	begin_script(TD_BACKEND_PLAIN, ops, 4);
	while (w.programs[0].said < 4)
		live_for(MS);
	live_for(100 * MS);
	client = td_container_of(w.node.clients.next, struct td_client, of_node);
	EXPECT(w.programs[0].has[0] == 8 * MIB && client->total.used == 8 * MIB);
	live_for(TD_NS_PER_S);
	EXPECT(!w.programs[0].has[0] && !client->total.used);
}

static void begin_while_the_daemon_is_busy(uint64_t seed)
{
	static const struct quota_op ops[] = {
		{QUOTA_USE, 0, 0, 0, 0}, {QUOTA_ALLOCATE, 0, 8 * MIB, 0, 0}};

	w.random = seed;
	begin_script(TD_BACKEND_SWAP, ops, 2);
	while (!w.lines)
		live_for(MS);
	w.lines->stops_ns = w.now_ns + 4 * TD_NS_PER_S;
	live_for(3900 * MS);
	EXPECT(!w.programs[0].has[0]);
	live_for(2 * TD_NS_PER_S);
	EXPECT(w.programs[0].has[0] == 8 * MIB);
}

TEST(what_is_freed_counts_until_the_driver_has_it_back)
{
	load();
	CHECK_EQ(try(free_while_work_is_in_flight, 1), 0);
}

/* Until the daemon knows of it: else it takes memory that another of its job may be given. */
TEST(who_comes_while_the_daemon_is_busy_takes_nothing_unasked)
{
	load();
	CHECK_EQ(try(begin_while_the_daemon_is_busy, 1), 0);
}

TEST(limits_hold_whatever_happens_and_nobody_waits_for_ever)
{
	const char *seeds = getenv("TANDEM_QUOTA_SEEDS");
	unsigned long long first = 1, count = 20;
	unsigned failed = 0;

	w.trace = getenv("TANDEM_QUOTA_TRACE") != NULL;
	if (seeds)
		CHECK_EQ(sscanf(seeds, "%llu %llu", &first, &count), 2);
	load();
	for (unsigned long long i = 0; i < count; i++)
		failed += try(live, first + i) != 0;
	CHECK_EQ(failed, 0);
}
