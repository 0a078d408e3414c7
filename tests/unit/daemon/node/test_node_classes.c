/* Classes as they change while jobs run, and what users may hold of the node in protected ones. */
#include <errno.h>

#include "daemon/node/tenant.h"
#include "unit/daemon/node_world.h"

#define MS 1000000ull

static struct td_err err;

static struct fake *job(unsigned i, const char *name, enum td_class class, uint64_t demanded)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, name, TD_BACKEND_SWAP, false);
	f->process->job->settings.class = class;
	f->spills = true;
	fake_attach(&w, f, 0, 0, demanded);
	fake_want(&w, f);
	return f;
}

static int set(uid_t uid, const char *name, const char *key, const char *value)
{
	return td_node_set_job(&w.node, td_identity_local(uid), name, key, value, w.now, &err);
}

static int check_new(uid_t uid, enum td_class class, const char *mem)
{
	return td_tenant_check_new(&w.node, td_identity_local(uid), class, mem, &err);
}

static void option(const char *key, const char *value)
{
	CHECK_EQ(td_options_set(&w.node.options, key, value, NULL), 0);
	td_node_options_changed(&w.node, w.now, key);
}

static enum td_class class_of(const struct fake *f)
{
	return f->process->job->settings.class;
}

static bool is_held(const struct fake *f)
{
	return f->word & TD_WORD_DUTY && f->pacing.duty_ppm;
}

/*
 * Checks which job is protected, and which is held for it, under either policy: by messages,
 * duties, windows, steps and limits.
 */
static void check_roles(const struct fake *protected, const struct fake *other, const char *policy)
{
	CHECK(is_open(protected) && is_open(other));
	CHECK(!is_held(protected) && is_held(other));
	CHECK_EQ(other->pacing.duty_ppm, strcmp(policy, "tandem") ? 40000 : 20000);
	CHECK(protected->pacing.steps && protected->word & TD_WORD_STEPS);
	CHECK_EQ(protected->window_ns, 0);
	CHECK_EQ(other->window_ns != 0, !strcmp(policy, "tandem"));
}

TEST(a_class_that_is_changed_counts_at_once_in_words_duties_and_windows_and_back)
{
	static const char *const policies[] = {"antman", "tandem"};

	for (unsigned i = 0; i < 2; i++) {
		struct fake *a, *b;

		begin();
		option("policy", policies[i]);
		a = job(0, "a", TD_CLASS_BESTEFFORT, 8 * MIB);
		b = job(1, "b", TD_CLASS_BESTEFFORT, 8 * MIB);
		settle(&w);
		CHECK(is_open(a) && is_open(b) && !is_held(a) && !is_held(b));
		CHECK_EQ(set(1000, "b", "class", "guaranteed"), 0);
		settle(&w);
		CHECK(is_held(a) && !is_held(b));
		for (unsigned step = 1; step < 4; step++) {
			struct td_msg msg = {.type = TD_MSG_TYPE_step};

			msg.step.steps = step;
			msg.step.step_ns = msg.step.median_ns = 100 * MS;
			msg.step.began_ns = w.now += 100 * MS;
			msg.step.unit = 1;
			CHECK_EQ(say(&w, b, &msg), 0);
			settle(&w);
		}
		check_roles(b, a, policies[i]);
		CHECK_EQ(set(1000, "b", "class", "besteffort"), 0);
		settle(&w);
		CHECK(is_open(a) && is_open(b) && !is_held(a) && !is_held(b));
		CHECK(!a->window_ns && !b->window_ns);
		CHECK_STR(td_class_name(class_of(b)), "besteffort");
	}
}

TEST(explain_says_whom_a_window_is_for_and_who_waits)
{
	struct fake *a, *b;

	begin();
	a = job(0, "a", TD_CLASS_BESTEFFORT, 8 * MIB);
	b = job(1, "b", TD_CLASS_GUARANTEED, 8 * MIB);
	settle(&w);
	CHECK(is_open(a) && is_open(b) && a->word & TD_WORD_WINDOW);
	CHECK(!strstr(explained(&w, a), "wait"));
	CHECK(strstr(explained(&w, a), "It may have 2.0 ms of work in flight, so that a guaranteed "
				       "job beside it gets the GPU soon."));
	CHECK(!strstr(explained(&w, b), "wait") && !strstr(explained(&w, b), "in flight"));
	begin();
	a = job(0, "a", TD_CLASS_ONLINE, 48 * MIB);
	settle(&w);
	CHECK(!strstr(explained(&w, a), "wait") && !strstr(explained(&w, a), "in flight"));
	job(1, "b", TD_CLASS_ONLINE, 48 * MIB);
	settle(&w);
	CHECK(is_open(a) && a->word & TD_WORD_WINDOW);
	CHECK(strstr(explained(&w, a), "Other jobs wait for its GPU."));
	CHECK(strstr(explained(&w, a), "in flight: an online job waits for its GPU."));
	/* Who waits is said where nothing is held to a window, too. */
	begin();
	a = job(0, "a", TD_CLASS_BESTEFFORT, 48 * MIB);
	settle(&w);
	job(1, "b", TD_CLASS_BESTEFFORT, 48 * MIB);
	settle(&w);
	CHECK(is_open(a) && !(a->word & TD_WORD_WINDOW));
	CHECK(strstr(explained(&w, a), "Other jobs wait for its GPU."));
}

TEST(a_class_that_is_changed_counts_at_once_in_memory)
{
	struct fake *a, *b;

	begin();
	option("policy", "antman");
	a = job(0, "a", TD_CLASS_BESTEFFORT, 48 * MIB);
	b = job(1, "b", TD_CLASS_BESTEFFORT, 48 * MIB);
	settle(&w);
	CHECK(b->slot[0].limit < 48 * MIB);
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), 0);
	settle(&w);
	w.now += 2000 * MS;
	settle(&w);
	CHECK(b->slot[0].limit >= 48 * MIB);
	CHECK_EQ(b->slot[0].resident, 48 * MIB);
	CHECK(a->slot[0].resident <= 16 * MIB);
	CHECK(within_capacity(&w));
	CHECK_EQ(set(1000, "b", "class", "besteffort"), 0);
	CHECK_EQ(set(1000, "a", "class", "guaranteed"), 0);
	settle(&w);
	w.now += 2000 * MS;
	settle(&w);
	CHECK_EQ(a->slot[0].resident, 48 * MIB);
	CHECK(within_capacity(&w));
}

/* Under tandem, where the rest of the memory does not lie on the host. */
TEST(a_class_that_is_changed_counts_at_once_in_the_lock)
{
	struct fake *a, *b;

	begin();
	a = program(0, "a", 48 * MIB);
	fake_want(&w, a);
	settle(&w);
	b = program(1, "b", 48 * MIB);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(a) && !is_open(b));
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), 0);
	settle(&w);
	CHECK(!is_open(a) && is_open(b));
	w.now += 3600 * 1000 * MS;
	settle(&w);
	CHECK(!is_open(a) && is_open(b)); /* no turn ends that */
	CHECK_EQ(set(1000, "b", "class", "besteffort"), 0);
	settle(&w);
	CHECK(is_open(a) && !is_open(b)); /* its turn was over long ago */
}

TEST(what_is_another_users_is_not_changed)
{
	begin();
	struct fake *a = job(0, "a", TD_CLASS_BESTEFFORT, MIB);

	CHECK_EQ(set(1001, "a", "class", "guaranteed"), -ENOENT);
	CHECK_STR(err.msg, "there is no job \"a\": see tandem ps");
	CHECK_EQ(class_of(a), TD_CLASS_BESTEFFORT);
	CHECK_EQ(set(0, "a", "class", "guaranteed"), 0);
	CHECK_EQ(class_of(a), TD_CLASS_GUARANTEED);
}

static struct fake *comes(unsigned i, uid_t uid, const char *name, const struct td_msg_hello *said)
{
	struct td_msg_hello hello = *said;
	struct fake *f = &w.fakes[i];

	hello.weight = 1;
	hello.backend = TD_BACKEND_SWAP;
	strcpy(hello.job, name);
	strcpy(hello.name, name);
	memset(f, 0, sizeof(*f));
	f->process =
		td_node_hello(&w.node, f, 100 + (pid_t)i, td_identity_local(uid), &hello, w.now);
	return f;
}

/* A process by that name is another user's. */
static struct fake *others_job(unsigned i, const char *name, enum td_class class)
{
	return comes(i, 1001, name, &(struct td_msg_hello){.class = (uint8_t) class});
}

TEST(ones_own_job_is_changed_beside_another_users_of_that_name)
{
	begin();
	CHECK_EQ(td_options_set(&w.node.options, "quota.gpus", "none", NULL), 0);
	struct fake *theirs = others_job(0, "train", TD_CLASS_BESTEFFORT),
		    *mine = job(1, "train", TD_CLASS_BESTEFFORT, MIB);

	settle(&w);
	CHECK_EQ(set(1000, "train", "class", "guaranteed"), 0);
	CHECK_EQ(class_of(mine), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(theirs), TD_CLASS_BESTEFFORT);
	CHECK(!theirs->settings_told);
	CHECK_EQ(set(1002, "train", "class", "besteffort"), -ENOENT);
	CHECK_EQ(set(1002, "nobody's", "class", "besteffort"), -ENOENT);
	CHECK_EQ(set(0, "train", "weight", "7"), 0); /* root: all of them */
	CHECK_EQ(mine->process->job->settings.weight, 7);
	CHECK_EQ(theirs->process->job->settings.weight, 7);
	CHECK_EQ(set(1000, "train", "class", "none"), -EINVAL);
}

TEST(another_users_job_of_that_name_costs_one_no_quota)
{
	begin();
	CHECK_EQ(td_options_set(&w.node.options, "quota.gpus", "none", NULL), 0);
	struct fake *theirs = others_job(0, "train", TD_CLASS_GUARANTEED),
		    *more = others_job(1, "more", TD_CLASS_BESTEFFORT),
		    *mine = job(2, "train", TD_CLASS_BESTEFFORT, MIB);

	strcpy(more->process->name, "train");
	settle(&w);
	option("quota.jobs", "1");
	CHECK_EQ(set(1000, "train", "class", "guaranteed"), 0); /* they have no room for it */
	CHECK_EQ(class_of(mine), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(more), TD_CLASS_BESTEFFORT);
	CHECK_EQ(class_of(theirs), TD_CLASS_GUARANTEED);
	CHECK_EQ(set(0, "train", "class", "guaranteed"), -EDQUOT);
	CHECK_EQ(class_of(more), TD_CLASS_BESTEFFORT);
}

/* -- quotas -- */

TEST(a_job_beyond_the_number_is_refused_with_what_is_used_and_allowed)
{
	begin();
	CHECK_EQ(td_options_set(&w.node.options, "quota.gpus", "none", NULL), 0);
	struct fake *b = job(1, "b", TD_CLASS_BESTEFFORT, MIB);

	job(0, "a", TD_CLASS_GUARANTEED, MIB);
	option("quota.jobs", "1");
	settle(&w);
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), -EDQUOT);
	CHECK(strstr(err.msg, "user 1000 has 1 of 1 (quota.jobs), and this would make 2."));
	CHECK_EQ(class_of(b), TD_CLASS_BESTEFFORT);
	CHECK_EQ(set(1000, "b", "class", "online"), -EDQUOT); /* that is no way round */
	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, ""), -EDQUOT);
	CHECK_EQ(check_new(1000, TD_CLASS_BESTEFFORT, ""), 0);
	CHECK_EQ(check_new(1001, TD_CLASS_GUARANTEED, ""), 0);
	CHECK_EQ(set(1000, "a", "class", "besteffort"), 0);
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), 0);
}

TEST(who_is_refused_is_advised_what_would_help)
{
	begin();
	job(0, "a", TD_CLASS_GUARANTEED, MIB);
	job(1, "b", TD_CLASS_BESTEFFORT, MIB);
	option("quota.jobs", "1");
	settle(&w);
	/* by their number: less memory helps nobody */
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), -EDQUOT);
	CHECK(!strstr(err.msg, "memory") && strstr(err.msg, "Wait") &&
		strstr(err.msg, "upgrade=guaranteed"));
	/* by their GPUs: it does, and so does waiting */
	option("quota.jobs", "none");
	option("quota.gpus", "1.5");
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), -EDQUOT);
	CHECK(strstr(err.msg, "has 1 of 1.5 GPUs") && strstr(err.msg, "this would make 2."));
	CHECK(strstr(err.msg, "less memory (mem)") && strstr(err.msg, "upgrade=guaranteed"));
	/* more than all of the quota: waiting does not */
	option("quota.gpus", "0.5");
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), -EDQUOT);
	CHECK(strstr(err.msg, "less memory (mem)") && !strstr(err.msg, "upgrade"));
	/* none is allowed: nothing does */
	option("quota.gpus", "0");
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), -EDQUOT);
	CHECK(strstr(err.msg, "(quota.gpus=0)") && !strstr(err.msg, "memory") &&
		!strstr(err.msg, "upgrade"));
	option("quota.jobs", "0");
	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, "8m"), -EDQUOT);
	CHECK(strstr(err.msg, "(quota.jobs=0)") && !strstr(err.msg, "memory"));
}

TEST(a_job_holds_the_part_of_a_gpu_that_its_limit_is)
{
	begin();
	struct fake *a = job(0, "a", TD_CLASS_BESTEFFORT, MIB),
		    *b = job(1, "b", TD_CLASS_BESTEFFORT, MIB);

	option("quota.gpus", "1.25");
	settle(&w);
	CHECK_EQ(set(1000, "a", "mem", "16m"), 0);
	CHECK_EQ(set(1000, "a", "class", "guaranteed"), 0);
	CHECK_EQ(a->process->job->charged_ppm, 250000);
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), 0);
	CHECK_EQ(b->process->job->charged_ppm, 1000000);
	CHECK_EQ(set(1000, "a", "mem", "17m"), -EDQUOT);
	CHECK_EQ(set(1000, "a", "mem", "none"), -EDQUOT);
	CHECK_EQ(set(1000, "a", "mem", "8m"), 0);
	CHECK_EQ(set(1000, "a", "weight", "3"), 0);
	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, "12.5%"), 0);
	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, "8m"), 0);
	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, "9m"), -EDQUOT);
	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, "much"), -EINVAL);
	CHECK(strstr(err.msg, "much"));
}

static void has(struct fake *f, uint64_t bytes)
{
	f->slot[0].demanded = f->slot[0].resident = bytes;
	fake_memory(&w, f, 0);
	settle(&w);
}

TEST(a_limit_lowered_below_what_a_job_has_makes_no_room)
{
	begin();
	option("quota.gpus", "1");
	struct fake *a = job(0, "a", TD_CLASS_GUARANTEED, MIB),
		    *b = job(1, "b", TD_CLASS_BESTEFFORT, MIB);

	settle(&w);
	has(a, 48 * MIB);
	CHECK_EQ(set(1000, "b", "mem", "32m"), 0);
	CHECK_EQ(set(1000, "a", "mem", "8m"), 0);
	CHECK_EQ(a->process->job->charged_ppm, 750000);
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), -EDQUOT);
	settle(&w);
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), -EDQUOT);
	CHECK_EQ(set(1000, "b", "upgrade", "guaranteed"), 0);
	has(a, 33 * MIB);
	CHECK_EQ(class_of(b), TD_CLASS_BESTEFFORT);
	has(a, 32 * MIB); /* as it frees, others get the room */
	CHECK_EQ(class_of(b), TD_CLASS_GUARANTEED);
	has(a, MIB);
	CHECK_EQ(a->process->job->charged_ppm, 125000);
}

TEST(what_a_job_has_beyond_its_limit_counts_when_it_becomes_protected)
{
	begin();
	option("quota.gpus", "0.5");
	struct fake *a = job(0, "a", TD_CLASS_BESTEFFORT, MIB);

	settle(&w);
	has(a, 48 * MIB);
	CHECK_EQ(set(1000, "a", "mem", "8m"), 0);
	CHECK_EQ(set(1000, "a", "class", "guaranteed"), -EDQUOT);
	has(a, 8 * MIB);
	CHECK_EQ(set(1000, "a", "class", "guaranteed"), 0);
	CHECK_EQ(a->process->job->charged_ppm, 125000);
	has(a, 40 * MIB); /* it was under way when the limit came */
	CHECK_EQ(class_of(a), TD_CLASS_BESTEFFORT);
	CHECK(td_job_is_to_be_upgraded(a->process->job));
}

TEST(two_jobs_of_one_name_are_counted_together)
{
	begin();
	struct fake *a = job(0, "a", TD_CLASS_BESTEFFORT, MIB),
		    *b = job(1, "b", TD_CLASS_BESTEFFORT, MIB);

	strcpy(a->process->name, "both");
	strcpy(b->process->name, "both");
	option("quota.jobs", "1");
	CHECK_EQ(set(1000, "both", "class", "guaranteed"), -EDQUOT);
	CHECK_EQ(class_of(a), TD_CLASS_BESTEFFORT);
	option("quota.jobs", "2");
	CHECK_EQ(set(1000, "both", "class", "guaranteed"), 0);
}

TEST(who_comes_without_room_is_besteffort_until_there_is_some)
{
	begin();
	option("quota.jobs", "1");
	struct fake *a = job(0, "a", TD_CLASS_GUARANTEED, MIB);

	settle(&w);
	struct fake *b = job(1, "b", TD_CLASS_GUARANTEED, MIB),
		    *c = job(2, "c", TD_CLASS_ONLINE, MIB),
		    *d = job(3, "d", TD_CLASS_BESTEFFORT, MIB);

	settle(&w);
	CHECK_EQ(class_of(a), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(b), TD_CLASS_BESTEFFORT);
	CHECK_EQ(class_of(c), TD_CLASS_BESTEFFORT);
	CHECK(b->settings_told && c->settings_told && !a->settings_told);
	CHECK(strstr(
		explained(&w, b), "until its user's quota has room, and guaranteed from then on"));
	CHECK(is_open(b) && is_open(c)); /* the reservation keeps nobody out */
	CHECK_EQ(set(1000, "d", "upgrade", "guaranteed"), 0);
	fake_dies(&w, a);
	settle(&w);
	CHECK_EQ(class_of(b), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(c), TD_CLASS_BESTEFFORT);
	CHECK(!b->process->job->settings.upgrade);
	CHECK_EQ(set(1000, "b", "class", "besteffort"), 0); /* by hand, so it stays */
	settle(&w);
	CHECK_EQ(class_of(b), TD_CLASS_BESTEFFORT);
	CHECK_EQ(class_of(c), TD_CLASS_ONLINE);
	CHECK_EQ(class_of(d), TD_CLASS_BESTEFFORT);
	option("quota.jobs", "none");
	settle(&w);
	CHECK_EQ(class_of(d), TD_CLASS_GUARANTEED);
}

TEST(a_small_job_does_not_overtake_a_large_one_of_the_same_user)
{
	begin();
	option("quota.gpus", "1");
	job(0, "a", TD_CLASS_BESTEFFORT, MIB);

	CHECK_EQ(set(1000, "a", "mem", "50%"), 0);
	CHECK_EQ(set(1000, "a", "class", "guaranteed"), 0);
	struct fake *large = job(1, "large", TD_CLASS_BESTEFFORT, MIB),
		    *small = job(2, "small", TD_CLASS_BESTEFFORT, MIB);

	CHECK_EQ(set(1000, "small", "mem", "10%"), 0);
	CHECK_EQ(set(1000, "large", "upgrade", "guaranteed"), 0);
	CHECK_EQ(set(1000, "small", "upgrade", "guaranteed"), 0);
	settle(&w);
	CHECK_EQ(class_of(large), TD_CLASS_BESTEFFORT);
	CHECK_EQ(class_of(small), TD_CLASS_BESTEFFORT);
	CHECK_EQ(set(1000, "large", "upgrade", "none"), 0);
	settle(&w);
	CHECK_EQ(class_of(small), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(large), TD_CLASS_BESTEFFORT);
	CHECK_EQ(set(1000, "large", "upgrade", "guaranteed"), 0);
	CHECK_EQ(set(1000, "large", "class", "besteffort"), 0); /* by hand: that is meant to stay */
	CHECK(!large->process->job->settings.upgrade);
}

/* `first` is protected, `large` waits for all of a GPU. */
static struct fake *wait_for_a_gpu(void)
{
	struct fake *large;

	begin();
	option("quota.gpus", "1");
	job(0, "first", TD_CLASS_BESTEFFORT, MIB);
	CHECK_EQ(set(1000, "first", "mem", "50%"), 0);
	CHECK_EQ(set(1000, "first", "class", "guaranteed"), 0);
	large = job(1, "large", TD_CLASS_BESTEFFORT, MIB);
	CHECK_EQ(set(1000, "large", "upgrade", "guaranteed"), 0);
	settle(&w);
	return large;
}

TEST(a_newcomer_does_not_overtake_who_waits_for_an_upgrade)
{
	const struct fake *large = wait_for_a_gpu();
	struct td_msg_hello hello = {.class = TD_CLASS_GUARANTEED, .mem = "10%"};
	struct fake *small;

	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, "10%"), -EDQUOT);
	CHECK(strstr(err.msg, "\"large\"") && strstr(err.msg, "upgrade=guaranteed"));
	CHECK_EQ(check_new(1001, TD_CLASS_GUARANTEED, "10%"), 0);
	small = comes(2, 1000, "small", &hello);
	settle(&w);
	CHECK_EQ(class_of(small), TD_CLASS_BESTEFFORT);
	CHECK(td_job_is_to_be_upgraded(small->process->job));
	fake_dies(&w, &w.fakes[0]);
	settle(&w);
	CHECK_EQ(class_of(large), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(small), TD_CLASS_BESTEFFORT);
	option("quota.gpus", "2");
	settle(&w);
	CHECK_EQ(class_of(small), TD_CLASS_GUARANTEED);
}

TEST(what_can_never_be_upgraded_keeps_nobody_behind_it)
{
	struct fake *large = wait_for_a_gpu(), *small = job(2, "small", TD_CLASS_BESTEFFORT, MIB),
		    *third;
	struct td_msg_hello hello = {.class = TD_CLASS_GUARANTEED, .mem = "10%"};

	CHECK_EQ(set(1000, "small", "mem", "10%"), 0);
	CHECK_EQ(set(1000, "small", "upgrade", "guaranteed"), 0);
	settle(&w);
	CHECK_EQ(class_of(small), TD_CLASS_BESTEFFORT);
	option("quota.gpus", "0.75"); /* large asks for one */
	settle(&w);
	CHECK_EQ(class_of(small), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(large), TD_CLASS_BESTEFFORT);
	CHECK(strstr(explained(&w, large), "exceed its user's whole quota"));
	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, "10%"), 0);
	third = comes(3, 1000, "third", &hello);
	settle(&w);
	CHECK_EQ(class_of(third), TD_CLASS_GUARANTEED);
	/* It queues again when it has a chance. */
	CHECK_EQ(set(1000, "large", "mem", "75%"), 0);
	CHECK_EQ(check_new(1000, TD_CLASS_GUARANTEED, "5%"), -EDQUOT);
}

TEST(the_order_of_those_who_wait_outlives_the_daemon)
{
	static const char *const names[] = {"a", "b", "c"};
	struct td_msg_hello hello = {
		.class = TD_CLASS_BESTEFFORT, .upgrade = 1 + TD_CLASS_GUARANTEED};
	uint64_t arrived_ns[3];
	struct fake *back[3];

	begin();
	for (unsigned i = 0; i < 3; i++) {
		w.now += MS;
		arrived_ns[i] = comes(i, 1000, names[i], &hello)->process->job->arrived_ns;
		CHECK_EQ(arrived_ns[i], w.now);
		w.now += MS;
		/* a second process is no later than its job */
		CHECK_EQ(comes(4 + i, 1000, names[i], &hello)->process->job->arrived_ns,
			arrived_ns[i]);
	}
	begin();
	w.now += 1000 * MS;
	option("quota.jobs", "0");
	for (unsigned i = 3; i-- > 0;) { /* the last one is the first to be back */
		hello.arrived_ns = arrived_ns[i];
		back[i] = comes(i, 1000, names[i], &hello);
	}
	hello.arrived_ns = w.now + 1;
	CHECK_EQ(comes(3, 1000, "future", &hello)->process->job->arrived_ns, w.now);
	for (unsigned n = 1; n <= 3; n++) {
		option("quota.jobs", (const char[]){(char)('0' + n), 0});
		settle(&w);
		for (unsigned i = 0; i < 3; i++)
			CHECK_EQ(class_of(back[i]),
				i < n ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT);
	}
}

TEST(who_was_admitted_stays_so_under_the_next_daemon_and_the_oldest_process_may_be_the_last_back)
{
	struct td_msg_hello waits = {.class = TD_CLASS_BESTEFFORT,
				    .upgrade = 1 + TD_CLASS_GUARANTEED},
			    has = {.class = TD_CLASS_GUARANTEED};
	struct fake *admitted, *waiting, *newcomer;

	begin();
	option("quota.jobs", "1");
	newcomer = comes(0, 1000, "newcomer", &has);
	waits.arrived_ns = w.now - 3;
	waiting = comes(1, 1000, "waiting", &waits);
	has.arrived_ns = w.now - 1;
	admitted = comes(2, 1000, "admitted", &has);
	settle(&w);
	CHECK_EQ(class_of(admitted), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(waiting), TD_CLASS_BESTEFFORT);
	CHECK_EQ(class_of(newcomer), TD_CLASS_BESTEFFORT);
	waits.arrived_ns = w.now - 2;
	comes(3, 1000, "newcomer", &waits);
	CHECK_EQ(newcomer->process->job->arrived_ns, w.now - 2);
	waits.arrived_ns = w.now - 4;
	comes(4, 1000, "newcomer", &waits);
	CHECK_EQ(newcomer->process->job->arrived_ns, w.now - 4);
	fake_dies(&w, admitted);
	settle(&w);
	CHECK_EQ(class_of(newcomer), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(waiting), TD_CLASS_BESTEFFORT);
}

TEST(a_quota_that_is_lowered_takes_nothing_away)
{
	begin();
	struct fake *a = job(0, "a", TD_CLASS_GUARANTEED, MIB),
		    *b = job(1, "b", TD_CLASS_GUARANTEED, MIB);

	settle(&w);
	option("quota.jobs", "0");
	option("quota.gpus", "0.5");
	settle(&w);
	CHECK_EQ(class_of(a), TD_CLASS_GUARANTEED);
	CHECK_EQ(class_of(b), TD_CLASS_GUARANTEED);
	CHECK_EQ(set(1000, "a", "mem", "8m"), 0);       /* less is no more than before */
	CHECK_EQ(set(1000, "a", "mem", "9m"), -EDQUOT); /* but more is */
}

TEST(a_second_gpu_counts_and_one_beyond_the_quota_makes_the_job_besteffort)
{
	begin();
	option("quota.gpus", "2");
	struct fake *a = job(0, "a", TD_CLASS_GUARANTEED, MIB),
		    *b = job(1, "b", TD_CLASS_BESTEFFORT, MIB);

	settle(&w);
	fake_attach(&w, a, 1, 1, MIB);
	settle(&w);
	CHECK_EQ(class_of(a), TD_CLASS_GUARANTEED);
	CHECK_EQ(a->process->job->charged_ppm, 2000000);
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), -EDQUOT);
	fake_dies(&w, a);
	settle(&w);
	CHECK_EQ(set(1000, "b", "class", "guaranteed"), 0);
	struct fake *c = job(2, "c", TD_CLASS_GUARANTEED, MIB);

	settle(&w);
	CHECK_EQ(class_of(c), TD_CLASS_GUARANTEED);
	fake_attach(&w, c, 1, 1, MIB);
	settle(&w);
	CHECK_EQ(class_of(c), TD_CLASS_BESTEFFORT);
	CHECK_EQ(class_of(b), TD_CLASS_GUARANTEED);
	fake_dies(&w, b);
	settle(&w);
	CHECK_EQ(class_of(c), TD_CLASS_GUARANTEED);
}

/*
 * Besteffort jobs have the unused part of a guaranteed job's memory, which returns when the job
 * asks.
 */
TEST(besteffort_work_uses_what_is_reserved_until_it_is_asked_for)
{
	begin();
	option("policy", "antman");
	struct fake *b = job(0, "b", TD_CLASS_BESTEFFORT, 40 * MIB),
		    *a = job(1, "a", TD_CLASS_GUARANTEED, 4 * MIB);

	CHECK_EQ(set(1000, "a", "mem", "48m"), 0);
	for (unsigned step = 1; step < 60; step++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_step};

		msg.step.steps = step;
		msg.step.step_ns = msg.step.median_ns = 100 * MS;
		msg.step.began_ns = w.now += 100 * MS;
		CHECK_EQ(say(&w, a, &msg), 0);
		settle(&w);
	}
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(b->slot[0].resident, 40 * MIB);
	need(a, 40 * MIB);
	settle(&w);
	CHECK(a->slot[0].answer > 0); /* at once: no time has passed */
	w.now += 2000 * MS;
	settle(&w);
	CHECK_EQ(a->slot[0].resident, 44 * MIB);
	CHECK(b->slot[0].resident <= 20 * MIB && is_open(b));
	CHECK(within_capacity(&w));
}

TEST(quotas_are_read_as_they_are_typed)
{
	static const char *const bad[][2] = {{"quota.jobs", "1.5"}, {"quota.jobs", "-1"},
		{"quota.jobs", "9999"}, {"quota.gpus", "65"}, {"quota.gpus", "1x"},
		{"quota.gpus", ""}, {"quota.gpus", "99999999999999999999"}};
	struct td_options options;

	td_options_init(&options);
	CHECK_EQ(options.quota_jobs, UINT32_MAX);
	CHECK_EQ(options.quota_gpus_ppm, TD_QUOTA_AUTO);
	CHECK_EQ(td_options_set(&options, "quota.gpus", "none", NULL), 0);
	CHECK_EQ(options.quota_gpus_ppm, UINT64_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(td_options_set(&options, bad[i][0], bad[i][1], &err) < 0);
		CHECK(strstr(err.msg, bad[i][1]));
	}
	CHECK_EQ(td_options_set(&options, "quota.gpus", "1.5", NULL), 0);
	CHECK_EQ(options.quota_gpus_ppm, 1500000);
	CHECK_EQ(td_options_set(&options, "quota.jobs", "0", NULL), 0);
	CHECK_EQ(options.quota_jobs, 0);
	CHECK_EQ(options.quota_gpus_ppm, 1500000);
}
