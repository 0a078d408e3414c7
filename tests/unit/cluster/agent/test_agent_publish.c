/* The profiles of a folder are in a state in memory, and follow the folder. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/time.h"
#include "cluster/agent/publish.h"
#include "cluster/state/memory.h"

#define S      TD_NS_PER_S
#define LAYERS "1,2,3,4,5,6,7,8,9,10,11\n"

static char folder[] = "/tmp/tandem-publish-XXXXXX";
static struct td_memory_store *store;
static struct td_state *state;
static struct td_publish publish;
static uint64_t now;

static void begin(void)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	CHECK(mkdtemp(folder));
	store = td_memory_store_new();
	state = td_memory_open(store);
	now = S;
	CHECK_EQ(td_publish_init(&publish, state, "/tandem/v1/", "node1", folder), 0);
}

static void end(void)
{
	td_publish_deinit(&publish);
	td_state_free(state);
	td_memory_store_free(store);
	CHECK_EQ(rmdir(folder), 0);
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *out = fopen(path_of(name), "we");

	CHECK(out && fputs(text, out) >= 0 && !fclose(out));
}

static void turn(void)
{
	uint64_t wakeup_ns;

	now += 5 * S;
	CHECK_EQ(td_publish_turn(&publish, now, &wakeup_ns), 0);
	CHECK(wakeup_ns > now);
}

/* Whether the state has this value for the file; NULL: no value. */
static bool has(const char *name, const char *text)
{
	char key[TD_STATE_KEY_MAX];
	struct td_state_item item;
	bool is_same;

	snprintf(key, sizeof(key), "/tandem/v1/profile/node1/%s", name);
	if (td_state_get(state, key, &item))
		return !text;
	is_same = text && item.length == strlen(text) && !memcmp(item.value, text, item.length);
	td_state_item_deinit(&item);
	return is_same;
}

TEST(a_profile_is_published_changes_and_goes)
{
	begin();
	write_file("train.layers", LAYERS);
	write_file("notes", "no profile");
	turn();
	CHECK(has("train.layers", LAYERS));
	CHECK(has("notes", NULL));
	write_file("train.layers", "0,2,3,4,5,6,7,8,9,10,11");
	turn();
	CHECK(has("train.layers", "0,2,3,4,5,6,7,8,9,10,11"));
	CHECK_STR(publish.trouble, "");
	CHECK_EQ(unlink(path_of("train.layers")), 0);
	turn();
	CHECK(has("train.layers", NULL));
	CHECK_EQ(unlink(path_of("notes")), 0);
	end();
}

TEST(what_somebody_deletes_in_the_state_comes_again)
{
	const struct td_state_write gone = {.key = "/tandem/v1/profile/node1/train.layers"};

	begin();
	write_file("train.layers", LAYERS);
	turn();
	CHECK_EQ(td_state_put(state, &gone, NULL), 0);
	CHECK(has("train.layers", NULL));
	for (uint32_t k = 0; k < 12; k++) /* a minute */
		turn();
	CHECK(has("train.layers", LAYERS));
	CHECK_EQ(unlink(path_of("train.layers")), 0);
	end();
}

TEST(a_node_has_so_many_bytes_of_profiles)
{
	begin();
	publish.bytes_max = 2 * strlen(LAYERS) - 1;
	write_file("a.layers", LAYERS);
	write_file("b.layers", LAYERS);
	turn();
	CHECK(has("a.layers", LAYERS) != has("b.layers", LAYERS));
	CHECK(strstr(publish.trouble, "more than 47 bytes of profiles"));
	CHECK_EQ(unlink(path_of("a.layers")), 0);
	turn();
	CHECK(has("a.layers", NULL));
	CHECK(has("b.layers", LAYERS));
	CHECK_EQ(unlink(path_of("b.layers")), 0);
	end();
}

TEST(what_cannot_be_read_is_told_and_leaves_the_state_alone)
{
	begin();
	write_file("train.layers", LAYERS);
	turn();
	write_file("train.layers", "1,2,three");
	write_file("muxflow.speeds", "junk");
	turn();
	CHECK(has("train.layers", LAYERS));
	CHECK(has("muxflow.speeds", NULL));
	CHECK(strstr(publish.trouble, "is not published"));
	CHECK_EQ(unlink(path_of("train.layers")), 0);
	CHECK_EQ(unlink(path_of("muxflow.speeds")), 0);
	end();
}

TEST(what_an_agent_before_this_one_has_published_goes_with_its_file)
{
	const struct td_state_write write = {
		.key = "/tandem/v1/profile/node1/old.layers", .value = LAYERS, .length = 24};

	begin();
	CHECK_EQ(td_state_put(state, &write, NULL), 0);
	turn();
	CHECK(has("old.layers", NULL));
	end();
}
