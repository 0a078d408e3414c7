/* The account of memory: random schedules against a model of holders that do all that they may. */
#include "test.h"

#include "daemon/model/sharing/account.h"

#define HOLDERS   6
#define IN_FLIGHT 8
#define LIMIT     1000

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/*
 * A holder as it really is: it reads its messages in order and late, and uses any amount within the
 * bound that it has read.
 */
struct holder {
	struct td_holding holding;
	struct {
		uint64_t bytes;
		uint32_t seq;
	} told[IN_FLIGHT];
	unsigned told_count;
	uint64_t bound, uses, ceiling;
	uint32_t read;
};

static struct holder holders[HOLDERS];
static struct td_account account;

static void begin(uint64_t limit)
{
	memset(holders, 0, sizeof(holders));
	for (unsigned i = 0; i < HOLDERS; i++)
		holders[i].ceiling = TD_UNBOUNDED;
	account = (struct td_account){.limit = limit};
}

static void tell(struct holder *h, uint64_t bytes)
{
	if (h->told_count == IN_FLIGHT)
		return;
	td_account_tell(&account, &h->holding, bytes, h->holding.seq + 1);
	h->told[h->told_count].bytes = bytes;
	h->told[h->told_count++].seq = h->holding.seq;
}

static void read_one(struct holder *h)
{
	if (!h->told_count)
		return;
	h->bound = h->told[0].bytes;
	h->read = h->told[0].seq;
	memmove(h->told, h->told + 1, --h->told_count * sizeof(h->told[0]));
}

static void use(struct holder *h)
{
	uint64_t most = h->bound < h->ceiling ? h->bound : h->ceiling;

	if (h->uses < most)
		h->uses += below((uint32_t)(most - h->uses) + 1);
}

static void report(struct holder *h)
{
	td_account_used(&account, &h->holding, h->uses, h->read);
	if (td_holding_is_heard(&h->holding))
		h->ceiling = TD_UNBOUNDED;
}

/* Takes back the unused part from a holder that is stopped. */
static void take_back(struct holder *h)
{
	h->ceiling = h->uses;
	account.charged -= td_holding_charge(&h->holding);
	td_holding_take_back(&h->holding, h->uses);
	td_account_add(&account, &h->holding);
	if (h->told_count == IN_FLIGHT)
		read_one(h);
	tell(h, h->holding.told);
}

static void act(struct holder *h)
{
	uint64_t room;

	switch (below(8)) {
	case 0:
	case 1:
		room = td_account_room(&account, &h->holding);
		tell(h, room ? below((uint32_t)room + 1) : 0);
		break;
	case 2: read_one(h); break;
	case 3:
	case 4: use(h); break;
	case 5: h->uses -= below((uint32_t)h->uses + 1); break;
	case 6: report(h); break;
	default:
		if (!below(4))
			take_back(h);
	}
}

static uint64_t used(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < HOLDERS; i++)
		bytes += holders[i].uses;
	return bytes;
}

static void check(void)
{
	uint64_t charged = 0;

	for (unsigned i = 0; i < HOLDERS; i++) {
		const struct td_holding *h = &holders[i].holding;

		CHECK(holders[i].uses <= td_holding_charge(h));
		CHECK(h->told <= h->believed);
		charged += td_holding_charge(h);
	}
	CHECK_EQ(charged, account.charged);
	CHECK(charged <= account.limit);
	CHECK(used() <= account.limit);
}

TEST(nobody_has_more_than_it_is_charged_and_all_never_more_than_the_limit)
{
	for (unsigned i = 0; i < 200; i++) {
		seed = i;
		begin(LIMIT);
		for (unsigned k = 0; k < 2000; k++) {
			act(&holders[below(HOLDERS)]);
			check();
		}
	}
}

TEST(who_has_heard_is_charged_what_it_was_told_or_uses)
{
	for (unsigned i = 0; i < 50; i++) {
		seed = 1000 + i;
		begin(LIMIT);
		for (unsigned k = 0; k < 500; k++)
			act(&holders[below(HOLDERS)]);
		for (unsigned k = 0; k < HOLDERS; k++) {
			struct holder *h = &holders[k];

			while (h->told_count)
				read_one(h);
			report(h);
			CHECK_EQ(h->holding.believed, h->holding.told);
			/* So all of the rest can be given. */
		}
		CHECK_EQ(td_account_room(&account, &holders[0].holding),
			td_holding_charge(&holders[0].holding) + td_account_left(&account));
	}
}

TEST(a_lower_bound_frees_nothing_before_it_is_acknowledged)
{
	begin(LIMIT);
	tell(&holders[0], 600);
	tell(&holders[0], 100);
	CHECK_EQ(td_account_left(&account), 400);
	/* The first of the two. */
	read_one(&holders[0]);
	report(&holders[0]);
	CHECK_EQ(td_account_left(&account), 400);
	read_one(&holders[0]);
	report(&holders[0]);
	CHECK_EQ(td_account_left(&account), 900);
	CHECK_EQ(td_account_room(&account, &holders[1].holding), 900);
	CHECK_EQ(td_account_room(&account, &holders[0].holding), LIMIT);
}

TEST(a_lowered_limit_takes_nothing_away)
{
	begin(LIMIT);
	tell(&holders[0], 600);
	tell(&holders[1], 400);
	account.limit = 500;
	CHECK_EQ(td_account_left(&account), 0);
	CHECK_EQ(td_account_room(&account, &holders[0].holding), 100);
	CHECK_EQ(td_account_room(&account, &holders[1].holding), 0);
	tell(&holders[0], 600); /* no more than it is charged */
	CHECK_EQ(account.charged, 1000);
}

TEST(without_a_limit_or_a_bound_nothing_is_charged_but_what_is_used)
{
	begin(TD_UNBOUNDED);
	tell(&holders[0], 300);
	tell(&holders[0], TD_UNBOUNDED);
	CHECK_EQ(td_holding_charge(&holders[0].holding), 300);
	read_one(&holders[0]);
	read_one(&holders[0]);
	holders[0].uses = 200;
	report(&holders[0]);
	CHECK_EQ(account.charged, 200);
	CHECK_EQ(td_account_left(&account), TD_UNBOUNDED);
	CHECK_EQ(td_account_room(&account, &holders[0].holding), TD_UNBOUNDED);
}
