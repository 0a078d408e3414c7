/* The counters of a service: where they are written, what they carry over, and what a fork does. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/measure/service.h"
#include "proto/service_page.h"

int tandem_service_(const char *name, uint64_t objective_ns, uint32_t batch_max) __asm__(
	"tandem_service");
uint64_t tandem_arrived_(uint32_t requests) __asm__("tandem_arrived");
void tandem_answered_(uint64_t token, uint32_t requests) __asm__("tandem_answered");
uint32_t tandem_batch_(uint32_t mine) __asm__("tandem_batch");
void tandem_layers_(const uint32_t counts[TD_LAYER_KINDS]) __asm__("tandem_layers");

/* A meter file as the daemon makes it; the page of the service in it is mapped at *ret_page. */
static int make_file(struct td_service_page **ret_page)
{
	int fd = memfd_create("meter", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, TD_METER_FILE_BYTES));
	*ret_page = mmap(
		NULL, TD_SERVICE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, TD_SERVICE_OFFSET);
	CHECK(*ret_page != MAP_FAILED);
	return fd;
}

TEST(before_it_is_declared_nothing_is_counted)
{
	struct td_service_told told;

	CHECK_EQ(tandem_arrived_(1), 0);
	tandem_answered_(0, 1);
	CHECK_EQ(tandem_batch_(7), 7);
	CHECK(!td_service_take(&told));
}

/* A child of its own, as the first page of a process matters. */
static bool in_a_new_process(bool (*check)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		td_service_forked();
		_exit(!check());
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool told_before_the_page(void)
{
	uint32_t counts[TD_LAYER_KINDS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	struct td_service_page *page;
	int fd = make_file(&page);

	tandem_layers_(counts);
	td_service_map(fd);
	return atomic_load(&page->layers[0]) == 1 && atomic_load(&page->layers[10]) == 11;
}

static bool told_by_the_environment(void)
{
	struct td_service_page *page, *second;
	int fd = make_file(&page), other = make_file(&second);
	uint32_t counts[TD_LAYER_KINDS] = {9};

	td_settings.layers[3] = 7;
	td_service_map(fd);
	if (atomic_load(&page->layers[3]) != 7)
		return false;
	tandem_layers_(counts);
	td_service_map(other);
	return atomic_load(&second->layers[0]) == 9 && !atomic_load(&second->layers[3]);
}

TEST(layers_told_early_reach_the_first_page)
{
	CHECK(in_a_new_process(told_before_the_page));
}

TEST(the_environment_tells_layers_until_the_program_does)
{
	CHECK(in_a_new_process(told_by_the_environment));
}

TEST(a_name_is_wanted_and_not_too_long)
{
	char name[65];

	memset(name, 'a', 64);
	name[64] = 0;
	CHECK_EQ(tandem_service_(NULL, 0, 0), -EINVAL);
	CHECK_EQ(tandem_service_("", 0, 0), -EINVAL);
	CHECK_EQ(tandem_service_(name, 0, 0), -EINVAL);
	name[63] = 0;
	CHECK_EQ(tandem_service_(name, 0, 0), 0);
}

TEST(counts_go_with_it_from_page_to_page)
{
	struct td_service_page *page, *second;
	struct td_service_told told;
	int fd = make_file(&page), other = make_file(&second);
	uint64_t token;

	CHECK_EQ(tandem_service_("api", 5000000, 32), 0);
	CHECK(td_service_take(&told) && !td_service_take(&told));
	CHECK(!strcmp(told.name, "api") && told.objective_ns == 5000000 && told.batch_max == 32);
	token = tandem_arrived_(3);
	CHECK(token);
	td_service_map(fd);
	CHECK_EQ(atomic_load(&page->arrived), 3);
	tandem_answered_(token, 2);
	CHECK_EQ(atomic_load(&page->answered), 2);
	td_service_map(other);
	tandem_answered_(token, 1);
	CHECK_EQ(atomic_load(&second->arrived), 3);
	CHECK_EQ(atomic_load(&second->answered), 3);
	CHECK_EQ(atomic_load(&page->answered), 2);
	td_service_again();
	CHECK(td_service_take(&told));
	close(fd);
	close(other);
}

TEST(a_file_without_the_page_changes_nothing)
{
	int fd = memfd_create("short", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, TD_PAGE_BYTES));
	td_service_map(fd);
	CHECK(tandem_arrived_(1));
	close(fd);
}

TEST(an_answer_is_counted_by_its_latency)
{
	struct td_service_page *page;
	int fd = make_file(&page);
	uint64_t sum = 0;

	td_service_map(fd);
	tandem_answered_(tandem_arrived_(1), 5);
	for (uint32_t i = 0; i < TD_HISTOGRAM_N; i++)
		sum += atomic_load(&page->latency[i]);
	CHECK_EQ(sum, 5);
	close(fd);
}

TEST(a_child_of_fork_counts_for_itself)
{
	struct td_service_page *page;
	int fd = make_file(&page), status;
	uint64_t before;
	pid_t pid;

	td_service_map(fd);
	before = atomic_load(&page->arrived);
	pid = fork();
	if (!pid) {
		struct td_service_told told;

		td_service_forked();
		if (!tandem_arrived_(10) || !td_service_take(&told))
			_exit(1);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(atomic_load(&page->arrived), before);
	close(fd);
}

TEST(the_batch_is_the_daemons_where_it_has_chosen_one)
{
	struct td_service_page *page;
	int fd = make_file(&page);

	td_service_map(fd);
	CHECK_EQ(tandem_batch_(16), 16);
	CHECK_EQ(atomic_load(&page->batch), 16);
	atomic_store(&td_gate.page.batch, 4);
	CHECK_EQ(tandem_batch_(16), 4);
	CHECK_EQ(atomic_load(&page->batch), 4);
	atomic_store(&td_gate.page.batch, 0);
	close(fd);
}

static uint32_t batches_in(const struct td_service_page *page, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < TD_SERVICE_BATCHES; i++)
		if (td_histogram_first_ns(2 * i) >= from_ns && td_histogram_first_ns(2 * i) < to_ns)
			sum += atomic_load(&page->batches[i]);
	return sum;
}

static bool full_batches_are_timed(void)
{
	struct td_service_page *page;
	int fd = make_file(&page);
	uint64_t token;

	td_service_map(fd);
	if (tandem_service_("api", 1, 8))
		return false;
	/* Two requests of a batch of two: the later one has waited for nobody. */
	(void)tandem_batch_(2);
	token = tandem_arrived_(2);
	tandem_answered_(token - 500000000, 1);
	tandem_answered_(token - 20000000, 1);
	if (batches_in(page, 0, UINT64_MAX))
		return false;
	/* One of two: its time is that of a smaller batch, so it does not count. */
	(void)tandem_batch_(2);
	tandem_answered_(token - 20000000, 1);
	(void)tandem_batch_(1);
	tandem_answered_(token - 90000000, 1);
	(void)tandem_batch_(1);
	(void)tandem_batch_(1);
	return batches_in(page, 19000000, 40000000) == 1 &&
	       batches_in(page, 85000000, 120000000) == 1 && batches_in(page, 0, UINT64_MAX) == 2;
}

TEST(the_time_of_full_batches_is_counted)
{
	CHECK(in_a_new_process(full_batches_are_timed));
}
