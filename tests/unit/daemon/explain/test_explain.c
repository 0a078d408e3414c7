/* The table of causes, and what its templates become. */
#include "daemon/explain/causes.h"
#include "daemon/explain/facts.h"
#include "unit/daemon/node_world.h"

static const char *const names[] = {
#define FACT(kind, name) #name,
#include "daemon/explain/facts.def"
#undef FACT
};

static bool is_fact(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], name, len))
			return true;
	return false;
}

static void check_template(const char *template)
{
	CHECK(!*template || template[strlen(template) - 1] == '.');
	for (const char *at = template; (at = strchr(at, '{')); at++) {
		size_t len = strcspn(at + 1, "}");

		CHECK(at[1 + len] == '}');
		CHECK(is_fact(at + 1, len));
	}
}

TEST(every_figure_that_a_cause_quotes_is_a_fact_and_ids_are_unique)
{
	for (const struct td_cause *cause = td_causes; cause->id; cause++) {
		CHECK(*cause->text);
		CHECK(strlen(cause->id) <= 26); /* the column's width */
		check_template(cause->text);
		check_template(cause->todo);
		for (const struct td_cause *other = cause + 1; other->id; other++)
			CHECK(strcmp(cause->id, other->id));
	}
}

TEST(a_template_is_filled_and_its_numbers_are_listed)
{
	static const char template[] = "{holder} has {job_bytes} of {limit_bytes}, {duty_ppm}, "
				       "{waited_ns}, {pid}.";
	struct td_facts facts = {.holder = "a (pid 1)", .job_bytes = 12 * MIB, .pid = 7};
	char text[TD_STR_MAX + 1];

	facts.limit_bytes = 20 * MIB;
	facts.duty_ppm = 300000;
	facts.waited_ns = 40000000;
	CHECK_STR(td_facts_fill(&facts, template, text, sizeof(text)),
		"a (pid 1) has 12.0 MiB of 20.0 MiB, 30%, 40.0 ms, 7.");
	CHECK_STR(td_facts_list(&facts, template, text, sizeof(text)),
		"job_bytes=12582912 limit_bytes=20971520 duty_ppm=300000 waited_ns=40000000 pid=7");
	CHECK_STR(td_facts_list(&facts, "none", text, sizeof(text)), "");
}

TEST(a_buffer_that_is_short_is_filled_and_no_more)
{
	struct td_facts facts = {.holder = "a name", .limit_bytes = UINT64_MAX, .pid = 7};
	static const char template[] = "{holder} {limit_bytes} {holder} {pid}";
	char text[64];

	for (size_t len = 1; len < 40; len++) {
		memset(text, 'x', sizeof(text));
		CHECK(strlen(td_facts_fill(&facts, template, text, len)) < len);
		CHECK_EQ(text[len], 'x');
		memset(text, 'x', sizeof(text));
		CHECK(strlen(td_facts_list(&facts, template, text, len)) < len);
		CHECK_EQ(text[len], 'x');
	}
}

static struct td_msg_cause kept[64];
static unsigned kept_count;

static void keep(void *arg, const struct td_msg *row)
{
	(void)arg;
	if (kept_count < 64)
		kept[kept_count++] = row->cause;
}

static const struct td_msg_cause *kept_row(const char *id)
{
	for (unsigned i = 0; i < kept_count; i++)
		if (!strcmp(kept[i].id, id))
			return &kept[i];
	return NULL;
}

TEST(a_row_says_whose_it_is_its_state_its_gpu_and_the_next_step)
{
	struct fake *a;
	const struct td_msg_cause *row;

	begin();
	a = plain_program(0, "a", 12 * MIB);
	settle(&w);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "mem", "2m", w.now, NULL),
		0);
	settle(&w);
	kept_count = 0;
	CHECK_EQ(td_explain(&w.node, a->process, td_identity_local(0), w.now, keep, NULL),
		kept_count);
	CHECK_STR(kept[0].state, td_process_state(a->process));
	CHECK_EQ(kept[0].gpu, TD_GPU_ANY);
	row = kept_row("limit_exceeded");
	CHECK(row && row->gpu == 0 && row->pid == 100);
	CHECK_STR(row->job, "a");
	CHECK_STR(row->figures, "job_bytes=12582912 gpu=0 limit_bytes=2097152");
	CHECK_STR(row->todo, "Free memory, or raise the limit: tandem set a mem=SIZE.");
	CHECK(!kept_row("limit"));
}
