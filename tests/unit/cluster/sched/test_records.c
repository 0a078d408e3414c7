/* Records of nodes in a state in memory, and the brain that is told of them. */
#include "test.h"

#include "base/text.h"
#include "base/time.h"
#include "cluster/sched/records.h"
#include "cluster/state/memory.h"

#define S TD_NS_PER_S

static struct td_memory_store *store;
static struct td_state *state;
static struct td_brain *brain;
static struct td_records records;
static struct td_record record;
static struct td_brain_order orders[8];

static void begin(void)
{
	struct td_brain_params params = td_brain_default;
	struct td_brain_node node = {.name = "node1", .gpus = 1};

	params.shape.nodes_max = params.shape.node_gpus_max = 2;
	params.shape.jobs_max = params.shape.kinds_max = 4;
	params.silent_ns = 0;
	store = td_memory_store_new();
	state = td_memory_open(store);
	brain = td_brain_new(&params);
	CHECK(store && state && brain);
	CHECK_EQ(td_records_init(&records, state), 0);
	CHECK_EQ(td_brain_node_seen(brain, &node, 0), 0);
	td_brain_lead(brain, 1);
	record = (struct td_record){.node = "node1", .answers = true, .gpus = 1};
	record.gpu[0] = (struct td_record_gpu){.total_bytes = 100,
		.room_bytes = 100,
		.load_ppm = TD_RECORD_UNKNOWN,
		.accepts = true};
}

static void end(void)
{
	td_records_deinit(&records);
	td_brain_free(brain);
	td_state_free(state);
	td_memory_store_free(store);
}

/* Writes the record, and returns whether a new job is placed. */
static bool places(const char *id, bool guaranteed, uint64_t now)
{
	struct td_brain_request request = {.gpus = 1, .kind = "k", .guaranteed = guaranteed};
	struct td_state_write write = {.key = "/tandem/v1/node/node1"};
	struct td_text text = {0};
	uint32_t count;

	td_record_write(&record, &text);
	write.value = text.text;
	write.length = text.length;
	CHECK_EQ(td_state_put(state, &write, NULL), 0);
	td_text_deinit(&text);
	(void)td_state_turn(state, now);
	td_records_look(&records, brain, now);
	strcpy(request.id, id);
	CHECK_EQ(td_brain_submit(brain, &request, now), 0);
	count = td_brain_step(brain, now, orders, 8);
	td_brain_ended(brain, id, now);
	return count;
}

TEST(a_verdict_reaches_the_brain)
{
	begin();
	CHECK(places("1", false, S));
	record.gpu[0].accepts = false;
	CHECK(!places("2", false, 2 * S));
	CHECK(places("3", true, 3 * S));
	record.gpu[0].accepts = true;
	CHECK(places("4", false, 4 * S));
	record.gpu[0].room_bytes = 4;
	CHECK(!places("5", false, 5 * S));
	record.gpu[0].room_bytes = 100;
	strcpy(record.gpu[0].health, "broken");
	CHECK(!places("6", true, 6 * S));
	*record.gpu[0].health = 0;
	record.answers = false;
	CHECK(!places("7", true, 7 * S));
	end();
}

TEST(a_node_without_a_record_is_open)
{
	struct td_brain_request request = {.gpus = 1, .kind = "k", .id = "2"};

	begin();
	record.gpu[0].accepts = false;
	CHECK(!places("1", false, S));
	CHECK_EQ(td_state_delete_if(state, "/tandem/v1/node/node1", 2), 0);
	(void)td_state_turn(state, 2 * S);
	td_records_look(&records, brain, 2 * S);
	CHECK_EQ(td_brain_submit(brain, &request, 2 * S), 0);
	CHECK_EQ(td_brain_step(brain, 2 * S, orders, 8), 1);
	end();
}
