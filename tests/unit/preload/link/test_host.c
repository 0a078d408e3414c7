/*
 * The host memory that the process may pin: its threads ask and take, the agent speaks with a
 * daemon that the test plays.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>

#include "base/time.h"
#include "preload/link/host.h"
#include "proto/proto.h"
#include "proto/words.h"

#define MIB   (1ull << 20)
#define BOUND (10 * TD_NS_PER_S) /* only a hang reaches it */

/* -- the daemon -- */

static struct {
	struct {
		uint32_t ticket;
		uint64_t wanted_bytes, used_bytes;
	} heard;
	unsigned messages;
	uint32_t seq;
} d;

static void hear(const struct td_msg *msg)
{
	if (msg->type == TD_MSG_TYPE_ask) {
		d.heard.ticket = msg->ask.ticket;
		d.heard.wanted_bytes = msg->ask.bytes;
	} else {
		d.heard.used_bytes = msg->used.host_bytes;
	}
	d.messages++;
}

static void grant(uint64_t bytes, uint32_t ticket)
{
	const struct td_msg_grant msg = {.slot = TD_SLOT_HOST,
		.seq = ++d.seq,
		.host_bytes = bytes,
		.ticket = ticket,
		.verdict = bytes >= d.heard.wanted_bytes ? TD_ANSWER_OK : TD_ANSWER_NO};

	(void)td_host_message(&msg);
}

/* -- the agent -- */

static _Atomic uint64_t demand;

static uint64_t wanted(void)
{
	uint64_t bytes = atomic_load(&demand), expected = td_host_expected();

	return bytes > expected ? bytes : expected;
}

static void begin(uint64_t bytes)
{
	td_host_forked();
	atomic_store(&demand, 0);
	d.seq = 0;
	grant(bytes, 0);
	td_host_step(hear, wanted);
}

/* -- a thread of the program -- */

static struct {
	pthread_t thread;
	uint64_t bytes;
	_Atomic bool ended;
	bool takes, granted; /* takes: and does not only ask */
} asker;

static void *ask(void *arg)
{
	(void)arg;
	asker.granted = asker.takes ? td_host_take_asking(asker.bytes, UINT64_MAX)
				    : td_host_reserve(asker.bytes);
	atomic_store(&asker.ended, true);
	return NULL;
}

/* Until its question is there. */
static void asks(uint64_t bytes)
{
	uint64_t end = td_time_now_ns() + BOUND;
	uint32_t before = d.heard.ticket;

	asker.bytes = bytes;
	atomic_store(&asker.ended, false);
	CHECK_EQ(pthread_create(&asker.thread, NULL, ask, NULL), 0);
	while (d.heard.ticket == before && td_time_now_ns() < end)
		td_host_step(hear, wanted);
}

static bool is_told(void)
{
	uint64_t end = td_time_now_ns() + BOUND;

	while (!atomic_load(&asker.ended)) {
		CHECK(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS / 10);
	}
	pthread_join(asker.thread, NULL);
	return asker.granted;
}

TEST(who_asks_waits_for_the_answer_and_goes_by_what_is_granted_with_it)
{
	begin(0);
	atomic_store(&demand, 8 * MIB);
	asks(8 * MIB);
	CHECK_EQ(d.heard.wanted_bytes, 8 * MIB);
	grant(4 * MIB, d.heard.ticket - 1); /* not the answer */
	CHECK(!atomic_load(&asker.ended));
	grant(4 * MIB, d.heard.ticket);
	CHECK(!is_told());
	asks(8 * MIB);
	grant(8 * MIB, d.heard.ticket);
	CHECK(is_told());
	CHECK(td_host_reserve(8 * MIB)); /* that needs no question */
}

TEST(who_takes_more_than_is_granted_asks_for_it_beside_what_is_taken)
{
	begin(4 * MIB);
	CHECK(td_host_take_asking(4 * MIB, UINT64_MAX));
	asker.takes = true;
	asks(8 * MIB);
	CHECK_EQ(d.heard.wanted_bytes, 12 * MIB);
	grant(11 * MIB, d.heard.ticket);
	CHECK(!is_told());
	CHECK_EQ(td_host_expected(), 0);
	asks(8 * MIB);
	grant(12 * MIB, d.heard.ticket);
	CHECK(is_told());
	asker.takes = false;
	td_host_step(hear, wanted);
	CHECK_EQ(d.heard.used_bytes, 12 * MIB);
	CHECK_EQ(d.heard.wanted_bytes, 0);
	CHECK(!td_host_take_asking(1, 12 * MIB)); /* his own limit: nobody is asked */
}

/* Nobody is there any more who would answer the question, which the daemon may never have seen. */
TEST(who_waits_for_an_answer_goes_on_when_the_limit_goes)
{
	begin(0);
	asks(8 * MIB);
	grant(UINT64_MAX, 0);
	CHECK(is_told());
}

TEST(who_waits_for_an_answer_goes_on_when_the_daemon_goes)
{
	begin(0);
	asks(8 * MIB);
	td_host_anew();
	CHECK(is_told());
	CHECK(td_host_reserve(UINT64_MAX));
}

static uint64_t wanted_before_somebody_else_asks(void)
{
	uint64_t bytes = atomic_load(&demand);

	atomic_fetch_add(&demand, 8 * MIB);
	CHECK(!td_host_ready(8 * MIB)); /* a question */
	return bytes;
}

/*
 * Otherwise the answer to the first question would be taken for one to the second, and refuse what
 * was never asked for.
 */
TEST(a_question_that_comes_while_what_is_wanted_is_being_worked_out_is_not_in_that_message)
{
	uint32_t ticket;

	begin(0);
	ticket = d.heard.ticket;
	atomic_store(&demand, 1);
	td_host_step(hear, wanted_before_somebody_else_asks);
	CHECK_EQ(d.heard.wanted_bytes, 1);
	CHECK_EQ(d.heard.ticket, ticket);
	td_host_step(hear, wanted);
	CHECK_EQ(d.heard.wanted_bytes, 8 * MIB + 1);
	CHECK_EQ(d.heard.ticket, ticket + 1);
}

TEST(nothing_is_said_twice_and_nothing_without_a_limit)
{
	unsigned before;

	begin(0);
	before = d.messages;
	td_host_step(hear, wanted);
	CHECK_EQ(d.messages, before);
	grant(MIB, 0);
	td_host_step(hear, wanted);
	CHECK_EQ(d.messages, before + 1);
	grant(UINT64_MAX, 0);
	td_host_step(hear, wanted);
	CHECK_EQ(d.messages, before + 1);
}

/* -- many threads -- */

#define THREADS 4
#define ROUNDS  300

static _Atomic unsigned refused, running;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

/* As swap_host.c: what it needs is wanted before it asks. */
static void *allocate_and_free(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		atomic_fetch_add(&demand, MIB);
		pthread_mutex_lock(&asking);
		if (!td_host_reserve(atomic_load(&demand)))
			atomic_fetch_add(&refused, 1);
		pthread_mutex_unlock(&asking);
		atomic_fetch_sub(&demand, MIB);
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

TEST(of_threads_that_all_fit_none_is_refused)
{
	pthread_t threads[THREADS];

	begin(0);
	atomic_store(&refused, 0);
	atomic_store(&running, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, allocate_and_free, NULL), 0);
	while (atomic_load(&running)) {
		unsigned before = d.messages;

		td_host_step(hear, wanted);
		/* Others lack it: no more than was asked for, and less when less is. */
		if (d.messages != before)
			grant(d.heard.wanted_bytes, d.heard.ticket);
		else
			sched_yield();
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(atomic_load(&refused), 0);
}

/* -- what is taken -- */

#define LOWERINGS 300

static uint64_t used(void)
{
	td_host_step(hear, wanted);
	return d.heard.used_bytes;
}

static volatile uint64_t said;
static volatile sig_atomic_t lowered;

/* The agent, at any instruction of a thread that takes. */
static void lower(int signal)
{
	(void)signal;
	grant(0, 0);
	said = used();
	lowered = 1;
}

/* The daemon gives what is not used to others. */
TEST(what_was_not_in_what_the_agent_said_under_a_lowered_grant_is_not_taken_after_it)
{
	const struct sigaction action = {.sa_handler = lower};
	unsigned late = 0;

	begin(UINT64_MAX);
	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	for (unsigned i = 0; i < LOWERINGS; i++) {
		const struct itimerval once = {.it_value.tv_usec = 20 + i % 7};

		grant(UINT64_MAX, 0);
		lowered = 0;
		CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
		while (!lowered)
			(void)td_host_take(1, UINT64_MAX);
		late += used() > said;
	}
	signal(SIGALRM, SIG_DFL);
	CHECK_EQ(late, 0);
}

TEST(nobody_takes_more_than_his_own_limit_or_the_grant)
{
	begin(8 * MIB);
	CHECK(!td_host_take(9 * MIB, UINT64_MAX));
	CHECK(!td_host_take(5 * MIB, 4 * MIB));
	CHECK(td_host_take(4 * MIB, 4 * MIB));
	CHECK(!td_host_take(1, 4 * MIB));
	CHECK(td_host_take(4 * MIB, UINT64_MAX));
	CHECK(!td_host_take(1, UINT64_MAX));
	td_host_give(8 * MIB);
	CHECK_EQ(used(), 0);
}
