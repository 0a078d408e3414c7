/* This file implements lessons.h. */
#include "daemon/model/services/lessons.h"

#include <stdio.h>
#include <string.h>

#define TAIL_PPM 900000u

static bool is_nobody(const struct td_study_of *of)
{
	static const struct td_study_of nobody;

	return !of->batch || !of->share_ppm ||
	       !memcmp(of->layers, nobody.layers, sizeof(of->layers));
}

static void read_page(const struct td_service_page *page, uint32_t ret[TD_SERVICE_BATCHES])
{
	for (uint32_t i = 0; i < TD_SERVICE_BATCHES; i++)
		ret[i] = atomic_load_explicit(&page->batches[i], memory_order_relaxed);
}

/*
 * Writes how many batches took how long since `first`, in the buckets of the histogram. A count of
 * 2^31 more, or fewer than before, is none.
 */
static uint64_t compare(
	const struct td_study *study, const struct td_service_page *page, uint64_t *ret)
{
	uint32_t now[TD_SERVICE_BATCHES];
	uint64_t total = 0;

	read_page(page, now);
	for (uint32_t i = 0; i < TD_SERVICE_BATCHES; i++) {
		uint32_t by = now[i] - study->first[i];

		by = by < 1u << 31 ? by : 0;
		/* The two buckets that one count is for have half of it each. */
		ret[2 * i] = by / 2;
		ret[2 * i + 1] = by - by / 2;
		total += by;
	}
	return total;
}

static bool is_same(const struct td_lesson *a, const struct td_lesson *b)
{
	return a->batch == b->batch && a->share_ppm == b->share_ppm &&
	       !memcmp(a->layers, b->layers, sizeof(a->layers)) &&
	       !strcmp(a->service, b->service) && !strcmp(a->gpu, b->gpu);
}

static void remove_at(struct td_lessons *lessons, uint32_t i)
{
	lessons->count--;
	memmove(&lessons->waiting[i], &lessons->waiting[i + 1],
		(lessons->count - i) * sizeof(*lessons->waiting));
}

static void add(struct td_lessons *lessons, const struct td_lesson *lesson, uint64_t now_ns)
{
	for (uint32_t i = 0; i < lessons->count; i++)
		if (is_same(&lessons->waiting[i], lesson)) {
			lessons->waiting[i] = *lesson;
			return;
		}
	if (lessons->count == TD_LESSONS_MAX)
		remove_at(lessons, 0);
	if (!lessons->count)
		lessons->since_ns = now_ns;
	lessons->waiting[lessons->count++] = *lesson;
}

/* Adds a lesson, unless the batches are too few. */
static bool teach(struct td_lessons *lessons, const struct td_study *study,
	const struct td_service_page *page, const char *service, const char *gpu, uint64_t now_ns)
{
	uint64_t counts[TD_HISTOGRAM_N] = {0};
	struct td_lesson lesson = {.batch = study->of.batch, .share_ppm = study->of.share_ppm};

	if (compare(study, page, counts) < TD_STUDY_BATCHES)
		return false;
	snprintf(lesson.service, sizeof(lesson.service), "%s", service);
	snprintf(lesson.gpu, sizeof(lesson.gpu), "%s", gpu);
	memcpy(lesson.layers, study->of.layers, sizeof(lesson.layers));
	lesson.latency_ns = td_histogram_quantile_ns(counts, TAIL_PPM);
	add(lessons, &lesson, now_ns);
	return true;
}

void td_lessons_part(struct td_lessons *lessons, struct td_study *study)
{
	lessons->parted |= study->taught_ns && lessons->count;
	*study = (struct td_study){0};
}

static void begin(struct td_lessons *lessons, struct td_study *study, const struct td_study_of *of,
	uint64_t now_ns)
{
	bool parts = memcmp(study->of.layers, of->layers, sizeof(of->layers)) != 0;
	uint64_t taught_ns = study->taught_ns;

	if (parts)
		td_lessons_part(lessons, study);
	else
		*study = (struct td_study){.taught_ns = taught_ns};
	study->of = *of;
	study->began_ns = now_ns;
}

uint64_t td_lessons_look(struct td_lessons *lessons, struct td_study *study,
	const struct td_service_page *page, const struct td_study_of *of, const char *service,
	const char *gpu, uint64_t now_ns)
{
	if (memcmp(&study->of, of, sizeof(*of)) != 0)
		begin(lessons, study, of, now_ns);
	if (is_nobody(of))
		return UINT64_MAX;
	if (!study->counts) {
		if (now_ns < study->began_ns + TD_STUDY_SETTLE_NS)
			return study->began_ns + TD_STUDY_SETTLE_NS;
		read_page(page, study->first);
		study->counts = true;
		study->began_ns = now_ns;
	}
	if (now_ns < study->began_ns + TD_STUDY_NS)
		return study->began_ns + TD_STUDY_NS;
	if (!teach(lessons, study, page, service, gpu, now_ns))
		return now_ns + TD_STUDY_NS;
	read_page(page, study->first);
	study->taught_ns = now_ns;
	study->began_ns = now_ns + TD_STUDY_AGAIN_NS - TD_STUDY_NS;
	return now_ns + TD_STUDY_AGAIN_NS;
}

uint64_t td_lessons_due_ns(const struct td_lessons *lessons, uint64_t now_ns)
{
	if (!lessons->count)
		return UINT64_MAX;
	return lessons->parted ? now_ns : lessons->since_ns + TD_LESSONS_WAIT_NS;
}

bool td_lessons_take(struct td_lessons *lessons, struct td_lesson *ret)
{
	if (!lessons->count)
		return false;
	*ret = lessons->waiting[0];
	remove_at(lessons, 0);
	lessons->parted &= lessons->count > 0;
	return true;
}
